// Three threads, each with a timer of its own: until it is killed.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <time.h>

static const struct {
  const char* name;
  long period_ns;
} kLoops[] = {{"fast", 5000000}, {"middle", 10000000}, {"slow", 20000000}};

static void* loop(void* place) {
  const int which = (int)(intptr_t)place;
  pthread_setname_np(pthread_self(), kLoops[which].name);
  struct timespec due;
  clock_gettime(CLOCK_MONOTONIC, &due);
  for (;;) {
    due.tv_nsec += kLoops[which].period_ns;
    if (due.tv_nsec >= 1000000000) {
      due.tv_nsec -= 1000000000;
      ++due.tv_sec;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
  }
}

int main(void) {
  pthread_t thread;
  for (intptr_t which = 0; which < 3; ++which) pthread_create(&thread, NULL, loop, (void*)which);
  pthread_join(thread, NULL);
}
