// A thread for every kind of sleep, each of which keeps of every wake-up when it was due (0: it does not know)
// and a stamp taken right after. SIGTERM: all of them are written to the file that is given.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_NS = 10000000, MOST = 100000 };
typedef struct {
  const char* name;
  int64_t (*sleep)(int64_t due);  // returns when it was due, or 0
  int64_t rows[MOST][2];
  volatile int count;
  pthread_t thread;
} Sleeper;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static struct timespec spec(int64_t ns) { return (struct timespec){ns / 1000000000, ns % 1000000000}; }

static int64_t absolute(int64_t due) {
  struct timespec t = spec(due);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
  return due;
}
static int64_t wall_clock(int64_t due) {
  static int64_t ahead;
  struct timespec wall, here;
  clock_gettime(CLOCK_REALTIME, &wall);
  clock_gettime(CLOCK_MONOTONIC, &here);
  if (!ahead) ahead = (wall.tv_sec - here.tv_sec) * 1000000000LL + wall.tv_nsec - here.tv_nsec;
  struct timespec t = spec(due + ahead);
  clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, 0);
  return 0;  // when that is by the other clock it knows only nearly
}
static int64_t relative(int64_t due) {
  (void)due;
  struct timespec t = spec(PERIOD_NS);
  nanosleep(&t, 0);
  return 0;
}
static int64_t by_poll(int64_t due) {
  (void)due;
  poll(0, 0, PERIOD_NS / 1000000);
  return 0;
}
static int64_t by_select(int64_t due) {
  (void)due;
  struct timeval t = {0, PERIOD_NS / 1000};
  select(0, 0, 0, 0, &t);
  return 0;
}
static int64_t by_epoll(int64_t due) {
  (void)due;
  static int fd = -1;
  struct epoll_event event;
  if (fd < 0) fd = epoll_create1(0);
  epoll_wait(fd, &event, 1, PERIOD_NS / 1000000);
  return 0;
}
static int64_t condition(int64_t due) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  struct timespec t = spec(due);
  static pthread_cond_t changed;
  static int made;
  if (!made++) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
  }
  pthread_mutex_lock(&mutex);
  while (pthread_cond_timedwait(&changed, &mutex, &t) != ETIMEDOUT) continue;
  pthread_mutex_unlock(&mutex);
  return due;
}
static int64_t semaphore(int64_t due) {
  static sem_t none;
  struct timespec t = spec(due);
  sem_clockwait(&none, CLOCK_MONOTONIC, &t);
  return due;
}
static int64_t by_timerfd(int64_t due) {
  static int fd = -1;
  static int64_t next;
  uint64_t times;
  if (fd < 0) {
    next = due;
    struct itimerspec every = {spec(PERIOD_NS), spec(due)};
    fd = timerfd_create(CLOCK_MONOTONIC, 0);
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &every, 0);
  }
  if (read(fd, &times, sizeof times) < 0) abort();
  int64_t first = next;
  next += (int64_t)times * PERIOD_NS;
  return first;
}
static int64_t by_signal(int64_t due) {
  static timer_t timer;
  static sigset_t mine;
  static int made;
  if (!made++) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = gettid();
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    struct itimerspec every = {spec(PERIOD_NS), spec(due)};
    timer_settime(timer, TIMER_ABSTIME, &every, 0);
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR1);
  }
  siginfo_t info;
  sigwaitinfo(&mine, &info);
  return 0;
}
static int64_t budget(int64_t due) {
  (void)due;
  static int made;
  if (!made++) {
    struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t runtime, deadline, period; }
        wanted = {48, 6, 0, 0, 0, 2000000, PERIOD_NS, PERIOD_NS};
    if (syscall(SYS_sched_setattr, 0, &wanted, 0) != 0) pthread_exit(0);
  }
  sched_yield();
  return 0;
}

static Sleeper sleepers[] = {
    {"absolute", absolute, {{0}}, 0, 0},   {"wall_clock", wall_clock, {{0}}, 0, 0},
    {"relative", relative, {{0}}, 0, 0},   {"poll", by_poll, {{0}}, 0, 0},
    {"select", by_select, {{0}}, 0, 0},    {"epoll", by_epoll, {{0}}, 0, 0},
    {"condition", condition, {{0}}, 0, 0}, {"semaphore", semaphore, {{0}}, 0, 0},
    {"timerfd", by_timerfd, {{0}}, 0, 0},  {"signal", by_signal, {{0}}, 0, 0},
    {"budget", budget, {{0}}, 0, 0},
};
enum { KINDS = sizeof sleepers / sizeof *sleepers };

static void* loop(void* argument) {
  Sleeper* own = argument;
  pthread_setname_np(pthread_self(), own->name);
  int64_t due = now() / PERIOD_NS * PERIOD_NS + 2 * PERIOD_NS + (own - sleepers) * 500000;
  while (own->count < MOST) {
    int64_t was_due = own->sleep(due);
    own->rows[own->count][1] = now();
    own->rows[own->count][0] = was_due;
    own->count++;
    due += PERIOD_NS;
  }
  return 0;
}

int main(int count, char** words) {
  sigset_t all;
  int caught;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, 0);
  for (int i = 0; i < KINDS; i++) pthread_create(&sleepers[i].thread, 0, loop, &sleepers[i]);
  sigemptyset(&all);
  sigaddset(&all, SIGTERM);
  sigaddset(&all, SIGINT);
  sigwait(&all, &caught);
  FILE* file = fopen(count > 1 ? words[1] : "/dev/null", "w");
  for (int i = 0; i < KINDS; i++)
    for (int k = 0; k < sleepers[i].count; k++)
      fprintf(file, "%s %lld %lld\n", sleepers[i].name, (long long)sleepers[i].rows[k][0], (long long)sleepers[i].rows[k][1]);
  fclose(file);
  return 0;
}
