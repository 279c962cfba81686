"""A day at 1 kHz (86.4 million releases) from the null adapter's log to a summary, a verdict and a report.

Each step is a process of its own, so that its time and its largest resident memory stand alone. Bounds:
summary and report together in 10 s, the verdict in 5 s, a plot in 20 s, each in 1 GiB, on two cores.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from common import ROOT, machine_line, save
from day import DAY, RTMETER, make_cell, print_steps, run

SUMMARISE = """
import sys
from pathlib import Path
from rtmeter.results import store
from rtmeter.statistics.summary import summarise
folder = Path(sys.argv[1])
summarise(store.read_cell(folder).meta, store.chunks(folder))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=DAY)
    parser.add_argument("--overrun", choices=("catch_up", "skip"), default="skip")
    args = parser.parse_args()

    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as name:
        log, cell, steps = make_cell(Path(name), args.samples, args.overrun)
        requirement = ("--deadline", "1ms", "--miss-ratio", "1e-5")
        steps += [
            run("summary", sys.executable, "-c", SUMMARISE, cell),
            run("verdict", *RTMETER, "verdict", cell, *requirement),
            run("report", *RTMETER, "report", cell),
        ]
        steps += [
            run(f"plot, {kind}", *RTMETER, "plot", cell, "--kind", kind, "-o", Path(name) / f"{kind}.svg")
            for kind in ("time", "maxima", "histogram", "ccdf")
        ]
        pages = sum(page.stat().st_size for page in cell.glob("*.html"))
        sizes = {
            "log": log.stat().st_size,
            "parquet": (cell / "samples.parquet").stat().st_size,
            "report": pages,
        }

    print(machine_line())
    print(f"\n{args.samples:,} releases, {args.overrun}\n")
    print_steps(steps)
    both = sum(step.seconds for step in steps if step.name in ("summary", "report"))
    print(f"| summary + report (bound: 10 s, 1,024 MiB) | {both:.1f} s | | |")
    print("\n" + ", ".join(f"{what} {size / 1e6:,.0f} MB" for what, size in sizes.items()))
    result = {"samples": args.samples, "steps": [asdict(step) for step in steps], "bytes": sizes}
    print(f"\n{save('summary_24h', result)}")


if __name__ == "__main__":
    main()
