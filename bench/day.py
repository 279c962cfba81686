"""What the benchmarks of a day at 1 kHz share: a cell of it, and steps whose cost stands alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DAY = 86_400_000
SCRIPT_ROWS = 200_000
RTMETER = [sys.executable, "-m", "rtmeter"]


@dataclass(frozen=True, slots=True)
class Step:
    """What a step took: seconds by the clock and of the processors, and largest resident memory."""

    name: str
    seconds: float
    processor_seconds: float
    resident_mib: float


def run(name: str, *command: str | Path) -> Step:
    """Runs a step as a process of its own; a verdict's exit code (0, 2, 3) is a success."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 2, 3), f"{name} ended with {process.returncode}"
    processor = usage.ru_utime + usage.ru_stime
    return Step(name, time.monotonic() - start, processor, usage.ru_maxrss / 1024)


def make_cell(folder: Path, samples: int, overrun: str) -> tuple[Path, Path, list[Step]]:
    """The log of so many releases of the null adapter, the cell made of it, and the steps that took."""
    from rtmeter.measure.probe.probes import find_probes

    script, log, config, cell = (folder / f for f in ("delays.csv", "day.rtlog", "config.json", "cell"))
    write_delays(script)
    asked = {"measurement": "wakeup", "period_ns": 1_000_000, "samples": samples}
    asked |= {"version": 1, "overrun": overrun, "log": str(log)}
    asked |= {"options": {"script": str(script)}}
    config.write_text(json.dumps(asked))
    steps = [
        run("probe: release to log", find_probes()["null"], "--config", config),
        run("log to Parquet, summary and cell", *RTMETER, "recover", log, "--out", cell),
    ]
    return log, cell, steps


def write_delays(path: Path) -> None:
    """Delays like those of a wake-up: log-normal around 50 us, and a few of milliseconds."""
    rng = np.random.default_rng(1)
    delays = rng.lognormal(np.log(50_000), 0.4, SCRIPT_ROWS)
    late = rng.random(SCRIPT_ROWS) < 1e-5
    delays[late] += rng.exponential(1e6, late.sum())
    path.write_text("wake_delay_ns\n" + "\n".join(map(str, delays.astype(np.int64))) + "\n")


def print_steps(steps: list[Step]) -> None:
    """A table of steps."""
    print("| step | time | processor time | largest resident memory |\n|---|---|---|---|")
    for step in steps:
        times = f"{step.seconds:.1f} s | {step.processor_seconds:.1f} s"
        print(f"| {step.name} | {times} | {step.resident_mib:,.0f} MiB |")
