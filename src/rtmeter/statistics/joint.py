"""What the runs of one condition are worth together: dependence within each, and how far they lie apart.

The variance of the sum of misses is at least what dependence within the runs makes it. Where the runs lie
further apart than that explains, their spread decides: n counts as n / (the dispersion of the runs' misses),
and as that is known from few runs only, also as n / (t / z)², Student's quantile for it over the normal one
(Korn and Graubard, Survey Methodology 24, 1998, with the runs as their clusters).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import ndtri, stdtrit

from rtmeter.statistics.bounds import miss_ratio_bounds

MOST_RUNS = 10_000


@dataclass(frozen=True, slots=True)
class RunMisses:
    """Of one run: releases, misses and what dependence within it divides n by."""

    n: int
    misses: int
    design_effect: float


@dataclass(frozen=True, slots=True)
class Joint:
    """Of all runs of a condition: ``within``: what dependence divides n by; ``dispersion``: the variance of
    the runs' misses over that of independent releases (0 where it is not seen: one run, no miss, only
    misses); ``design_effect``: what n is divided by, for a bound at the confidence that was asked."""

    n: int
    misses: int
    runs: int
    within: float
    dispersion: float
    design_effect: float

    @property
    def apart(self) -> bool:
        """Whether the runs lie further apart than dependence within them explains."""
        return _beyond(self.dispersion, self.within)


def joint(runs: Sequence[RunMisses], confidence: float) -> Joint:
    """Of at least one run with releases."""
    n, misses = sum(run.n for run in runs), sum(run.misses for run in runs)
    within = sum(run.n * run.design_effect for run in runs) / n
    dispersion = _dispersion(runs, misses / n)
    effect = within
    if _beyond(dispersion, within):
        effect = dispersion * _of_few(len(runs), confidence)
    return Joint(n, misses, len(runs), within, dispersion, min(effect, float(n)))


def runs_needed(found: Joint, miss_ratio: float, confidence: float) -> int | None:
    """Of runs that lie apart: the fewest such runs, missing as often and lying as far apart, whose upper
    bound is at most ``miss_ratio``; None if none are enough."""
    a_run, missed = found.n / found.runs, found.misses / found.runs

    def bound(runs: int) -> float:
        effect = max(found.within, found.dispersion * _of_few(runs, confidence))
        n = runs * a_run
        return miss_ratio_bounds(runs * missed, n, confidence, min(effect, n))[1]

    low, high = found.runs, MOST_RUNS
    if high <= low or bound(high) > miss_ratio:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= miss_ratio else (middle, high)
    return high


def _dispersion(runs: Sequence[RunMisses], ratio: float) -> float:
    """Pearson's statistic of the runs' misses over its degrees of freedom."""
    counted = [run for run in runs if run.n]
    if len(counted) < 2 or not 0 < ratio < 1:
        return 0.0
    squares = sum((run.misses - run.n * ratio) ** 2 / (run.n * ratio * (1 - ratio)) for run in counted)
    n = sum(run.n for run in counted)
    return squares / (len(counted) - 1) * (n - 1) / n  # of one miss exactly 1


def _beyond(dispersion: float, within: float) -> bool:
    return dispersion > within * (1 + 1e-9)


def _of_few(runs: int, confidence: float) -> float:
    normal = float(ndtri(confidence))
    return max(1.0, (float(stdtrit(runs - 1, confidence)) / normal) ** 2) if normal > 0 else 1.0
