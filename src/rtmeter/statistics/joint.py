"""What the runs of one condition are worth together: dependence within each, and how far they lie apart.

The ratio of a run is a draw of its own around that of the condition: gamma, so that misses in runs are
negative binomial (Greenwood and Yule, Journal of the Royal Statistical Society 83, 1920), each cluster of
misses as one. How far runs lie apart few of them do not show: room is made for what cannot be ruled out,
a standard deviation of at most the ratio itself, and for what was seen where that is more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import betaincinv, chdtri, gammaincinv

from rtmeter.statistics.bounds import first, miss_ratio_bounds

MOST_RUNS = 10_000
MOST_ASSUMED = 1.0
"""The variance of the runs' ratios over the square of their mean for which room is made unseen, at most."""
OVERLOOKED = 0.2
"""The share of the bound's own risk that the spread may be overlooked with."""


@dataclass(frozen=True, slots=True)
class RunMisses:
    """Of one run: releases, misses and what dependence within it divides n by."""

    n: int
    misses: float
    design_effect: float


@dataclass(frozen=True, slots=True)
class Joint:
    """Of all runs of a condition: ``within``: what dependence divides n by; ``dispersion``: the variance of
    the runs' misses over that of independent releases (0 where it is not seen: one run, no miss, only
    misses); ``spread``: the standard deviation of the runs' ratios, over their mean, that room is made for;
    ``lower`` and ``upper``: the bounds of the miss ratio at the confidence that was asked;
    ``design_effect``: n / that many independent releases have that upper bound."""

    n: int
    misses: float
    runs: int
    within: float
    dispersion: float
    spread: float
    lower: float
    upper: float
    design_effect: float

    @property
    def apart(self) -> bool:
        """Whether the runs lie further apart than dependence within them explains."""
        return self.dispersion > self.within * (1 + 1e-9)


def joint(runs: Sequence[RunMisses], confidence: float) -> Joint:
    """Of at least one run with releases."""
    runs = [run for run in runs if run.n] or runs
    n, misses = sum(run.n for run in runs), sum(run.misses for run in runs)
    within = min(sum(run.n * run.design_effect for run in runs) / n, float(n))
    squares = sum(run.n * run.n for run in runs)
    dispersion = _dispersion(runs, misses / n)
    spread = _spread(n, misses, len(runs), squares, within, dispersion, confidence)
    lower, upper = _bounds(n, misses, n * n / squares, within, spread, confidence)
    if misses == 0:  # what the longest run says alone, others without a miss do not unsay
        upper = min(
            upper, *(miss_ratio_bounds(0, run.n, confidence, run.design_effect)[1] for run in {*runs})
        )
    effect = max(within, _equivalent(n, misses, upper, confidence)) if spread else within
    return Joint(n, misses, len(runs), within, dispersion, math.sqrt(spread), lower, upper, effect)


def misses_allowed(
    n: int, runs: int, miss_ratio: float, confidence: float, design_effect: float
) -> int | None:
    """The most misses of n releases, in runs that miss as often as each other, with which the upper bound is
    at most ``miss_ratio``; None if it is above even without one."""

    def too_many(misses: int) -> bool:
        return _alike(n, misses, runs, design_effect, confidence) > miss_ratio

    return None if too_many(0) else first(too_many, 1) - 1


def releases_needed(runs: int, miss_ratio: float, confidence: float, design_effect: float) -> int:
    """The fewest releases, in runs of one length without a miss, whose upper bound is at most
    ``miss_ratio``."""

    def enough(of_a_run: int) -> bool:
        return _alike(runs * of_a_run, 0, runs, design_effect, confidence) <= miss_ratio

    return runs * first(enough, 1)


def design_effect_allowed(n: int, runs: int, miss_ratio: float, confidence: float) -> float | None:
    """What dependence may at most divide n by for runs of one length without a miss to have an upper bound of
    at most ``miss_ratio``; None if the bound is above even where releases are independent."""

    def too_much(hundredths: int) -> bool:
        return _alike(n, 0, runs, hundredths / 100, confidence) > miss_ratio

    if too_much(100):
        return None
    if not too_much(100 * n):  # a single release, which they are at least, has such a bound
        return float(n)
    return (first(too_much, 101) - 1) / 100


def _alike(n: int, misses: int, runs: int, design_effect: float, confidence: float) -> float:
    return joint([RunMisses(n // runs, misses / runs, design_effect)] * runs, confidence).upper


def runs_needed(found: Joint, miss_ratio: float, confidence: float) -> int | None:
    """The fewest runs, missing as often and lying as far apart as those found, whose upper bound is at most
    ``miss_ratio``; None if none are enough."""
    a_run, missed = found.n / found.runs, found.misses / found.runs

    def enough(runs: int) -> bool:
        n, total = runs * a_run, runs * missed
        spread = _spread(n, total, runs, n * a_run, found.within, found.dispersion, confidence)
        return _bounds(n, total, runs, found.within, spread, confidence)[1] <= miss_ratio

    low, high = found.runs, MOST_RUNS
    if high <= low or not enough(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _dispersion(runs: Sequence[RunMisses], ratio: float) -> float:
    """Pearson's statistic of the runs' misses over its degrees of freedom."""
    if len(runs) < 2 or not 0 < ratio < 1:
        return 0.0
    squares = sum((run.misses - run.n * ratio) ** 2 / (run.n * ratio * (1 - ratio)) for run in runs)
    n = sum(run.n for run in runs)
    return squares / (len(runs) - 1) * (n - 1) / n  # of one miss exactly 1


def _spread(
    n: float, misses: float, runs: int, squares: float, within: float, dispersion: float, confidence: float
) -> float:
    """The variance of the runs' ratios over the square of their mean: what was seen, or up to MOST_ASSUMED
    what cannot be ruled out; of runs that nearly always miss there is no more than (1 - ratio)."""
    if runs < 2:
        return 0.0
    most = MOST_ASSUMED * (1 - misses / n)
    if misses == 0:
        return most
    freedom = runs - 1
    of_a_run = misses / n * (n - squares / n) / freedom
    seen = max(dispersion, within)  # it is not less; that it looks so is chance
    possible = seen * freedom / float(chdtri(freedom, 1 - OVERLOOKED * (1 - confidence)))
    return max((seen - within) / of_a_run, min(most, (possible - within) / of_a_run))


def _bounds(
    n: float, misses: float, runs: float, within: float, spread: float, confidence: float
) -> tuple[float, float]:
    """The exact bounds of independent releases, each times what the spread adds to it among rare ones.

    The lower one is that of a shape of 1 at least, that of runs of one length of which a single one missed.
    Misses in a run that is far shorter than others spread more, and by such a spread no miss at all is
    likeliest: of those that came it would say that the ratio is higher than what was seen, which at a
    confidence little above a half it would of runs of one length too: it is no higher."""
    lower, upper = miss_ratio_bounds(misses, n, confidence, within)
    if not spread:
        return lower, upper
    shape, missed, risk = runs / spread, misses / within, 1 - confidence
    upper *= _mean(shape, missed + 1, risk) / float(gammaincinv(missed + 1, confidence))
    least = float(gammaincinv(missed, risk)) if misses else 0.0
    fewest = _mean(max(1.0, shape), missed, confidence)
    lower = lower * fewest / least if least else 0.0  # below what a float can say
    return min(lower, misses / n), min(upper, 1.0)


def _mean(shape: float, more_than: float, chance: float) -> float:
    """The mean of the negative binomial distribution of that shape that stays below with that chance."""
    share = float(betaincinv(shape, more_than, chance))
    return shape * (1 - share) / share if share else math.inf


def _equivalent(n: int, misses: float, upper: float, confidence: float) -> float:
    """What n has to be divided by for the exact bound to be ``upper``."""
    if upper >= 1 or misses >= n:
        return float(n)
    if misses == 0:
        return min(float(n), n * math.log1p(-upper) / math.log(1 - confidence))

    def above(log_effect: float) -> float:
        return math.log(miss_ratio_bounds(misses, n, confidence, math.exp(log_effect))[1] / upper)

    low, high = 0.0, math.log(n)
    if above(low) >= 0:
        return 1.0
    if above(high) <= 0:
        return float(n)
    while high - low > 1e-4:  # by halves: scipy.optimize takes longer to import than this for many conditions
        middle = (low + high) / 2
        low, high = (low, middle) if above(middle) > 0 else (middle, high)
    return math.exp((low + high) / 2)
