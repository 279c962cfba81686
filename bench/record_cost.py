"""What a record costs on the measured path, its stamp included. Bound: 40 ns.

`make build-bench` builds rtmeter-bench-record_cost, which measures clock readings with and without a
record in turn: back to back, and once a millisecond after a sleep, with the caches as the sleep left them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from common import ROOT, machine_line, save

BINARY = ROOT / "build" / "release" / "bench" / "rtmeter-bench-record_cost"
BOUND_NS = 40


def median_and_interval(values: NDArray[np.float64]) -> dict[str, float]:
    """The median and two order statistics, its 95 % interval (binomial; David and Nagaraja 2003, 7.1)."""
    ordered = np.sort(values)
    low = int(binom.ppf(0.025, len(ordered), 0.5))
    return {"median": float(np.median(ordered)), "low": ordered[low], "high": ordered[-1 - low]}


def figures(raw: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Costs in ns. A single interval after a sleep holds one stamp more than it should, half of it at
    either end; the batches back to back hold none to speak of."""
    found = {}
    for when in ("warm", "after_sleep"):
        stamp, both = (np.array(raw[f"{what}_{when}"]) for what in ("stamp", "stamp_and_record"))
        ends = float(np.median(stamp)) / 2 if when == "after_sleep" else 0.0
        found[f"stamp, {when}"] = median_and_interval(stamp - ends)
        found[f"record, {when}"] = median_and_interval(both - stamp)
        found[f"stamp and record, {when}"] = median_and_interval(both - ends)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--binary", type=Path, default=BINARY)
    binary = parser.parse_args().binary
    run = subprocess.run([binary], check=True, capture_output=True, text=True, timeout=300)
    costs = figures(json.loads(run.stdout))
    print(machine_line())
    print("\n| cost | median | 95 % interval | bound |\n|---|---|---|---|")
    for name, cost in costs.items():
        bound = f"{BOUND_NS} ns" if name.startswith("stamp and record") else ""
        print(f"| {name} | {cost['median']:.1f} ns | {cost['low']:.1f} to {cost['high']:.1f} | {bound} |")
    print(f"\n{save('record_cost', {'costs_ns': costs})}")


if __name__ == "__main__":
    main()
