"""What counting a send costs beside the C library's send (docs/decisions/0014): two atomic additions.

`make build-bench` builds rtmeter-bench-send_count, which sends nothing through a pair of sockets in batches
of 100, by either in turn; a pair's difference is one value.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np

from common import ROOT, machine_line, save
from record_cost import median_and_interval

BINARY = ROOT / "build" / "release" / "bench" / "rtmeter-bench-send_count"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--binary", type=Path, default=BINARY)
    binary = parser.parse_args().binary
    run = subprocess.run([binary], check=True, capture_output=True, text=True, timeout=300)
    raw = {name: np.array(values) for name, values in json.loads(run.stdout).items()}
    costs = {
        "the C library's": median_and_interval(raw["library"]),
        "counted": median_and_interval(raw["counted"]),
        "of which counting": median_and_interval(raw["counted"] - raw["library"]),
    }
    print(machine_line())
    print("\n| a send | median | 95 % interval |\n|---|---|---|")
    for name, cost in costs.items():
        print(f"| {name} | {cost['median']:.1f} ns | {cost['low']:.1f} to {cost['high']:.1f} |")
    print(f"\n{save('send_count', {'costs_ns': costs})}")


if __name__ == "__main__":
    main()
