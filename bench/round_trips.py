"""What the benchmarks of round trips share: one run of rtmeter, and figures taken second by second.

A run's figure is the median over its seconds, the first one left out: ddsperf prints per second only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from pairs import Bounds, Figures, add_limits

BOUNDS: Bounds = {"p50": 1.05, "p99": 1.05}
QUANTILES = {"p50": 0.50, "p99": 0.99}
PAYLOAD_BYTES = 500


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=int, default=6, help="a run")
    parser.add_argument("--rate-hz", type=int, default=1000)
    parser.add_argument("--priority", type=int, default=80)
    parser.add_argument("--cpu", type=int, default=1, help="the client's")
    parser.add_argument("--server-cpu", type=int, default=0)
    add_limits(parser)


def settings(args: argparse.Namespace) -> str:
    return f"fifo:{args.priority}, {args.rate_hz} Hz, {PAYLOAD_BYTES} B, {args.seconds} s a run"


def per_run(seconds: list[Figures]) -> Figures:
    """The median over the seconds of a run, the first left out."""
    return {name: float(np.median([second[name] for second in seconds[1:]])) for name in QUANTILES}


def per_second(second: npt.NDArray[np.int64], trips_ns: npt.NDArray[np.float64]) -> list[Figures]:
    """Quantiles of the round trips of each second; ``second`` says to which each belongs."""
    return [
        {n: float(np.quantile(trips, p, method="inverted_cdf")) for n, p in QUANTILES.items()}
        for k in range(int(second.max()) + 1)
        if len(trips := trips_ns[second == k])
    ]


def of_rtmeter(
    args: argparse.Namespace,
    adapter: str,
    environment: Mapping[str, str],
    options: Mapping[str, str],
    *more: str,
) -> Figures:
    """One run of rtmeter with the adapter's ``options`` and ``more``: its round trips in nanoseconds."""
    with tempfile.TemporaryDirectory() as folder:
        cell = Path(folder) / "cell"
        command = [str(Path(sys.executable).parent / "rtmeter"), "measure", "roundtrip", "--wait"]
        command += ["--adapter", adapter, "--period", f"{1e6 / args.rate_hz:.0f}us", "--warm-up", "0"]
        command += ["--duration", f"{args.seconds}s", "--payload", f"{PAYLOAD_BYTES}B", "--out", str(cell)]
        command += ["--scheduling", f"fifo:{args.priority}", *more]
        command += ["--cpus", str(args.cpu), "--server-cpus", str(args.server_cpu)]
        command += [part for key, value in options.items() for part in ("--option", f"{key}={value}")]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        rows = pq.read_table(cell / "samples.parquet", columns=["release_ns", "sent_ns", "received_ns"])
    release, sent, received = (rows[name].to_numpy(zero_copy_only=False) for name in rows.column_names)
    trips = received - sent
    came = np.isfinite(trips)
    return per_run(per_second((release - release[0])[came] // 1_000_000_000, trips[came]))
