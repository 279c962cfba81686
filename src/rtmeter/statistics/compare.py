"""Is B better or worse than A? Shifts of quantiles and of the miss ratio, with intervals that hold together.

Each quantity has an interval in each run; their difference has the interval that follows from both ends
(MOVER: Zou and Donner, Statistics in Medicine 27, 2008). The intervals are widened so that all of them hold
at once with the stated confidence (Bonferroni): two runs of one distribution are rarely called different.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy

from rtmeter.statistics.drift import Bools
from rtmeter.statistics.halving import HALVING, RATIO, log_odds, repeats_to_show_halving
from rtmeter.statistics.quantiles import COMPARED, Estimate, miss_ratio, quantiles
from rtmeter.statistics.quantities import Floats, Ints
from rtmeter.statistics.ranks import fewest, share_of

ShiftOutcome = Literal["better", "worse", "no difference", "not told", "not enough data"]


@dataclass(frozen=True, slots=True)
class Estimates:
    """What a comparison needs of a run: n, and by name (``p99.9``, ``miss_ratio``) each quantity's value
    and interval, widened so that the differences of all hold together at ``confidence``."""

    n: int
    confidence: float
    quantities: dict[str, Estimate]


@dataclass(frozen=True, slots=True)
class Shift:
    """The difference B - A of one quantity (``p99.9`` in ns, ``miss_ratio``): A's and B's values, the
    difference, its two-sided interval, and what it says. Ends are NaN if a run is too short. ``repeats``: how
    many pairs of runs would show half or twice as much; None where that is told, or cannot be said."""

    quantity: str
    a: float
    b: float
    difference: float
    lower: float
    upper: float
    repeats: int | None = None

    @property
    def outcome(self) -> ShiftOutcome:
        """Of this quantity alone."""
        if math.isnan(self.lower) or math.isnan(self.upper):
            return "not enough data"
        if self.lower > 0:
            return "worse"
        if self.upper < 0:
            return "better"
        return "no difference" if self.halving_ruled_out else "not told"

    @property
    def halving_ruled_out(self) -> bool:
        """Whether the interval lies within a half and the double of A; of a time that is not above zero that
        says nothing, nor of a ratio without a miss."""
        if self.a <= 0:
            return self.quantity != RATIO or self.b == 0
        return self.lower > -self.a / 2 and self.upper < self.a

    @property
    def relative(self) -> float:
        """The difference as a share of A; NaN if A is zero or negative."""
        return self.difference / self.a if self.a > 0 else math.nan


@dataclass(frozen=True, slots=True)
class Comparison:
    """The shifts of all quantities, which hold together at ``confidence``. ``pairs``: how many pairs of
    runs they come from; 0 if from one run each, whose difference from run to run is not seen."""

    confidence: float
    shifts: tuple[Shift, ...]
    pairs: int

    @property
    def outcome(self) -> ShiftOutcome:
        """Worse if anything is; not told if the quantity that decides is not; else better if anything is.

        It decides the miss ratio where anything missed, else p99, of shorter runs a lower quantile."""
        outcomes = {shift.outcome for shift in self.shifts}
        if "worse" in outcomes:
            return "worse"
        known = {one.quantity: one for one in self.shifts if one.outcome != "not enough data"}
        ratio = known.pop(RATIO, None)
        missed = ratio is not None and bool(ratio.a or ratio.b)
        lower = (known[name] for name in ("p99", "p90", "p50") if name in known)
        decides = ratio if missed else next(lower, ratio)
        if decides is not None and decides.outcome == "not told":
            return "not told"
        for outcome in ("better", "no difference", "not told"):
            if outcome in outcomes:
                return outcome
        return "not enough data"

    @property
    def repeats(self) -> int | None:
        """How many pairs of runs tell what is not told; None if it cannot be said."""
        return max((one.repeats for one in self.shifts if one.repeats), default=None)


def estimates(
    values: Ints,
    deadline_ns: int | None,
    confidence: float = 0.95,
    percents: Sequence[str] = COMPARED,
    missed: Bools | None = None,
) -> Estimates:
    """The estimates of a run (ns per release in order, shape (n,), LATER where lost); with a deadline
    also that of the miss ratio, where ``missed`` releases miss whatever their value."""
    shared = each_of(confidence, len(percents) + (deadline_ns is not None))
    found = {f"p{percent}": one for percent, one in quantiles(values, percents, shared).items()}
    if deadline_ns is not None:
        found["miss_ratio"] = miss_ratio(values, deadline_ns, shared, missed)
    return Estimates(len(values), confidence, found)


def compare(pairs: Sequence[tuple[Estimates, Estimates]]) -> Comparison:
    """A and B of one pair of runs, or of pairs that were measured interleaved; all hold the same
    quantities."""
    names = pairs[0][0].quantities
    several = len(pairs) if len(pairs) > 1 else 0
    return Comparison(pairs[0][0].confidence, tuple(shift(name, pairs) for name in names), several)


def shift(
    quantity: str, pairs: Sequence[tuple[Estimates, Estimates]], factor: float = 1.0, allowance: float = 0.0
) -> Shift:
    """B's quantity less ``factor`` times A's and an ``allowance``.

    Of one pair the interval follows from both runs' own. Of several it is Student's over the pairs: what
    differs from run to run is in it, and what both runs of a pair share is not. It is no narrower than the
    runs' own intervals leave the mean open: pairs that happen to agree, as counts and coarse values do,
    would else seem sure. A quantile that is the maximum of the shortest run has none.
    """
    known = [(a.quantities[quantity], b.quantities[quantity]) for a, b in pairs]
    first, second = (np.array([run.value for run in runs]) for runs in zip(*known, strict=True))
    differences = [_less(b, factor * a) - allowance for a, b in zip(first, second, strict=True)]
    one_way = not {-math.inf, math.inf} <= set(differences)
    difference = float(np.mean(differences)) if one_way else math.nan
    if quantity != RATIO and min(run.n for pair in pairs for run in pair) < fewest(share_of(quantity[1:])):
        return Shift(quantity, float(first.mean()), float(second.mean()), difference, math.nan, math.nan)
    if len(pairs) == 1:
        lower, upper = mover(known[0][0].times(factor), known[0][1])
        lower, upper = lower - allowance, upper - allowance
    else:
        reach = _student(np.array(differences), each_of(pairs[0][0].confidence, len(pairs[0][0].quantities)))
        below, above = _within(known, factor)
        lower, upper = (
            difference - float(np.maximum(reach, below)),
            difference + float(np.maximum(reach, above)),
        )
    found = Shift(quantity, float(first.mean()), float(second.mean()), difference, lower, upper)
    if len(pairs) == 1:
        return found
    if quantity == RATIO:
        return _of_ratios(found, pairs, factor, allowance)
    if found.outcome != "not told" or not np.isfinite(differences).all():
        return found
    each = each_of(pairs[0][0].confidence, len(pairs[0][0].quantities))
    spread = float(np.std(differences, ddof=1))
    return replace(found, repeats=repeats_to_show_halving(spread * HALVING / (found.a / 2), 1, each))


def _of_ratios(
    found: Shift, pairs: Sequence[tuple[Estimates, Estimates]], factor: float, allowance: float
) -> Shift:
    """With the interval that the odds have over the pairs (Student's, on their logarithm, and no narrower
    than the runs' own): what B's ratio is where A's is its mean. It never leaves 0 and 1. For a share of A's
    ratio the interval of the difference is kept within what ratios can differ by."""
    if math.isnan(found.lower):
        return found
    if factor != 1:
        least, most = -factor - allowance, 1 - allowance
        return replace(found, lower=max(found.lower, least), upper=min(found.upper, most))
    each = each_of(pairs[0][0].confidence, len(pairs[0][0].quantities))
    odds = [[log_odds(run.quantities[RATIO], run.n) for run in pair] for pair in pairs]
    apart = np.array([b[0] - a[0] for a, b in odds])
    own = (
        float(scipy.special.ndtri((1 + each) / 2))
        * math.sqrt(sum(a[1] ** 2 + b[1] ** 2 for a, b in odds))
        / len(pairs)
    )
    reach = max(_student(apart, each), own)
    least = 0.5 / max(run.n for pair in pairs for run in pair)
    share = min(max(found.a, least), 1 - least)
    at, middle = math.log(share / (1 - share)), float(apart.mean())
    lower, upper = (float(scipy.special.expit(at + middle + side * reach)) - share for side in (-1, 1))
    ends = min(lower, found.difference + allowance), max(upper, found.difference + allowance)
    shifted = replace(found, lower=ends[0] - allowance, upper=ends[1] - allowance)
    if shifted.outcome != "not told":
        return shifted
    needed = repeats_to_show_halving(float(apart.std(ddof=1)), 1, each)
    return replace(shifted, repeats=needed)


def mover(a: Estimate, b: Estimate) -> tuple[float, float]:
    """The interval of b - a. Infinite is a lost release: where a value is one, the interval is that of the
    furthest ends, and of two that may be lost it is not known which was later."""
    if math.isinf(a.value) or math.isinf(b.value):
        return _less(b.lower, a.upper), _less(b.upper, a.lower)
    difference = _less(b.value, a.value)
    lower = difference - math.hypot(_less(b.value, b.lower), _less(a.upper, a.value))
    upper = difference + math.hypot(_less(b.upper, b.value), _less(a.value, a.lower))
    return lower, upper


def each_of(confidence: float, count: int) -> float:
    """The confidence each of ``count`` intervals needs for all to hold at ``confidence``."""
    return 1 - (1 - confidence) / count


def _less(b: float, a: float) -> float:
    """b - a, where two lost releases do not differ."""
    return 0.0 if b == a else float(b - a)


def _within(pairs: Sequence[tuple[Estimate, Estimate]], factor: float) -> tuple[float, float]:
    """How far below and above the mean difference the runs' own intervals reach; a run that is too short to
    have one adds nothing."""
    reach: tuple[list[float], list[float]] = ([], [])
    for a, b in pairs:
        difference, (lower, upper) = _less(b.value, factor * a.value), mover(a.times(factor), b)
        for side, end in zip(reach, (_less(difference, lower), _less(upper, difference)), strict=True):
            side.append(0.0 if math.isnan(end) else end)
    below, above = (math.hypot(*side) / len(pairs) for side in reach)
    return below, above


def _student(differences: Floats, confidence: float) -> float:
    """Half the width of Student's interval of the mean; NaN if a run's release was lost."""
    if not np.isfinite(differences).all():
        return math.nan
    count = len(differences)
    student = float(scipy.special.stdtrit(count - 1, (1 + confidence) / 2))
    return student * float(differences.std(ddof=1)) / math.sqrt(count)
