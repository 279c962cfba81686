"""Does anything grow or drift in a run of an hour? Resident memory, descriptors and threads of the probes
and of the front every few seconds while one cell is measured, and what the front says of it afterwards.

    .venv/bin/python bench/long_runs.py hour -- measure roundtrip --adapter cyclonedds --duration 1h
    .venv/bin/python bench/long_runs.py cycle -- run campaigns/demo.yaml --only 'measurement==wakeup'

A run's figures go to build/bench/long_NAME.json. The first fifth of it is its start.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from common import ROOT, machine_line, save
from probe_24h import resident_kib

STAMPS = ("response_received_ns", "received_ns", "callback_ns", "wake_ns")
ROLES = ("single", "client", "server")
Figures = tuple[int, int, int]
"""Resident KiB, open descriptors, threads."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two looks")
    parser.add_argument("command", nargs="+", help="of rtmeter, one cell")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        out = Path(folder) / "out"
        command = [sys.executable, "-m", "rtmeter", *args.command, "--out", str(out)]
        loads = [os.getloadavg()[0]]
        seen: dict[str, list[Figures]] = {}
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as front:
            while front.poll() is None:
                for role, figures in looks(front.pid):
                    seen.setdefault(role, []).append(figures)
                loads.append(os.getloadavg()[0])
                time.sleep(args.every)
        result = {"exit_code": front.returncode, "load": [min(loads), max(loads)]}
        result |= {"seen": {role: grown(figures) for role, figures in seen.items()}}
        result |= told(*out.rglob("cell.json"))
    print(machine_line())
    print(json.dumps(result, indent=2))
    print(save(f"long_{args.name}", result | {"every": seen}))


def looks(front: int) -> Iterator[tuple[str, Figures]]:
    """Role → figures of the probes that the front has started, and of itself while one of them runs."""
    probes = list(probes_of(front))
    for role, pid in [*probes, ("front", front)] if probes else []:
        figures = look(pid)
        if figures is not None:
            yield role, figures


def probes_of(front: int) -> Iterator[tuple[str, int]]:
    """Role and process id of each."""
    for children in Path(f"/proc/{front}/task").glob("*/children"):
        for pid in children.read_text().split():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_text()
            except OSError:
                continue
            yield from ((role, int(pid)) for role in ROLES if f"{role}.config.json" in words)


def look(pid: int) -> Figures | None:
    """None once it has ended."""
    kib = resident_kib(pid)
    try:
        counts = [len(list(Path(f"/proc/{pid}/{what}").iterdir())) for what in ("fd", "task")]
    except OSError:
        return None
    return None if kib is None else (kib, counts[0], counts[1])


def grown(figures: list[Figures]) -> dict[str, Any]:
    """After the first fifth: the first figure, the largest, and the last."""
    warm = figures[len(figures) // 5 :]
    names = ("resident_kib", "descriptors", "threads")
    columns = zip(names, zip(*warm, strict=True), strict=True)
    looked: dict[str, Any] = {"looks": len(figures)}
    return looked | {name: [column[0], max(column), column[-1]] for name, column in columns}


def told(cell: Path) -> dict[str, Any]:
    """What the front says of the one cell, and its latency, tenth by tenth."""
    record = json.loads(cell.read_text())
    verdict = record["verdict"] or {"outcome": None, "reason": None}
    support = verdict.get("support") or dict.fromkeys(("growth", "slope_interval_ns_per_s", "accumulated_ns"))
    return {
        "cell": record["id"],
        "outcome": {name: record[name] for name in ("status", "valid", "missing", "error", "counters")},
        "identity": record["summary"]["identity"],
        "verdict": {name: verdict[name] for name in ("outcome", "reason")},
        "drift": {name: support[name] for name in ("growth", "slope_interval_ns_per_s", "accumulated_ns")},
        "warnings": [(doubt["type"], doubt["message"]) for doubt in record["warnings"]],
        "bytes": {path.name: path.stat().st_size for path in sorted(cell.parent.iterdir())},
        "p50_us_by_tenths": tenths(cell.with_name("samples.parquet")),
    }


def tenths(samples: Path) -> list[float]:
    """Medians of what was served, in the order of the run."""
    table = pq.read_table(samples)
    end, start = (
        table[next(name for name in names if name in table.column_names)].to_numpy().astype(float)
        for names in (STAMPS, ("release_ns", "armed_before_ns"))
    )
    served = pc.and_(pc.equal(table["status"].cast("string"), "served"), pc.invert(table["warm_up"]))
    there = served.to_numpy(zero_copy_only=False)
    return [round(float(np.median(part)) / 1e3, 1) for part in np.array_split((end - start)[there], 10)]


if __name__ == "__main__":
    main()
