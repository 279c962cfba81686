"""Quantiles of a run with intervals that allow for dependence.

A quantile is the exact order statistic, and the ends of its interval are order statistics too: those at the
exact binomial bounds of its share (Woodruff, JASA 47, 1952), with n divided by the design effect of the
exceedances of the quantile, from blocks and, in the tail, from clusters. (A moving-block bootstrap agrees,
at a thousand times the cost: tests/statistics/test_quantiles.py.)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rtmeter.statistics.blocks import FEWEST_BLOCKS, MOST_BLOCKS, SMALLEST_BLOCK
from rtmeter.statistics.bounds import miss_ratio_bounds
from rtmeter.statistics.clusters import dependence
from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.ranks import quantile_index, share_of
from rtmeter.statistics.tail import above, block_edges
from rtmeter.statistics.trend import inflation
from rtmeter.statistics.views import LATER

COMPARED = ("50", "90", "99", "99.9", "99.99")
"""Percentages whose quantiles are compared, as they are written."""

RARE = 0.02
"""A share of exceedances small enough to come in clusters."""

OVERDISPERSED = 1.3
"""Variance of a block's exceedances over that of independent ones that chance does not explain."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A quantile in ns, or a miss ratio, of a run with its two-sided interval. An end is NaN where the
    run is too short to have one; infinite is a lost release. ``design_effect``: n counted as n / that."""

    value: float
    lower: float
    upper: float
    design_effect: float

    def times(self, factor: float) -> Estimate:
        """The estimate of a positive multiple."""
        return Estimate(factor * self.value, factor * self.lower, factor * self.upper, self.design_effect)


def quantiles(values: Ints, percents: Sequence[str], confidence: float) -> dict[str, Estimate]:
    """The quantiles of a run (ns per release in order, shape (n,), LATER where lost), each with an
    interval at ``confidence``, by percentage."""
    n = len(values)
    shares = {percent: share_of(percent) for percent in percents}
    ordered = np.partition(values, sorted({quantile_index(n, share) for share in shares.values()}))
    centres = {percent: int(ordered[quantile_index(n, share)]) for percent, share in shares.items()}
    effects = {percent: design_effect(values, centre) for percent, centre in centres.items()}
    ends = {p: interval_ends(n, share, confidence, effects[p]) for p, share in shares.items()}
    wanted = sorted({end for pair in ends.values() for end in pair if end is not None})
    ordered.partition(wanted or [0])
    found = {}
    for percent, (lower, upper) in ends.items():
        value = _time(centres[percent])
        found[percent] = Estimate(value, _at(ordered, lower), _at(ordered, upper), effects[percent])
    return found


def miss_ratio(values: Ints, deadline_ns: int, confidence: float) -> Estimate:
    """The ratio of values above the deadline, with its two-sided interval at ``confidence``."""
    n = len(values)
    misses = sum(int(np.count_nonzero(part > deadline_ns)) for part in np.array_split(values, n // 2**20 + 1))
    effect = design_effect(values, deadline_ns)
    return Estimate(misses / n, *miss_ratio_bounds(misses, n, (1 + confidence) / 2, effect), effect)


def design_effect(values: Ints, limit: int) -> float:
    """By how much dependence raises the variance of the number of values above the limit, at least 1:
    what blocks show of it and, where exceedances are rare, what their clusters show."""
    n = len(values)
    blocks = min(MOST_BLOCKS, n // SMALLEST_BLOCK)
    if blocks < FEWEST_BLOCKS:
        return 1.0
    edges = block_edges(n, blocks)
    counts = np.array(
        [np.count_nonzero(values[a:b] > limit) for a, b in itertools.pairwise(edges)], dtype=np.float64
    )
    share = float(counts.sum()) / n
    if share in (0.0, 1.0):
        return 1.0
    dispersion = float(counts.var(ddof=1)) / (float(counts.mean()) * (1 - share))
    noise = OVERDISPERSED * math.sqrt(MOST_BLOCKS / blocks)
    effect = dispersion if dispersion > noise else 1.0
    if share < RARE:
        at = above(values, limit)
        effect = max(effect, dependence(at, at, limit, n).design_effect)
    return effect * inflation(counts)


def interval_ends(
    n: int, share: Fraction, confidence: float, effect: float = 1.0
) -> tuple[int | None, int | None]:
    """Indices in ascending order of the ends of a quantile's interval; None where n is too small."""
    low, high = miss_ratio_bounds(float(n * share), n, (1 + confidence) / 2, effect)
    first, last = math.floor(n * low) - 1, math.ceil(n * high)
    return (first if first >= 0 else None, last if last < n else None)


def _at(ordered: Ints, index: int | None) -> float:
    return math.nan if index is None else _time(int(ordered[index]))


def _time(value: int) -> float:
    return math.inf if value == LATER else float(value)
