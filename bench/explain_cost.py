"""What recording the kernel's events costs on the measured CPU: wake-ups with --explain over those without.

Interleaved pairs, the order changing from pair to pair, as many as are asked for. Shown if the 95 % interval
of the median ratio of p50 lies below the bound. Needs root.
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
    parser.add_argument("--events", help="which are recorded, as in events=interrupts+timers (all)")
    args = parser.parse_args()
    args.limit_s = 120 + 3 * args.samples * args.period_us / 1e6

    how = ["--explain-with", f"events={args.events}"] if args.events else ["--explain"]

    pairs: list[tuple[dict[str, float], dict[str, float]]] = []
    for number in range(args.pairs):
        seen = {on: wakeup_quantiles(args, BOUNDS, how * on) for on in (number % 2, 1 - number % 2)}
        pairs.append((seen[1], seen[0]))
        print(f"\rpair {number + 1} of {args.pairs}", end="", flush=True)

    print(f"\n\n{machine_line()}")
    print(f"fifo:{args.priority}, {args.period_us} us, CPU {args.cpu}, {args.samples:,} samples a run")
    print(f"events: {args.events or 'all'}\n")
    print("| quantile | recorded, us | not, us | ratio (95 % interval) | bound |")
    print("|---|---|---|---|---|")
    judged = {n: Ratio.of([(on[n], off[n]) for on, off in pairs], b) for n, b in BOUNDS.items()}
    for name, r in judged.items():
        figures = f"{r.ours / 1e3:.1f} | {r.theirs / 1e3:.1f} | {r.ratio:.3f} ({r.low:.3f} to {r.high:.3f})"
        print(f"| {name.replace('_', '.')} | {figures} | {r.bound or 'none'}: {r.outcome} |")
    ratios = {name: r.to_json() for name, r in judged.items()}
    print(f"\n{save('explain_cost', {'settings': vars(args), 'ratios': ratios, 'pairs': pairs})}")


if __name__ == "__main__":
    main()
