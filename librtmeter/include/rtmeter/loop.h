/* Records how punctual a program's own loop is, for `rtmeter verdict` and its kind. A C ABI.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   rtm_loop* loop = rtm_loop_open("arm", 1000000, NULL, error, sizeof error);
 *   while (running) {
 *     rtm_loop_sleep(loop);   // or a sleep of one's own, then rtm_loop_wake(loop, due_ns)
 *     control();
 *     rtm_loop_done(loop);
 *   }
 *   rtm_loop_close(loop, error, sizeof error);
 *
 * Times are nanoseconds of CLOCK_MONOTONIC. A wake-up and a done together take two readings of the clock and
 * a row: no allocation, lock, system call or page fault. One thread at a time uses a loop. rtm_loop_wake(),
 * rtm_loop_done() and rtm_loop_close() do nothing with NULL, so that a program may go on without a recorder.
 */
#ifndef RTMETER_LOOP_H
#define RTMETER_LOOP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The release is not known to the program: rtm_loop_wake() finds it on the grid, which is then that of the
 * earliest wake-up of the warm-up. */
#define RTM_LOOP_DUE_UNKNOWN INT64_MIN

typedef struct rtm_loop rtm_loop;

enum {
  RTM_LOOP_CATCH_UP =
      1,     /* rtm_loop_sleep() serves each release that has passed; else it goes on to the next */
  RTM_LOOP_TRACE_MARKER = 2, /* a late release is written into the kernel's trace */
  RTM_LOOP_BREAK_TRACE =
      4   /* the first late release stops the kernel's trace, what cyclictest calls breaktrace */
};

/* Begin with RTM_LOOP_OPTIONS; a field of 0 or NULL stands for its default. */
typedef struct rtm_loop_options {
  size_t size;            /* of this struct, as the program was compiled with */
  const char* folder;     /* below which FOLDER/NAME/TIME.loop is made: default "results" */
  int64_t deadline_ns;    /* of the end of the work, from its release: default the period */
  double miss_ratio;      /* of releases that may miss it: default none */
  int64_t warm_up_ns;     /* releases that are recorded and not judged: default 1 s, at least one of them */
  int64_t whole_ns;       /* the last releases that are kept whole: default 4 h */
  int64_t late_bytes;     /* for late releases and what surrounds them, kept for good: default 256 MiB */
  uint32_t flags;         /* of the enum above */
  /* Called by the loop's thread after each late or skipped release has been stamped; of several that were
   * skipped at once for the first of them. */
  void (*on_late)(void* context, int64_t k, int64_t release_ns, int64_t stamp_ns);
  void* context;          /* on_late's first argument */
} rtm_loop_options;

#define RTM_LOOP_OPTIONS {sizeof(rtm_loop_options), NULL, 0, 0.0, 0, 0, 0, 0, NULL, NULL}

/* Begins to record. Returns NULL, with the reason and what helps in `error`, if it cannot: the folder cannot
 * be written, or a loop of this name is open there already, in this process or another. `name`: 1 to 64
 * letters, digits, '.', '_' or '-', not beginning with '.'. options may be NULL. Not for the measured path.
 */
rtm_loop* rtm_loop_open(const char* name, int64_t period_ns, const rtm_loop_options* options, char* error,
                        size_t error_bytes);

/* Sleeps until the next release and stamps the wake-up. Returns the release, in ns; -1 without a loop, at
 * once. */
int64_t rtm_loop_sleep(rtm_loop* loop);

/* Stamps a wake-up. due_ns: the release, what the program slept for, or RTM_LOOP_DUE_UNKNOWN. */
void rtm_loop_wake(rtm_loop* loop, int64_t due_ns);

/* Stamps the end of the work, until the next sleep. */
void rtm_loop_done(rtm_loop* loop);

/* Writes what is left and ends the record; so does exit(). A job that was not said to be done is lost if it
 * is late by now, and in no count if it is in time. Returns 0, or -1 with the reason in `error` if something
 * could not be written; the loop is gone in both cases. */
int rtm_loop_close(rtm_loop* loop, char* error, size_t error_bytes);

#ifdef __cplusplus
}
#endif
#endif
