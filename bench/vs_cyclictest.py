"""rtmeter's wake-up measurement beside cyclictest's, in interleaved pairs under the same settings.

Pairs are added until the 95 % interval of each bounded ratio (rtmeter / cyclictest, median over pairs)
lies below its bound, or until the limit; a ratio not below its bound by then is "not shown". Looking
after every pair makes the interval a little optimistic; the least number of pairs limits that.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from common import Ratio, machine_line, save, wakeup_quantiles

QUANTILES = {"p50": 0.50, "p99": 0.99, "p99_9": 0.999}
BOUNDS = {"p50": 1.02, "p99": 1.05}
Pair = tuple[dict[str, float], dict[str, float]]  # rtmeter's quantiles, cyclictest's

HISTOGRAM_NS = 1_000_000  # the largest that cyclictest takes; with --nsecs its bins are 1 ns


def cyclictest_quantiles(args: argparse.Namespace) -> dict[str, float]:
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


def judge(pairs: list[Pair]) -> dict[str, Ratio]:
    """The ratio of each quantile that can be told. A pair in which cyclictest's lies beyond its histogram
    is left out of that quantile, which is never to our advantage."""
    known = {name: [(o[name], t[name]) for o, t in pairs if np.isfinite(t[name])] for name in QUANTILES}
    return {name: Ratio.of(known[name], BOUNDS.get(name)) for name in QUANTILES if known[name]}


def print_table(args: argparse.Namespace, judged: dict[str, Ratio]) -> None:
    print(f"\n\n{machine_line()}")
    print(f"fifo:{args.priority}, {args.period_us} us, CPU {args.cpu}, {args.samples:,} samples a run\n")
    print("| latency as served | rtmeter, us | cyclictest, us | ratio | 95 % interval | bound | pairs | |")
    print("|---|---|---|---|---|---|---|---|")
    for name, r in judged.items():
        figures = f"{r.ours / 1e3:.1f} | {r.theirs / 1e3:.1f} | {r.ratio:.3f} | {r.low:.3f} to {r.high:.3f}"
        print(f"| {name.replace('_', '.')} | {figures} | {r.bound or 'none'} | {r.pairs} | {r.outcome} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=5000, help="releases a run")
    parser.add_argument("--period-us", type=int, default=1000)
    parser.add_argument("--priority", type=int, default=80)
    parser.add_argument("--cpu", type=int, default=1)
    parser.add_argument("--least-pairs", type=int, default=20)
    parser.add_argument("--most-pairs", type=int, default=200)
    args = parser.parse_args()
    args.limit_s = 60 + 3 * args.samples * args.period_us / 1e6

    pairs: list[Pair] = []
    while True:
        if len(pairs) % 2 == 0:
            ours = wakeup_quantiles(args, QUANTILES)
            theirs = cyclictest_quantiles(args)
        else:
            theirs = cyclictest_quantiles(args)
            ours = wakeup_quantiles(args, QUANTILES)
        pairs.append((ours, theirs))
        judged = judge(pairs)
        so_far = ", ".join(f"{name} {r.ratio:.3f} ({r.high:.3f})" for name, r in judged.items())
        print(f"\rpair {len(pairs)}: {so_far}", end="", flush=True)
        shown = all(name in judged and judged[name].outcome == "shown" for name in BOUNDS)
        if len(pairs) >= args.most_pairs or (shown and len(pairs) >= args.least_pairs):
            break
    print_table(args, judged)
    ratios = {name: r.to_json() for name, r in judged.items()}
    print(f"\n{save('vs_cyclictest', {'settings': vars(args), 'ratios': ratios, 'pairs': pairs})}")


if __name__ == "__main__":
    main()
