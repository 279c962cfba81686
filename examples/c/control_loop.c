/* A plain control loop of 1 kHz that sleeps by itself: control_loop FOLDER RELEASES */
#define _GNU_SOURCE
#include <rtmeter/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static const int64_t kPeriodNs = 1000000;

static void say_late(void* context, int64_t k, int64_t release_ns, int64_t stamp_ns) {
  (void)k;
  (void)release_ns;
  (void)stamp_ns;
  ++*(long*)context; /* on the loop's thread: count, and look later */
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: %s FOLDER RELEASES\n", argv[0]), 1;
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) perror("mlockall");

  long late = 0;
  char error[256] = "";
  rtm_loop_options options = RTM_LOOP_OPTIONS;
  options.folder = argv[1];
  options.miss_ratio = 0.5; /* of an example on any machine; yours is stricter */
  options.warm_up_ns = 20 * kPeriodNs;
  options.on_late = say_late;
  options.context = &late;
  rtm_loop* loop = rtm_loop_open("c-control", kPeriodNs, &options, error, sizeof error);
  if (loop == NULL) return fprintf(stderr, "%s\n", error), 1;

  double position = 1.0, velocity = 0.0;
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (long i = atol(argv[2]); i > 0; --i) {
    next.tv_nsec += kPeriodNs;
    if (next.tv_nsec >= 1000000000) next.tv_nsec -= 1000000000, ++next.tv_sec;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) != 0) {
    }
    rtm_loop_wake(loop, (int64_t)next.tv_sec * 1000000000 + next.tv_nsec);
    velocity += (-40.0 * position - 8.0 * velocity) * 1e-3; /* the work: a spring and its damper */
    position += velocity * 1e-3;
    rtm_loop_done(loop);
  }
  if (rtm_loop_close(loop, error, sizeof error) != 0) return fprintf(stderr, "%s\n", error), 1;
  printf("position %.6f, %ld late\n", position, late);
  return 0;
}
