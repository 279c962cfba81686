// A thread that sleeps each millisecond, and does what it is told to once it is sent SIGUSR1.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static const char* what;
static volatile sig_atomic_t told;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // which main keeps

static void tell(int number) { told = number; }

static void* loop(void* unused) {
  (void)unused;
  int64_t due = now(), period = 1000000;
  for (;;) {
    due += period;
    struct timespec t = {due / 1000000000, due % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
    pthread_setname_np(pthread_self(), "loop");  // from here on it is in its loop
    if (!strcmp(what, "busy")) for (;;) continue;
    if (!strcmp(what, "asleep")) for (;;) pause();
    if (!told) continue;
    told = 0;
    if (!strcmp(what, "thread_ends")) return 0;
    if (!strcmp(what, "ends")) _exit(0);
    if (!strcmp(what, "execs")) execl("/bin/sleep", "sleep", "60", (char*)0);
    if (!strcmp(what, "restarts")) execl("/proc/self/exe", "misfits", "", (char*)0);
    if (!strcmp(what, "hangs")) pthread_mutex_lock(&lock);
    if (!strcmp(what, "forks") && fork() == 0) for (;;) pause();
    if (!strcmp(what, "period")) period = 3000000;
    if (!strcmp(what, "policy")) {
      struct sched_param three = {3};
      pthread_setschedparam(pthread_self(), SCHED_FIFO, &three);
    }
  }
}

int main(int count, char** arguments) {
  what = count > 1 ? arguments[1] : "";
  pthread_mutex_lock(&lock);
  signal(SIGUSR1, tell);
  if (!strcmp(what, "restarts")) loop(0);  // its only thread
  pthread_t thread;
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, 0);  // it is for this thread
  pthread_create(&thread, 0, loop, 0);
  pthread_sigmask(SIG_UNBLOCK, &usr1, 0);
  for (;;) pause();
}
