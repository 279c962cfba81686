"""What `rtmeter attach` costs the program: a loop of 1 kHz by itself and attached to, in turns.

python bench/attach_cost.py [ROUNDS]: as root. The program works for about 15 us and stamps the end of its
work; completion is that end less the release. Slices of a fifth of a second, shuffled in each round: nothing
recorded, by programs of ours in the kernel (eBPF), and by tracefs.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from rtmeter.host.root import Root
from rtmeter.measure.programs.attaching import EBPF, TRACEFS, Attached
from rtmeter.measure.programs.program import chosen, threads_of

SOURCE = r"""
#include <sched.h>
#include <signal.h>
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
static volatile sig_atomic_t told;
static void end(int number) { told = number; }
int main(void) {
  signal(SIGTERM, end);
  struct sched_param p = {80};
  sched_setscheduler(0, SCHED_FIFO, &p);
  int64_t due = now();
  long n = 0;
  for (; !told && n < N; n++) {
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
SLICE_S, SETTLES_S = 0.2, 0.05
BY = (None, EBPF, TRACEFS)


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "loop")
        subprocess.run(["cc", "-O1", "-o", program, "-x", "c", "-"], input=SOURCE, text=True, check=True)
        process = subprocess.Popen([program], stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        task = chosen(threads_of(process.pid, Root()), "loop")
        spans = [span for _ in range(rounds) for span in _round(task.tid, Path(folder))]
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
    rows = np.array([line.split() for line in out.splitlines()], np.int64)
    p50s: dict[str, list[float]] = {name: [] for name in map(str, BY)}
    for name, begin, end in spans:
        inside = rows[(rows[:, 0] >= begin) & (rows[:, 0] < end)]
        p50s[name].append(float(np.median(inside[:, 1] - inside[:, 0])) / 1000)
    nothing = np.array(p50s["None"])
    draw = np.random.default_rng(1)
    print("recorded: p50 of completion, median of the differences from nothing [95 % interval, bootstrap]")
    for name, values in p50s.items():
        differences = np.array(values) / nothing - 1
        medians = [np.median(draw.choice(differences, len(differences))) for _ in range(4000)]
        low, high = 100 * np.quantile(medians, (0.025, 0.975))
        told = f"{100 * np.median(differences):+.1f} % [{low:+.1f}, {high:+.1f}]"
        print(f"{name:28} {np.median(values):6.2f} us  {told}")
    print(f"{rounds} rounds; load average {os.getloadavg()[0]:.1f}")


def _round(tid: int, folder: Path) -> list[tuple[str, int, int]]:
    """Records in each way for a slice."""
    spans = []
    for by in random.sample(BY, len(BY)):
        with Attached([tid], folder, Root(), by=by) if by else nullcontext() as attached:
            time.sleep(SETTLES_S)
            begin = time.monotonic_ns()
            time.sleep(SLICE_S)
            spans.append((str(by), begin, time.monotonic_ns()))
        if attached is not None:
            attached.trace()
    return spans


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
