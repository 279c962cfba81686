"""Is B better or worse than A? Shifts of quantiles and of the miss ratio, with intervals that hold together.

Of one run each, each quantity has an interval in each run; their difference has the interval that follows
from both ends (MOVER: Zou and Donner, Statistics in Medicine 27, 2008). Of pairs of runs the shift is the
effect of a factor of two levels (effects.py): what a factor is told by, two cells are told by. The intervals
are widened so that all of them hold at once with the stated confidence (Bonferroni): two systems that are
alike are rarely called different.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import scipy

from rtmeter.statistics import over_quantities
from rtmeter.statistics.effects import Effect, Pair, Stratum, effect, odds_at
from rtmeter.statistics.estimates import each_of
from rtmeter.statistics.halving import RATIO
from rtmeter.statistics.quantiles import Estimate
from rtmeter.statistics.ranks import fewest, share_of
from rtmeter.statistics.words import MOST_TIMES

ShiftOutcome = Literal["better", "worse", "no difference", "not told", "not enough data"]


@dataclass(frozen=True, slots=True)
class Shift:
    """The difference B - A of one quantity (``p99.9`` in ns, ``miss_ratio``): A's and B's values, the
    difference, its two-sided interval, and what it says. Ends are NaN if a run is too short. ``effect``: of
    pairs of runs that of B against A, whose interval this one's is where A is as its mean."""

    quantity: str
    a: float
    b: float
    difference: float
    lower: float
    upper: float
    effect: Effect | None = None

    @property
    def outcome(self) -> ShiftOutcome:
        """Of this quantity alone."""
        if self.effect is not None:
            return self.effect.said
        if math.isnan(self.lower) or math.isnan(self.upper):
            return "not enough data"
        if self.lower > 0:
            return "worse"
        if self.upper < 0:
            return "better"
        return "no difference" if self.halving_ruled_out else "not told"

    @property
    def halving_ruled_out(self) -> bool:
        """Whether the interval lies within a half and the double of A. A time that is not above zero has
        neither: there nothing may differ at all. Of a ratio without a miss that says nothing, but where so
        few releases do not even rule out a half."""
        if self.a <= 0 and self.quantity != RATIO:
            return self.lower == self.upper == 0
        if self.a <= 0:
            return self.b == 0 and self.upper < 0.5
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
    def effects(self) -> list[Effect]:
        """Those of B against A, over pairs of runs."""
        return [one.effect for one in self.shifts if one.effect is not None]

    @property
    def outcome(self) -> ShiftOutcome:
        """Of pairs as of a factor. Of one run each worse if anything is; not told if the quantity that
        decides is not; else better if anything is.

        It decides the miss ratio where anything missed, else p99, of shorter runs a lower quantile. Of these
        nothing good is told where p99, as far as it was seen, is beyond a half or the double."""
        if self.effects:
            return over_quantities.together(self.effects)
        outcomes = {shift.outcome for shift in self.shifts}
        if "worse" in outcomes:
            return "worse"
        decides, p99 = self._decides, self._unbounded
        far = p99 is not None and p99.a > 0 and not -p99.a / 2 < p99.difference < p99.a
        if decides is not None and (far or decides.outcome == "not told"):
            return "not told"
        for outcome in ("better", "no difference", "not told"):
            if outcome in outcomes:
                return outcome
        return "not enough data"

    @property
    def _decides(self) -> Shift | None:
        """Of one run each the quantity that decides."""
        known = {one.quantity: one for one in self.shifts if one.outcome != "not enough data"}
        ratio = known.pop(RATIO, None)
        missed = ratio is not None and bool(ratio.a or ratio.b)
        lower = (known[name] for name in ("p99", "p90", "p50") if name in known)
        return ratio if missed else next(lower, ratio)

    @property
    def _unbounded(self) -> Shift | None:
        """p99, where a run is too short for its interval."""
        return next((s for s in self.shifts if s.quantity == "p99" and s.outcome == "not enough data"), None)

    @property
    def where(self) -> str:
        """At which quantities it is so, where it is not by the one that decides, in words; else empty. Of one
        run each, where it is well: by which quantity, if not by the miss ratio or p99, and what is not told.
        """
        found, outcome = self.effects, self.outcome
        if found:
            return over_quantities.where(found, over_quantities.together(found))
        if outcome not in ("better", "no difference"):
            return ""
        untold = ", ".join(one.quantity.replace("_", " ") for one in self.shifts if one.outcome == "not told")
        more = [f"not told of {untold}"] if untold else []
        more += ["too short a run for p99"] if self._unbounded else []
        decides = self._decides
        by = f" by {decides.quantity}" if decides is not None and decides.quantity in ("p90", "p50") else ""
        return by + (f" ({'; '.join(more)})" if more else "")


def compare(pairs: Sequence[Pair], *, added: bool = False) -> Comparison:
    """A and B of one pair of runs, or of pairs that were measured interleaved; all hold the same
    quantities. ``added``: as ``shift``."""
    names = pairs[0][0].quantities
    several = len(pairs) if len(pairs) > 1 else 0
    shifts = tuple(shift(name, pairs, added=added) for name in names)
    return Comparison(pairs[0][0].confidence, shifts, several)


def shift(
    quantity: str,
    pairs: Sequence[Pair],
    factor: float = 1.0,
    allowance: float = 0.0,
    *,
    added: bool = False,
) -> Shift:
    """B's quantity less ``factor`` times A's and an ``allowance``.

    Of one pair the interval follows from both runs' own, of several from the effect of B against A, its
    quotient, or the difference where it is asked what B has ``added`` to A. A quantile that is the maximum of
    the shortest run has none.
    """
    known = [(a.quantities[quantity], b.quantities[quantity]) for a, b in pairs]
    shortest = min(run.n for pair in pairs for run in pair)
    short = quantity != RATIO and shortest < fewest(share_of(quantity[1:]))
    if len(pairs) > 1:
        each = each_of(pairs[0][0].confidence, len(pairs[0][0].quantities))
        found = effect(quantity, [Stratum({}, tuple(pairs))], each, added=added)
        return _of_effect(found, pairs, factor, allowance, short=short)
    ((a, b),) = known
    difference = _less(b.value, factor * a.value) - allowance
    if short:
        return Shift(quantity, a.value, b.value, difference, math.nan, math.nan)
    lower, upper = mover(a.times(factor), b)
    return Shift(quantity, a.value, b.value, difference, lower - allowance, upper - allowance)


def _of_effect(
    found: Effect, pairs: Sequence[Pair], factor: float, allowance: float, *, short: bool
) -> Shift:
    """What B is where A is as its mean, less ``factor`` times that and an ``allowance``: no further below
    than A itself. An upper end so far up that so few pairs say nothing of it is NaN."""
    quantity = found.quantity
    a, b = found.reference, found.level
    difference = _less(b, factor * a) - allowance
    if short:
        return Shift(quantity, a, b, difference, math.nan, math.nan)
    if math.isinf(difference) and found.said in ("better", "worse"):  # one of the two is lost, and it is sure
        return Shift(quantity, a, b, difference, difference, difference, found)
    at = float(scipy.special.expit(odds_at(a, pairs))) if quantity == RATIO else a
    lower, upper = (end - factor * at - allowance for end in found.level_interval or (math.nan, math.nan))
    if quantity == RATIO:
        # The mean of ratios need not be that of their odds; no ratio is below none, or above all.
        lower, upper = min(lower, difference), max(upper, difference)
        none = -factor * (a or at) - allowance
        lower, upper = max(lower, none), min(upper, none + 1)
    elif found.upper > MOST_TIMES * found.times:
        upper = math.nan
    return Shift(quantity, a, b, difference, lower, upper, found)


def mover(a: Estimate, b: Estimate) -> tuple[float, float]:
    """The interval of b - a. Infinite is a lost release: where a value is one, or is not known, the interval
    is that of the furthest ends, and of two that may be lost it is not known which was later."""
    if not (math.isfinite(a.value) and math.isfinite(b.value)):
        return _less(b.lower, a.upper), _less(b.upper, a.lower)
    difference = _less(b.value, a.value)
    lower = difference - math.hypot(_less(b.value, b.lower), _less(a.upper, a.value))
    upper = difference + math.hypot(_less(b.upper, b.value), _less(a.value, a.lower))
    return lower, upper


def _less(b: float, a: float) -> float:
    """b - a, where two lost releases do not differ."""
    return 0.0 if b == a else float(b - a)
