"""A day at 1 kHz (86.4 million releases) from the null adapter's log to a summary, a verdict and a report.

Each step is a process of its own, so that its time and its largest resident memory stand alone. Bounds:
summary and report together in 90 s, each in 2 GiB, on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from common import ROOT, machine_line, save

DAY = 86_400_000
SCRIPT_ROWS = 200_000
RTMETER = [sys.executable, "-m", "rtmeter"]
SUMMARISE = """
import sys
from pathlib import Path
from rtmeter import store
from rtmeter.statistics.summary import summarise
folder = Path(sys.argv[1])
summarise(store.statistics_meta(store.load_cell(folder)), store.chunks(folder))
"""


@dataclass(frozen=True, slots=True)
class Step:
    """What a step took: wall-clock seconds and largest resident memory."""

    name: str
    seconds: float
    resident_mib: float


def run(name: str, *command: str | Path) -> Step:
    """Runs a step; a verdict's exit code (0, 2, 3) is a success."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 2, 3), f"{name} ended with {process.returncode}"
    return Step(name, time.monotonic() - start, usage.ru_maxrss / 1024)


def write_delays(path: Path) -> None:
    """Delays like those of a wake-up: log-normal around 50 µs, and a few of milliseconds."""
    rng = np.random.default_rng(1)
    delays = rng.lognormal(np.log(50_000), 0.4, SCRIPT_ROWS)
    late = rng.random(SCRIPT_ROWS) < 1e-5
    delays[late] += rng.exponential(1e6, late.sum())
    path.write_text("wake_delay_ns\n" + "\n".join(map(str, delays.astype(np.int64))) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=DAY)
    parser.add_argument("--overrun", choices=("catch_up", "skip"), default="skip")
    args = parser.parse_args()

    from rtmeter.probes import find_probes

    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as name:
        folder = Path(name)
        script, log, config, cell = (folder / f for f in ("delays.csv", "day.rtlog", "config.json", "cell"))
        write_delays(script)
        asked = {"measurement": "wakeup", "period_ns": 1_000_000, "samples": args.samples}
        asked |= {"version": 1, "overrun": args.overrun, "log": str(log), "script": str(script)}
        config.write_text(json.dumps(asked))
        requirement = ("--deadline", "1ms", "--miss-ratio", "1e-5")
        steps = [
            run("probe: release to log", find_probes()["null"], "--config", config),
            run("log to Parquet, summary and cell", *RTMETER, "recover", log, "--out", cell),
            run("summary", sys.executable, "-c", SUMMARISE, cell),
            run("verdict", *RTMETER, "verdict", cell, *requirement),
            run("report", *RTMETER, "report", cell),
        ]
        sizes = {"log": log.stat().st_size, "parquet": (cell / "samples.parquet").stat().st_size}

    print(machine_line())
    print(f"\n{args.samples:,} releases, {args.overrun}\n")
    print("| step | time | largest resident memory |\n|---|---|---|")
    for step in steps:
        print(f"| {step.name} | {step.seconds:.1f} s | {step.resident_mib:,.0f} MiB |")
    both = sum(step.seconds for step in steps if step.name in ("summary", "report"))
    print(f"| summary + report (bound: 90 s, 2,048 MiB) | {both:.1f} s | |")
    print("\n" + ", ".join(f"{what} {size / 1e6:,.0f} MB" for what, size in sizes.items()))
    result = {"samples": args.samples, "steps": [asdict(step) for step in steps], "bytes": sizes}
    print(f"\n{save('summary_24h', result)}")


if __name__ == "__main__":
    main()
