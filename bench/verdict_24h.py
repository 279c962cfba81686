"""The verdict, with all gates, on a day at 1 kHz (86.4 million releases of the null adapter).

The requirement of each class is judged by a process of its own. Bounds: 5 s and 1 GiB each, on two cores.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

from common import ROOT, machine_line, save
from day import DAY, RTMETER, make_cell, print_steps, run

REQUIREMENTS = {
    "soft": ("--deadline", "1ms", "--miss-ratio", "1e-5"),
    "firm": ("--deadline", "300us", "--miss-ratio", "1e-3"),
    "hard": (
        "--deadline",
        "1s",
    ),
}
MOST_SECONDS, MOST_MIB = 5.0, 1024.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=DAY)
    args = parser.parse_args()

    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as name:
        _, cell, _ = make_cell(Path(name), args.samples, "catch_up")
        steps = [
            run(
                f"verdict, {kind} {' '.join(options)}",
                *RTMETER,
                "verdict",
                cell,
                "--criticality",
                kind,
                *options,
            )
            for kind, options in REQUIREMENTS.items()
        ]

    print(machine_line())
    print(f"load average {os.getloadavg()[0]:.1f}\n\n{args.samples:,} releases\n")
    print_steps(steps)
    within = all(step.seconds <= MOST_SECONDS and step.resident_mib <= MOST_MIB for step in steps)
    print(f"\nwithin {MOST_SECONDS:.0f} s and {MOST_MIB:,.0f} MiB: {'yes' if within else 'no'}")
    print(f"\n{save('verdict_24h', {'samples': args.samples, 'steps': [asdict(step) for step in steps]})}")


if __name__ == "__main__":
    main()
