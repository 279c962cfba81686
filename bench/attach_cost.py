"""What `rtmeter attach` costs the program: a loop of 1 kHz by itself and attached to, in turns.

python bench/attach_cost.py [ROUNDS]: as root. The program works for about 15 us and stamps the end of its
work; completion is that end less the release. Slices of a tenth of a second, shuffled in each round: nothing
recorded, all events, and all but some, to see what each is worth.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from rtmeter.host.root import Root
from rtmeter.measure.attaching import Attached
from rtmeter.measure.program import chosen, threads_of

SOURCE = r"""
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
enum { N = 1000000 };
static int64_t rows[N][2];
static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
int main(int count, char** words) {
  (void)count;
  struct sched_param p = {80};
  sched_setscheduler(0, SCHED_FIFO, &p);
  int64_t due = now();
  long n = 0, most;
  if (sscanf(words[1], "%ld", &most) != 1) return 1;
  for (; n < most && n < N; n++) {
    due += 1000000;
    struct timespec t = {due / 1000000000, due % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
    for (volatile int i = 0; i < 10000; i++) continue;
    rows[n][0] = due;
    rows[n][1] = now();
  }
  for (long k = 0; k < n; k++) printf("%lld %lld\n", (long long)rows[k][0], (long long)rows[k][1]);
}
"""
SLICE_S, SETTLES_S = 0.1, 0.02
EXIT = {"timer/hrtimer_expire_exit"}
TIMERS = EXIT | {"timer/hrtimer_expire_entry", "timer/hrtimer_start"}
CALLS = {"raw_syscalls/sys_enter", "raw_syscalls/sys_exit"}
ALL = TIMERS | CALLS | {"sched/sched_switch", "sched/sched_waking"}
RECORDED = {
    "nothing": set(),
    "all": ALL,
    "all but hrtimer_expire_exit": ALL - EXIT,
    "all but timers": ALL - TIMERS,
    "switches and wakings": ALL - TIMERS - CALLS,
}


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "loop")
        subprocess.run(["cc", "-O1", "-o", program, "-x", "c", "-"], input=SOURCE, text=True, check=True)
        releases = int((rounds * len(RECORDED) * (SLICE_S + 2 * SETTLES_S) + 3) * 1000)
        process = subprocess.Popen([program, str(releases)], stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        task = chosen(threads_of(process.pid, Root()), "loop")
        with Attached([task.tid], Path(folder), Root()) as attached:
            events = Path(f"{attached.instance}/events")
            spans = [span for _ in range(rounds) for span in _round(events)]
        attached.trace()
        out, _ = process.communicate()
    rows = np.array([line.split() for line in out.splitlines()], np.int64)
    p50s: dict[str, list[float]] = {name: [] for name in RECORDED}
    for name, begin, end in spans:
        inside = rows[(rows[:, 0] >= begin) & (rows[:, 0] < end)]
        p50s[name].append(float(np.median(inside[:, 1] - inside[:, 0])) / 1000)
    nothing = np.array(p50s["nothing"])
    draw = np.random.default_rng(1)
    print("recorded: p50 of completion, median of the differences from nothing [95 % interval, bootstrap]")
    for name, values in p50s.items():
        differences = np.array(values) / nothing - 1
        medians = [np.median(draw.choice(differences, len(differences))) for _ in range(4000)]
        low, high = 100 * np.quantile(medians, (0.025, 0.975))
        words = f"{100 * np.median(differences):+.1f} % [{low:+.1f}, {high:+.1f}]"
        print(f"{name:28} {np.median(values):6.2f} us  {words}")
    print(f"{rounds} rounds; an event costs {attached.event_ns or 0:.0f} ns warm")


def _round(events: Path) -> list[tuple[str, int, int]]:
    """Records each set of events for a slice."""
    spans = []
    for name in random.sample(list(RECORDED), len(RECORDED)):
        for event in ALL:
            (events / event / "enable").write_text("1" if event in RECORDED[name] else "0")
        time.sleep(SETTLES_S)
        begin = time.monotonic_ns()
        time.sleep(SLICE_S)
        spans.append((name, begin, time.monotonic_ns()))
    return spans


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
