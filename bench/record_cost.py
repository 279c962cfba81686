"""What a record costs on the measured path, its stamp included. Bound: 40 ns.

`make build-bench` builds rtmeter-bench-record_cost, which measures clock readings with and without a
record in turn: back to back, and once a millisecond after a sleep, with the caches as the sleep left them;
there also with the same bytes written to the next place of an array instead, which is the floor.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from common import ROOT, Ratio, machine_line, save

BINARY = ROOT / "build" / "release" / "bench" / "rtmeter-bench-record_cost"
BOUND_NS = 40


def median_and_interval(values: NDArray[np.float64]) -> dict[str, float]:
    """The median and two order statistics, its 95 % interval (binomial; David and Nagaraja 2003, 7.1)."""
    ordered = np.sort(values)
    low = int(binom.ppf(0.025, len(ordered), 0.5))
    return {"median": float(np.median(ordered)), "low": ordered[low], "high": ordered[-1 - low]}


def figures(raw: dict[str, list[float]]) -> tuple[dict[str, dict[str, float]], Ratio]:
    """Costs in ns, and the record's to the floor's after a sleep, the stamp included in both. A single
    interval after a sleep holds one stamp more than it should, half of it at either end; the batches back to
    back hold none to speak of."""
    values = {name: np.array(costs) for name, costs in raw.items()}
    found = {}
    for when in ("warm", "after_sleep"):
        stamp, both = values[f"stamp_{when}"], values[f"stamp_and_record_{when}"]
        ends = float(np.median(stamp)) / 2 if when == "after_sleep" else 0.0
        found[f"stamp, {when}"] = median_and_interval(stamp - ends)
        found[f"record, {when}"] = median_and_interval(both - stamp)
        found[f"stamp and record, {when}"] = median_and_interval(both - ends)
    floor = values["stamp_and_write_after_sleep"] - ends
    found["stamp and the same bytes, after_sleep"] = median_and_interval(floor)
    return found, Ratio.of(list(zip(both - ends, floor, strict=True)))


@contextmanager
def alone_on(cpu: int | None) -> Iterator[list[str]]:
    """How to start what is measured: at fifo:90 on a CPU where a shell that only spins, of all normal
    processes the most favoured, has what the sleeps leave; others that empty the caches hardly come to it. As
    it is where there is no CPU given. Needs root."""
    if cpu is None:
        yield []
        return
    favoured = "echo -20 >/proc/self/autogroup; exec nice -n -20 taskset -c"
    spin = subprocess.Popen(["setsid", "sh", "-c", f"{favoured} {cpu} sh -c 'while :; do :; done'"])
    try:
        yield ["taskset", "-c", str(cpu), "chrt", "-f", "90"]
    finally:
        spin.kill()
        spin.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument("--alone-on", type=int, metavar="CPU", help="keep others off it (as root)")
    asked = parser.parse_args()
    with alone_on(asked.alone_on) as start:
        run = subprocess.run([*start, asked.binary], check=True, capture_output=True, text=True, timeout=300)
    costs, to_floor = figures(json.loads(run.stdout))
    print(machine_line())
    print("\n| cost | median | 95 % interval | bound |\n|---|---|---|---|")
    for name, cost in costs.items():
        bound = f"{BOUND_NS} ns" if name.startswith("stamp and record") else ""
        print(f"| {name} | {cost['median']:.1f} ns | {cost['low']:.1f} to {cost['high']:.1f} | {bound} |")
    print(f"\nto the floor: {to_floor.ratio:.3f} ({to_floor.low:.3f} to {to_floor.high:.3f})")
    print(f"\n{save('record_cost', {'costs_ns': costs, 'to_floor': to_floor.to_json()})}")


if __name__ == "__main__":
    main()
