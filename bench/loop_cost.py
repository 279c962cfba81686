"""What a job of librtmeter costs, warm: wake-up, done and row. Bound: 50 ns.

`make build-bench` builds rtmeter-bench-loop_cost, which measures two clock readings and a job in turn.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np

from common import ROOT, machine_line, save
from record_cost import median_and_interval

BINARY = ROOT / "build" / "release" / "bench" / "rtmeter-bench-loop_cost"
BOUND_NS = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--binary", type=Path, default=BINARY)
    binary = parser.parse_args().binary
    run = subprocess.run([binary], check=True, capture_output=True, text=True, timeout=300)
    raw = {name: np.array(values) for name, values in json.loads(run.stdout).items()}
    costs = {
        "two stamps alone": median_and_interval(raw["two_stamps"]),
        "wake, done and row": median_and_interval(raw["job"]),
        "of which not the stamps": median_and_interval(raw["job"] - raw["two_stamps"]),
    }
    print(machine_line())
    print("\n| cost, warm | median | 95 % interval | bound |\n|---|---|---|---|")
    for name, cost in costs.items():
        bound = f"{BOUND_NS} ns" if name.startswith("wake") else ""
        print(f"| {name} | {cost['median']:.1f} ns | {cost['low']:.1f} to {cost['high']:.1f} | {bound} |")
    print(f"\n{save('loop_cost', {'costs_ns': costs})}")


if __name__ == "__main__":
    main()
