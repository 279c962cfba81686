"""How long `rtmeter --help` takes, as a user waits for it. Bound: 0.3 s."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from common import machine_line, save

RUNS = 30
BOUND_S = 0.3


def main() -> None:
    command = [Path(sys.executable).parent / "rtmeter", "--help"]
    seconds = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = (used.ru_utime + used.ru_stime) / len(seconds)
    warm = np.array(seconds[1:])  # the first one reads the files from disk
    result = {"first_s": seconds[0], "median_s": float(np.median(warm)), "max_s": float(warm.max())}
    result["cpu_s"] = cpu_s
    print(machine_line())
    print("\n| `rtmeter --help` | seconds | bound |\n|---|---|---|")
    print(f"| first | {result['first_s']:.2f} | |")
    print(f"| median of {RUNS} more | {result['median_s']:.2f} | {BOUND_S} |")
    print(f"| slowest of these | {result['max_s']:.2f} | |")
    print(f"| processor time, mean | {cpu_s:.2f} | |")
    print(f"\n{save('help_time', result)}")


if __name__ == "__main__":
    main()
