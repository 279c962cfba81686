"""rtmeter's wake-up measurement beside cyclictest's, in interleaved pairs under the same settings."""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from common import wakeup_quantiles
from pairs import Bounds, Figures, add_limits, compare

QUANTILES = {"p50": 0.50, "p99": 0.99, "p99_9": 0.999}
BOUNDS: Bounds = {"p50": 1.02, "p99": 1.05, "p99_9": None}
HISTOGRAM_NS = 1_000_000  # the largest that cyclictest takes; with --nsecs its bins are 1 ns


def cyclictest_quantiles(args: argparse.Namespace) -> Figures:
    """One run of cyclictest (it locks cpu_dma_latency at 0 by itself), in nanoseconds; infinite where a
    quantile lies beyond its histogram."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = ["cyclictest", "--quiet", "--mlockall", "--threads=1", "--policy=fifo", "--nsecs"]
        command += [f"--priority={args.priority}", f"--interval={args.period_us}", f"--affinity={args.cpu}"]
        command += [f"--loops={args.samples}", f"--histogram={HISTOGRAM_NS}", f"--json={result}"]
        subprocess.run(command, check=True, capture_output=True, timeout=args.limit_s)
        histogram = json.loads(result.read_text())["thread"]["0"]["histogram"]
    values = np.array([int(value) for value in histogram], dtype=float)
    shares = np.cumsum([histogram[str(int(value))] for value in values]) / args.samples
    reached = {name: np.flatnonzero(shares >= p) for name, p in QUANTILES.items()}
    return {name: values[at[0]] if len(at) else float("inf") for name, at in reached.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=5000, help="releases a run")
    parser.add_argument("--period-us", type=int, default=1000)
    parser.add_argument("--priority", type=int, default=80)
    parser.add_argument("--cpu", type=int, default=1)
    add_limits(parser, most=200)
    args = parser.parse_args()
    args.limit_s = 60 + 3 * args.samples * args.period_us / 1e6
    compare(
        "vs_cyclictest",
        args,
        BOUNDS,
        lambda: wakeup_quantiles(args, QUANTILES),
        lambda: cyclictest_quantiles(args),
        their_name="cyclictest",
        what="latency as served",
        settings=f"fifo:{args.priority}, {args.period_us} us, CPU {args.cpu}, {args.samples:,} samples a run",
    )


if __name__ == "__main__":
    main()
