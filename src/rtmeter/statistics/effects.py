"""What a factor does: the effect of a level against the reference, over all that it is matched over.

A quantile is compared by its quotient and a miss ratio by its odds, both on the logarithm: so an interval of
a quotient stays above zero, and that of a ratio within 0 and 1 (Agresti, Categorical Data Analysis, 2013,
chapters 2 and 3; half a miss is added to each side, Haldane, Annals of Human Genetics 20, 1956). Repeats of
matched cells make pairs; their spread around the mean of their stratum, pooled over strata, is the spread
between runs, with Student's distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from rtmeter.statistics.estimates import Estimates, each_of
from rtmeter.statistics.halving import HALVING, MOST_REPEATS, RATIO, log_odds, repeats_to_show
from rtmeter.statistics.quantiles import Estimate

Said = Literal["better", "worse", "no difference", "not told"]

Pair = tuple[Estimates, Estimates]
"""A run at the reference, and the matched one at the level."""


_LOST_END = "a run's own interval ends at a lost release: how late it may be is not known"

_RISK_OF_INTERACTIONS = 0.2
"""The share of the risk that is theirs: what a factor does over all is asked first."""


def confidences(confidence: float, effects: int, contrasts: int) -> tuple[float, float]:
    """That of each effect, and of each level of another factor at which one may differ from that over all,
    so that all of them hold together (Bonferroni)."""
    share = _RISK_OF_INTERACTIONS if contrasts else 0.0
    risk = 1 - confidence
    return each_of(1 - (1 - share) * risk, effects), each_of(1 - share * risk, max(1, contrasts))


@dataclass(frozen=True, slots=True)
class Stratum:
    """Matched runs: the levels of all other factors, and the pairs of repeats, one at least."""

    others: Mapping[str, str]
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """Of a level on one quantity: its means at the reference and at the level (ns, or a ratio; infinite:
    lost), ``times``: the quotient, of a ratio that of the odds, with its interval ``lower`` to ``upper``, all
    above 0; NaN where there is none, and ``words`` says why. ``level_interval``: what the level is where the
    reference is its mean (of a ratio half a miss is added to each side of a run). ``repeats``: how many runs
    of each cell would show a halving, or rule it out; ``repeats_seen``: how many would tell what was seen,
    where that is more than a halving; None where it is told already, or that cannot be said. ``apart``: by
    how much a run differs from another, the standard deviation of the logarithm of their quotient, no less
    than their own intervals leave open; NaN where that is not seen."""

    quantity: str
    reference: float
    level: float
    times: float
    lower: float
    upper: float
    said: Said
    level_interval: tuple[float, float] | None = None
    repeats: int | None = None
    repeats_seen: int | None = None
    words: str = ""
    apart: float = math.nan

    @property
    def none_above(self) -> float:
        """The quotient above which there is no difference, either way: 1 where nothing differs at all."""
        return max(self.upper, 1 / self.lower) if self.lower > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Interaction:
    """Where a level's effect on a quantity depends on another factor more than it is large: the effect at one
    level of that factor, with its interval; ``overall``: the effect over all of them."""

    quantity: str
    factor: str
    at: str
    times: float
    lower: float
    upper: float
    overall: float

    @property
    def said(self) -> Said:
        """What the effect at that level is by itself."""
        return "worse" if self.lower > 1 else "better" if self.upper < 1 else "not told"


@dataclass(frozen=True, slots=True)
class _Spread:
    """Of the pairs' differences: the mean of each stratum, how many pairs it has, what its runs' intervals
    leave open of that mean, and the variance of a difference between runs with its degrees of freedom."""

    means: np.ndarray
    counts: np.ndarray
    own: np.ndarray
    variance: float
    freedom: int
    between_strata: bool

    @property
    def apart(self) -> float:
        """The standard deviation of a difference between runs."""
        return math.sqrt(self.variance)

    def apart_at_least(self, each: float) -> float:
        """That, and no less than the runs' own intervals at ``each`` leave open of the mean's."""
        own = math.sqrt(float(np.sum(self.own**2) / len(self.own) * self.counts.mean()))
        return max(self.apart, own / float(scipy.special.ndtri((1 + each) / 2)))

    def reach(self, weights: np.ndarray, each: float) -> float:
        """Half the width of the interval of a weighted sum of the strata's means; NaN without a spread,
        infinite where an end of a run's own is lost."""
        if self.freedom < 1:
            return math.nan
        error = math.sqrt(self.variance * float(np.sum(weights**2 / self.counts)))
        student = float(scipy.special.stdtrit(self.freedom, (1 + each) / 2)) * error
        return max(student, math.sqrt(float(np.sum((weights * self.own) ** 2))))

    def repeats(self, each: float, size: float = HALVING) -> int | None:
        """The fewest runs of each cell with which the mean's interval reaches no further than ``size``."""
        strata, now = len(self.means), float(self.counts.mean())
        own = math.sqrt(float(np.sum(self.own**2))) / strata
        runs, least = repeats_to_show(self.apart, strata, each, size), math.ceil(now * (own / size) ** 2)
        return max(runs, least) if runs is not None and least <= MOST_REPEATS else None


def effect(quantity: str, strata: Sequence[Stratum], each: float, *, added: bool = False) -> Effect:
    """The effect over all strata alike, its interval at the confidence ``each``. Of times that are not all
    above zero it is the difference, and has no quotient; so where it is asked what is ``added``."""
    known = [[(a.quantities[quantity], b.quantities[quantity]) for a, b in one.pairs] for one in strata]
    runs = [pair for pairs in known for pair in pairs]
    first, second = (_mean([pair[side] for pair in runs], quantity) for side in (0, 1))
    if words := _not_known(known):
        return Effect(
            quantity, first, second, math.nan, math.nan, math.nan, _by_lost(runs, each), words=words
        )
    positive = _has_quotient(quantity, known)
    quotient = positive and not (added and quantity != RATIO)
    if not quotient:
        first, second = (float(np.mean([pair[side].value for pair in runs])) for side in (0, 1))
    spread = _spread(quantity, strata, each, _log if quotient else _plain)
    middle = float(spread.means.mean())
    reach = spread.reach(np.full(len(strata), 1 / len(strata)), each)
    times = math.exp(middle) if quotient else math.nan
    if not math.isfinite(reach):
        words = _LOST_END if math.isinf(reach) else "one run each: how runs differ anyway is not seen"
        return Effect(quantity, first, second, times, math.nan, math.nan, "not told", words=words)
    lower, upper = middle - reach, middle + reach
    if not quotient:
        said = _said(lower, upper, -first / 2, first)
        ends = (max(first + lower, 0.0) if positive else first + lower, first + upper)
        words = "" if positive else "not above zero in every run: no quotient"
        return Effect(quantity, first, second, times, math.nan, math.nan, said, ends, words=words)
    said = _said(lower, upper, -HALVING, HALVING)
    ends = (first * _times(lower), first * _times(upper))
    if quantity == RATIO:
        at = odds_at(first, [pair for one in strata for pair in one.pairs])
        ends = (float(scipy.special.expit(at + lower)), float(scipy.special.expit(at + upper)))
        if not any(estimate.value for pair in runs for estimate in pair):
            words = "no miss in any run"
    untold = said == "not told" and not spread.between_strata and not words
    return Effect(
        quantity,
        first,
        second,
        times,
        _times(lower),
        _times(upper),
        said,
        ends,
        spread.repeats(each) if untold else None,
        spread.repeats(each, abs(middle)) if untold and abs(middle) > HALVING else None,
        words,
        math.nan if spread.between_strata else spread.apart_at_least(each),
    )


def runs_apart(quantity: str, cells: Sequence[Sequence[Estimates]]) -> float:
    """By how much a run of a cell differs from another of it, as ``Effect.apart``: pooled over cells; NaN
    without two runs of one, or where a quantity has no logarithm."""
    runs = [[run.quantities[quantity] for run in cell] for cell in cells]
    known = all(one.known and math.isfinite(one.value) for cell in runs for one in cell)
    known = known and (quantity == RATIO or all(one.value > 0 for cell in runs for one in cell))
    freedom = sum(len(cell) - 1 for cell in cells)
    if not (known and freedom):
        return math.nan
    logs = [np.array([_log(quantity, run, run.confidence)[0] for run in cell]) for cell in cells]
    squares = sum(float(np.sum((one - one.mean()) ** 2)) for one in logs)
    return math.sqrt(2 * squares / freedom)


def odds_at(ratio: float, pairs: Sequence[Pair]) -> float:
    """The logarithm of the odds of a ratio, half a miss added to each side of a mean run at the reference."""
    n = float(np.mean([a.n for a, _ in pairs]))
    return math.log((ratio * n + 0.5) / (n - ratio * n + 0.5))


def interactions(quantity: str, strata: Sequence[Stratum], each: float) -> list[Interaction]:
    """The levels of other factors at which the effect differs from that over all by more than it is large,
    and by more than runs differ anyway at the confidence ``each``; none where cells have one run each."""
    known = [[(a.quantities[quantity], b.quantities[quantity]) for a, b in one.pairs] for one in strata]
    if _not_known(known) or not _has_quotient(quantity, known):
        return []
    spread = _spread(quantity, strata, each, _log)
    if spread.between_strata or spread.freedom < 1:
        return []
    overall, found = float(spread.means.mean()), []
    for factor in strata[0].others:
        values = [one.others[factor] for one in strata]
        for value in dict.fromkeys(values):
            there = np.array([one == value for one in values])
            if there.all():
                continue
            weights = there / there.sum()
            here = float(np.sum(weights * spread.means))
            apart, reach = here - overall, spread.reach(weights - 1 / len(strata), each)
            if abs(apart) > max(abs(overall), reach):
                wide = spread.reach(weights, each)
                ends = math.exp(here), math.exp(here - wide), math.exp(here + wide)
                found.append(Interaction(quantity, factor, value, *ends, math.exp(overall)))
    return found


_Scale = Callable[[str, Estimates, float], tuple[float, float]]
"""A run's quantity on a scale, and how far its own interval at a confidence reaches there on either side:
infinitely, where an end of it is lost."""


def _spread(quantity: str, strata: Sequence[Stratum], each: float, scale: _Scale) -> _Spread:
    differences, own = [], []
    for one in strata:
        runs = [tuple(scale(quantity, run, each) for run in pair) for pair in one.pairs]
        differences.append(np.array([b[0] - a[0] for a, b in runs]))
        own.append(math.sqrt(sum(a[1] ** 2 + b[1] ** 2 for a, b in runs)) / len(runs))
    counts = np.array([len(one) for one in differences])
    means = np.array([one.mean() for one in differences])
    freedom = int(np.sum(counts - 1))
    between = freedom == 0 and len(strata) > 1
    if between:
        variance, freedom = float(means.var(ddof=1)), len(strata) - 1
    else:
        squares = sum(float(np.sum((one - one.mean()) ** 2)) for one in differences)
        variance = squares / freedom if freedom else math.nan
    return _Spread(means, counts, np.array(own), variance, freedom, between)


def _log(quantity: str, run: Estimates, each: float) -> tuple[float, float]:
    """On the logarithm; of a ratio that of its odds."""
    one = run.quantities[quantity]
    if quantity == RATIO:
        odds, error = log_odds(one, run.n)
        return odds, float(scipy.special.ndtri((1 + each) / 2)) * error
    ends = [math.log(end / one.value) for end in (one.lower, one.upper) if end > 0]
    return math.log(one.value), max((abs(end) for end in ends), default=0.0)


def _plain(quantity: str, run: Estimates, each: float) -> tuple[float, float]:
    """As it is, in ns."""
    one = run.quantities[quantity]
    ends = (abs(end - one.value) for end in (one.lower, one.upper) if not math.isnan(end))
    return one.value, max(ends, default=0.0)


def _times(log: float) -> float:
    """The quotient of a logarithm; infinite where no float holds it."""
    return math.exp(log) if log < _LARGEST_LOG else math.inf


_LARGEST_LOG = 700.0


def _said(lower: float, upper: float, half: float, double: float) -> Said:
    if lower > 0:
        return "worse"
    if upper < 0:
        return "better"
    return "no difference" if (half < lower and upper < double) or lower == upper == 0 else "not told"


def _not_known(known: Sequence[Sequence[tuple[Estimate, Estimate]]]) -> str:
    """Why a quantity has no number in every run; empty if it has."""
    runs = [pair for pairs in known for pair in pairs]
    values = [[pair[side].value for pair in runs] for side in (0, 1)]
    if any(math.isnan(one.value) or not one.known for pair in runs for one in pair):
        return "not known of every run"
    lost = [sum(math.isinf(value) for value in side) for side in values]
    if any(lost):
        return f"lost in {lost[0]} of {len(runs)} runs at the reference, in {lost[1]} of {len(runs)} here"
    return ""


def _has_quotient(quantity: str, known: Sequence[Sequence[tuple[Estimate, Estimate]]]) -> bool:
    """Whether its values have one in every pair: a ratio's odds always do."""
    return quantity == RATIO or all(one.value > 0 for pairs in known for pair in pairs for one in pair)


def _by_lost(pairs: Sequence[tuple[Estimate, Estimate]], each: float) -> Said:
    """Where the quantity is lost in every run on one side, and in none on the other, of two pairs or more:
    sure by the runs' own intervals, or by their number. Runs that are alike come to that in one case of
    4^pairs at most, and as often the other way round."""
    lost = [{math.isinf(pair[side].value) for pair in pairs} for side in (0, 1)]
    if len(pairs) < 2 or any(math.isnan(pair[side].value) for pair in pairs for side in (0, 1)):
        return "not told"
    if lost == [{True}, {True}]:
        return "no difference"
    if lost not in ([{False}, {True}], [{True}, {False}]):
        return "not told"
    later = 1 if lost[1] == {True} else 0
    sure = all(math.isinf(pair[later].lower) and pair[1 - later].upper < math.inf for pair in pairs)
    if not sure and 2 * 0.25 ** len(pairs) > 1 - each:
        return "not told"
    return "worse" if later else "better"


def _mean(estimates: Sequence[Estimate], quantity: str) -> float:
    """Of a ratio the mean, of times above zero the geometric one; infinite if a run's is lost, NaN if it is
    not known."""
    values = np.array([one.value if one.known else math.nan for one in estimates])
    if quantity == RATIO or not (np.isfinite(values).all() and (values > 0).all()):
        return float(values.mean())
    return float(np.exp(np.log(values).mean()))
