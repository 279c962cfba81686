"""What the benchmarks share: the machine's name, intervals of ratios, and where results go."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "bench"


def machine() -> dict[str, object]:
    """What a figure needs beside it: host, kernel, processor, and whether this is a virtual machine."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    fields = dict(line.split(":", 1) for line in cpuinfo.splitlines() if ":" in line)
    values = {key.strip(): value.strip() for key, value in fields.items()}
    return {
        "hostname": platform.node(),
        "kernel": platform.release(),
        "cpu": values.get("model name", platform.machine()),
        "cpus": cpuinfo.count("processor\t:"),
        "virtual_machine": "hypervisor" in values.get("flags", "").split(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def machine_line() -> str:
    """One line for the head of a table."""
    m = machine()
    virtual = ", virtual machine: unfit for absolute claims" if m["virtual_machine"] else ""
    return f"{m['hostname']}, {m['cpu']}, {m['cpus']} CPUs, Linux {m['kernel']}, {m['date']}{virtual}"


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ours divided by theirs over interleaved pairs: medians of both, the median of the pairs' ratios and
    its 95 % interval, and the bound that the interval's upper end must not pass (None: reported only)."""

    ours: float
    theirs: float
    ratio: float
    low: float
    high: float
    pairs: int
    bound: float | None

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]], bound: float | None = None, seed: int = 1) -> Ratio:
        """From (ours, theirs) pairs; the interval is a percentile bootstrap over the pairs
        (Efron and Tibshirani 1993, chapter 13)."""
        ours, theirs = np.asarray(pairs, dtype=float).T
        ratios = ours / theirs
        picks = np.random.default_rng(seed).integers(0, len(ratios), size=(4000, len(ratios)))
        low, high = np.quantile(np.median(ratios[picks], axis=1), [0.025, 0.975])
        return cls(
            ours=float(np.median(ours)),
            theirs=float(np.median(theirs)),
            ratio=float(np.median(ratios)),
            low=float(low),
            high=float(high),
            pairs=len(ratios),
            bound=bound,
        )

    @property
    def outcome(self) -> str:
        """``shown``, ``not shown``, or ``reported`` where there is no bound."""
        if self.bound is None:
            return "reported"
        return "shown" if self.high <= self.bound else "not shown"

    def to_json(self) -> dict[str, object]:
        return asdict(self) | {"outcome": self.outcome}


def processes_of(front: int) -> dict[str, int]:
    """Role → pid of the probes that the front started."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()[1:]]
    return {
        role: int(pid)
        for pid, parent, args in rows
        for role in ("client", "server", "single")
        if int(parent) == front and f"{role}.config.json" in args
    }


def wakeup_quantiles(
    args: argparse.Namespace, names: Iterable[str], flags: Iterable[str] = (), **more: str
) -> dict[str, float]:
    """One run of `rtmeter measure wakeup`, as served, in nanoseconds: by ``args``' samples, period_us,
    priority, cpu and limit_s, ``more`` options, ``flags``; memory locked, no warm-up, overruns skipped."""
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "adapter": "posix",
            "overrun": "skip",
            "period": f"{args.period_us}us",
            "samples": str(args.samples),
            "warm-up": "0",
            "scheduling": f"fifo:{args.priority}",
            "cpus": str(args.cpu),
            "out": str(Path(folder) / "cell"),
        }
        command = [str(Path(sys.executable).parent / "rtmeter"), "measure", "wakeup"]
        command += [part for key, value in (options | more).items() for part in (f"--{key}", value)]
        command += ["--lock-memory", "--cpu-dma-latency", "--wait", "--json", *flags]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=args.limit_s)
    cell = json.loads(done.stdout)
    assert cell["valid"], cell
    served = cell["quantities"]["latency"]["as_served"]
    return {name: float(served[f"{name}_ns"]) for name in names}


def save(name: str, result: dict[str, Any]) -> Path:
    """Writes build/bench/NAME.json with the machine's facts and the command beside the result."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), "command": sys.argv, **result}, indent=2) + "\n")
    return path
