"""Ours beside another tool in interleaved pairs: run, judge, print, keep.

Pairs are added, the order alternating, until the 95 % interval of each bounded ratio (ours / theirs, median
over pairs) lies below its bound, or until the limit; a ratio not below its bound by then is "not shown".
Looking after every pair makes the interval a little optimistic; the least number of pairs limits that.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import numpy as np

from common import Ratio, machine_line, save

Figures = dict[str, float]  # nanoseconds by the quantile's name; infinite where the tool cannot tell
Bounds = Mapping[str, float | None]  # None: reported only


def add_limits(parser: argparse.ArgumentParser, least: int = 20, most: int = 100) -> None:
    parser.add_argument("--least-pairs", type=int, default=least)
    parser.add_argument("--most-pairs", type=int, default=most)


def judge(pairs: list[tuple[Figures, Figures]], bounds: Bounds) -> dict[str, Ratio]:
    """The ratio of each quantile that can be told. A pair in which theirs is unknown is left out of that
    quantile, which is never to our advantage."""
    known = {name: [(o[name], t[name]) for o, t in pairs if np.isfinite(t[name])] for name in bounds}
    return {name: Ratio.of(known[name], bounds[name]) for name in bounds if known[name]}


def compare(
    name: str,
    args: argparse.Namespace,
    bounds: Bounds,
    ours: Callable[[], Figures],
    theirs: Callable[[], Figures],
    *,
    their_name: str,
    what: str,
    settings: str,
) -> None:
    """Runs pairs, prints the table headed by ``what`` and ``settings``, and keeps build/bench/NAME.json."""
    pairs: list[tuple[Figures, Figures]] = []
    judged: dict[str, Ratio] = {}
    shown = False
    while len(pairs) < args.most_pairs and not (shown and len(pairs) >= args.least_pairs):
        if len(pairs) % 2 == 0:
            our_figures = ours()
            pairs.append((our_figures, theirs()))
        else:
            their_figures = theirs()
            pairs.append((ours(), their_figures))
        judged = judge(pairs, bounds)
        so_far = ", ".join(f"{quantile} {r.ratio:.3f} ({r.high:.3f})" for quantile, r in judged.items())
        print(f"\rpair {len(pairs)}: {so_far}", end="", flush=True)
        bounded = [quantile for quantile, bound in bounds.items() if bound is not None]
        shown = all(quantile in judged and judged[quantile].outcome == "shown" for quantile in bounded)
    print(f"\n\n{machine_line()}\n{settings}\n")
    print(f"| {what} | rtmeter, us | {their_name}, us | ratio | 95 % interval | bound | pairs | |")
    print("|---|---|---|---|---|---|---|---|")
    for quantile, r in judged.items():
        figures = f"{r.ours / 1e3:.1f} | {r.theirs / 1e3:.1f} | {r.ratio:.3f} | {r.low:.3f} to {r.high:.3f}"
        print(f"| {quantile.replace('_', '.')} | {figures} | {r.bound or 'none'} | {r.pairs} | {r.outcome} |")
    ratios = {quantile: r.to_json() for quantile, r in judged.items()}
    print(f"\n{save(name, {'settings': vars(args), 'ratios': ratios, 'pairs': pairs})}")
