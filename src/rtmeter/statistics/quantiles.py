"""Quantiles of a run with intervals that allow for dependence.

A quantile is the exact order statistic, and the ends of its interval are order statistics too: those at the
exact binomial bounds of its share (Woodruff, JASA 47, 1952), with n divided by the design effect of what the
end rests on: the upper one of the values that exceed the quantile, the lower one of these and its equals,
which of values in coarse steps are another series (worth.py). (A moving-block bootstrap agrees,
at a thousand times the cost: tests/statistics/test_quantiles.py.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from rtmeter.statistics.blocks import blocks_of
from rtmeter.statistics.bounds import miss_ratio_bounds
from rtmeter.statistics.order import partition
from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.ranks import quantile_index, share_of
from rtmeter.statistics.tail import above
from rtmeter.statistics.views import LATER
from rtmeter.statistics.worth import design_effect, worth

COMPARED = ("50", "90", "99", "99.9", "99.99")
"""Percentages whose quantiles are compared of one run each, as they are written."""

OVER_RUNS = ("50", "99", "99.9")
"""Of several runs each, of two cells or of a factor: fewer, since all intervals have to hold together."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A quantile in ns, or a miss ratio, of a run with its two-sided interval. An end is NaN where the
    run is too short to have one; infinite is a lost release. ``design_effect``: n counted as n / that, of a
    quantile at the end where it counted for less.
    ``known``: whether the value is more than the least that it may be."""

    value: float
    lower: float
    upper: float
    design_effect: float
    known: bool = True

    def times(self, factor: float) -> Estimate:
        """The estimate of a positive multiple."""
        value, lower, upper = (factor * one for one in (self.value, self.lower, self.upper))
        return replace(self, value=value, lower=lower, upper=upper)


def quantiles(values: Ints, percents: Sequence[str], confidence: float) -> dict[str, Estimate]:
    """The quantiles of a run (ns per release in order, shape (n,), LATER where lost), each with an
    interval at ``confidence``, by percentage."""
    n = len(values)
    shares = {percent: share_of(percent) for percent in percents}
    ordered = values.copy()
    partition(ordered, sorted({quantile_index(n, share) for share in shares.values()}))
    centres = {percent: int(ordered[quantile_index(n, share)]) for percent, share in shares.items()}
    blocks = blocks_of(values)
    ends, effects = {}, {}
    for percent, share in shares.items():
        from_here, beyond = (design_effect(values, centres[percent] - less, blocks) for less in (1, 0))
        lower, _ = interval_ends(n, share, confidence, from_here)
        _, upper = interval_ends(n, share, confidence, beyond)
        ends[percent], effects[percent] = (lower, upper), max(from_here, beyond)
    wanted = sorted({end for pair in ends.values() for end in pair if end is not None})
    partition(ordered, wanted)
    found = {}
    for percent, (lower, upper) in ends.items():
        value = _time(centres[percent])
        found[percent] = Estimate(value, _at(ordered, lower), _at(ordered, upper), effects[percent])
    return found


def miss_ratio(
    values: Ints, deadline_ns: int, confidence: float, missed: npt.NDArray[np.bool_] | None = None
) -> Estimate:
    """The ratio of values above the deadline, and of releases that ``missed`` whatever their value, with its
    two-sided interval at ``confidence``."""
    n, misses = len(values), above(values, deadline_ns)
    if missed is not None:
        misses = np.union1d(misses, np.flatnonzero(missed))
    effect = worth(values, misses, deadline_ns, blocks_of(values)).design_effect
    bounds = miss_ratio_bounds(len(misses), n, (1 + confidence) / 2, effect)
    return Estimate(len(misses) / n, *bounds, effect)


def interval_ends(
    n: int, share: Fraction, confidence: float, effect: float = 1.0
) -> tuple[int | None, int | None]:
    """Indices in ascending order of the ends of a quantile's interval; None where n is too small.

    ``n * share`` is rounded once. Rounded twice (``n * float(share)``) it moves an end only where the bound
    itself lies so near a whole release that its own rounding decides: of none of 12,000 n drawn up to 10^12.
    """
    low, high = miss_ratio_bounds(float(n * share), n, (1 + confidence) / 2, effect)
    first, last = math.floor(n * low) - 1, math.ceil(n * high)
    return (first if first >= 0 else None, last if last < n else None)


def _at(ordered: Ints, index: int | None) -> float:
    return math.nan if index is None else _time(int(ordered[index]))


def _time(value: int) -> float:
    return math.inf if value == LATER else float(value)
