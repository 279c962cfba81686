"""What monitoring the machine costs on the measured CPU: wake-ups with all sampling on, over those with none.

Interleaved pairs, the order changing from pair to pair, as many as are asked for: no stopping as soon as
the result pleases. Shown if the 95 % interval of the median ratio of p50 lies below the bound.
"""

from __future__ import annotations

import argparse

from common import Ratio, machine_line, save, wakeup_quantiles

BOUNDS = {"p50": 1.02, "p99": None, "p99_9": None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=5000, help="releases a run")
    parser.add_argument("--period-us", type=int, default=1000)
    parser.add_argument("--priority", type=int, default=80)
    parser.add_argument("--cpu", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--monitor", default="1s", help="how often the machine is sampled")
    args = parser.parse_args()
    args.limit_s = 60 + 3 * args.samples * args.period_us / 1e6

    pairs: list[dict[str, dict[str, float]]] = []
    for number in range(args.pairs):
        order = (args.monitor, "0") if number % 2 == 0 else ("0", args.monitor)
        seen = {monitor: wakeup_quantiles(args, BOUNDS, monitor=monitor) for monitor in order}
        pairs.append({"on": seen[args.monitor], "off": seen["0"]})
        print(f"\rpair {number + 1} of {args.pairs}", end="", flush=True)

    print(f"\n\n{machine_line()}")
    print(f"fifo:{args.priority}, {args.period_us} us, CPU {args.cpu}, {args.samples:,} samples a run\n")
    every = f"sampled every {args.monitor}, us"
    print(f"| latency as served | {every} | never, us | ratio | 95 % interval | bound |")
    print("|---|---|---|---|---|---|")
    judged = {n: Ratio.of([(p["on"][n], p["off"][n]) for p in pairs], b) for n, b in BOUNDS.items()}
    for name, r in judged.items():
        figures = f"{r.ours / 1e3:.1f} | {r.theirs / 1e3:.1f} | {r.ratio:.3f} | {r.low:.3f} to {r.high:.3f}"
        print(f"| {name.replace('_', '.')} | {figures} | {r.bound or 'none'}: {r.outcome} |")
    ratios = {name: r.to_json() for name, r in judged.items()}
    print(f"\n{save('monitor_cost', {'settings': vars(args), 'ratios': ratios, 'pairs': pairs})}")


if __name__ == "__main__":
    main()
