"""What `rtmeter attach` costs the program: a loop of 1 kHz by itself and attached to, in turns.

python bench/attach_cost.py [ROUNDS]: as root. The program works for about 15 us and stamps the end of its
work; completion is that end less the release. Alternating rounds of two seconds.
"""

from __future__ import annotations

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
ROUND_S = 2.0


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "loop")
        subprocess.run(["cc", "-O1", "-o", program, "-x", "c", "-"], input=SOURCE, text=True, check=True)
        releases = int((2 * rounds * (ROUND_S + 1) + 2) * 1000)
        process = subprocess.Popen([program, str(releases)], stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        spans: list[tuple[bool, int, int]] = []
        cost = []
        for _ in range(rounds):
            spans.append((False, *_wait()))
            task = chosen(threads_of(process.pid, Root()), "loop")
            with Attached([task.tid], Path(folder), Root()) as attached:
                spans.append((True, *_wait()))
            attached.trace()
            cost.append(attached.event_ns)
        out, _ = process.communicate()
    rows = np.array([line.split() for line in out.splitlines()], np.int64)
    p50s: dict[bool, list[float]] = {False: [], True: []}
    for traced, begin, end in spans:
        inside = rows[(rows[:, 0] >= begin) & (rows[:, 1] < end)]
        p50s[traced].append(float(np.median(inside[:, 1] - inside[:, 0])) / 1000)
    print("round  alone  attached  us, p50 of completion")
    for k, (alone, traced) in enumerate(zip(p50s[False], p50s[True], strict=True)):
        print(f"{k:5}  {alone:5.2f}  {traced:8.2f}  {100 * (traced / alone - 1):+.1f} %")
    differences = [100 * (t / a - 1) for a, t in zip(p50s[False], p50s[True], strict=True)]
    print(
        f"median of the differences: {np.median(differences):+.2f} %; an event costs {np.median(cost):.0f} ns"
    )


def _wait() -> tuple[int, int]:
    begin = time.monotonic_ns()
    time.sleep(ROUND_S)
    return begin, time.monotonic_ns()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
