"""Which of very many series changed, with a bound on the share of false ones among those that are named.

Of each series the largest rank-sum statistic (Mann and Whitney, Annals of Mathematical Statistics 18, 1947)
over all splits, its probability times their number (Bonferroni), and none where the rule of change points
finds no change; of all of them those that Benjamini and Hochberg's step-up procedure rejects (Journal of the
Royal Statistical Society B 57, 1995). Series of like rigs depend on each other positively, if they do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from rtmeter.statistics.changes import change_points
from rtmeter.statistics.quantities import Floats
from rtmeter.statistics.ranks import mid_ranks

FALSE_SHARE = 0.05
FEWEST = 20
"""Values of a series in which changes are looked for: how often the rule finds one wrongly is known from
there on."""

_SHORTEST = 2


def unlike(series: Floats) -> float:
    """The probability that values in no order of their own come to as large a difference as this series
    (shape (values,)) has at some split; 1 if all are equal."""
    size = len(series)
    ranks = mid_ranks(series) - (size + 1) / 2
    power = float(ranks @ ranks)
    if size < 2 * _SHORTEST or power == 0:
        return 1.0
    left = np.arange(_SHORTEST, size - _SHORTEST + 1)
    sums = np.cumsum(ranks)[left - 1]
    deviation = np.sqrt(left * (size - left) * power / (size * (size - 1)))  # of a sample without replacement
    least = 2 * float(ndtr(-np.abs(sums / deviation).max()))
    return min(1.0, least * len(left))


def changed(all_series: Sequence[Floats], false_share: float = FALSE_SHARE) -> dict[int, list[int]]:
    """The places in each series (in order of time) at which it changed, by the series' number; those that did
    not are left out. Of those named at most ``false_share`` are expected to be false."""
    looked_at = [number for number, series in enumerate(all_series) if len(series) >= FEWEST]
    probabilities = np.ones(len(looked_at))
    places: dict[int, list[int]] = {}
    for place, number in enumerate(looked_at):
        probability = unlike(all_series[number])
        if probability <= false_share and (found := change_points(all_series[number])):
            probabilities[place], places[number] = probability, found
    named = dict(zip(looked_at, step_up(probabilities, false_share), strict=True))
    return {number: found for number, found in places.items() if named[number]}


def step_up(probabilities: Floats, false_share: float) -> list[bool]:
    """Which hypotheses Benjamini and Hochberg's procedure rejects."""
    count = len(probabilities)
    ordered = np.sort(probabilities)
    under = np.flatnonzero(ordered <= false_share * np.arange(1, count + 1) / max(count, 1))
    limit = ordered[under[-1]] if len(under) else -1.0
    return [bool(one) for one in probabilities <= limit]
