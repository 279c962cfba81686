"""Bounds of a miss ratio, what dependence costs them, and how long a run has to be.

Bounds are one-sided, each at the stated confidence, and exact for independent releases (Clopper and
Pearson, Biometrika 26, 1934). Releases that miss in clusters count for less: n and misses are both divided
by a design effect before the exact bound is taken (Korn and Graubard, Survey Methodology 24, 1998).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import scipy

NS_PER_HOUR = 3_600_000_000_000

MOST_FURTHER = 10**15
"""Where the search for the releases that would pass ends: 30,000 years at 1 kHz."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The run that a requirement needs: releases and hours if ``misses_allowed`` of them miss."""

    misses_allowed: int
    releases: int
    hours: float


_SCIPYS_HOLE = 1000


def miss_ratio_bounds(
    misses: float, n: float, confidence: float, design_effect: float = 1.0
) -> tuple[float, float]:
    """Lower and upper one-sided bound of the miss ratio; (0, 1) without releases."""
    if n == 0:
        return 0.0, 1.0
    worth, missed = n / design_effect, misses / design_effect
    return _lower(missed, worth, confidence), _upper(missed, worth, confidence)


def _lower(misses: float, n: float, confidence: float) -> float:
    return _beta_quantile(misses, n - misses + 1, 1 - confidence) if misses > 0 else 0.0


def _upper(misses: float, n: float, confidence: float) -> float:
    return _beta_quantile(misses + 1, n - misses, confidence) if misses < n else 1.0


def _beta_quantile(a: float, b: float, share: float) -> float:
    """B⁻¹(share; a, b). SciPy 1.17 is wrong where a or b is exactly 1000 and the other above some 1e8, by a
    factor of two at 1e10; a ten-thousand-millionth beside it, it is right."""
    aside_a, aside_b = (shape * (1 + 1e-10) if shape == _SCIPYS_HOLE else shape for shape in (a, b))
    return float(scipy.special.betaincinv(aside_a, aside_b, share))


def per_hour(ratio: float, period_ns: int) -> float:
    """Misses an hour at a miss ratio."""
    return ratio * NS_PER_HOUR / period_ns


def hours(releases: float, period_ns: int) -> float:
    """How long that many releases take."""
    return releases * period_ns / NS_PER_HOUR


def releases_needed(
    misses: int, miss_ratio: float, confidence: float, design_effect: float = 1.0, at_least: int = 1
) -> int:
    """The fewest releases, not under ``at_least``, of which ``misses`` may miss for the upper bound to be
    at most ``miss_ratio`` (between 0 and 1)."""

    def enough(n: int) -> bool:
        return miss_ratio_bounds(misses, n, confidence, design_effect)[1] <= miss_ratio

    return first(enough, max(at_least, misses, 1))


def further_releases(
    misses: int, n: int, miss_ratio: float, confidence: float, design_effect: float = 1.0
) -> int | None:
    """The fewest further releases after n, all in time, that bring the upper bound to ``miss_ratio``;
    None if more than MOST_FURTHER."""
    if miss_ratio_bounds(misses, n + MOST_FURTHER, confidence, design_effect)[1] > miss_ratio:
        return None
    return releases_needed(misses, miss_ratio, confidence, design_effect, at_least=n) - n


def beyond_the_horizon(misses: int, n: int, miss_ratio: float, horizon: float) -> bool:
    """Whether the misses of n releases alone are more than ``horizon`` times as many may have: then not even
    that long a run without a further miss meets the ratio, however misses hang together. Of a system that
    misses as often as allowed this is seen in at most 1 / horizon of its runs (Markov's inequality).

    Divided, not multiplied out: 110 / (10 * 1000) is 0.011 in floats too, and 0.011 * 10 * 1000 below 110."""
    return misses / (horizon * n) > miss_ratio


def misses_allowed(n: int, miss_ratio: float, confidence: float, design_effect: float = 1.0) -> int | None:
    """The most misses of n releases with which the upper bound is at most ``miss_ratio``; None if it is
    above even without one."""

    def too_many(misses: int) -> bool:
        return miss_ratio_bounds(misses, n, confidence, design_effect)[1] > miss_ratio

    return None if too_many(0) else first(too_many, 1) - 1


def expected_releases_needed(
    misses: int,
    n: int,
    miss_ratio: float,
    confidence: float,
    design_effect: float = 1.0,
    at_least: int | None = None,
) -> int | None:
    """The releases, not under ``at_least`` (None: n), that a pass needs if all of them miss as often as
    those seen; None if that leads to no pass, because the ratio seen is not below ``miss_ratio``."""
    seen = misses / n

    def enough(total: int) -> bool:
        return miss_ratio_bounds(seen * total, total, confidence, design_effect)[1] <= miss_ratio

    if seen >= miss_ratio or not enough(n + MOST_FURTHER):
        return None
    return first(enough, n if at_least is None else at_least)


def first(enough: Callable[[int], bool], start: int) -> int:
    """The smallest number from ``start`` on that is enough, where all larger ones are too."""
    low, high = start - 1, start
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def design_effect_of(extremal_index: float) -> float:
    """What clusters of geometric size with that extremal index divide n by."""
    return (2 - extremal_index) / extremal_index


def cluster_of(design_effect: float) -> float:
    """The mean size of clusters of geometric size that divide n by that much."""
    return (design_effect + 1) / 2


def plan(
    miss_ratio: float, confidence: float, period_ns: int, design_effect: float = 1.0, most_misses: int = 5
) -> list[Plan]:
    """The run lengths that would pass ``miss_ratio`` with 0 to ``most_misses`` misses."""
    plans = []
    for misses in range(most_misses + 1):
        releases = releases_needed(misses, miss_ratio, confidence, design_effect)
        plans.append(Plan(misses, releases, hours(releases, period_ns)))
    return plans
