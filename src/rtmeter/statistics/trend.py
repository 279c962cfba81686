"""The slope of a noisy series: Theil and Sen's (Sen, JASA 63, 1968), with an interval that allows for
autocorrelation (after Hamed and Rao, J. Hydrology 204, 1998)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from rtmeter.statistics.quantities import Floats
from rtmeter.statistics.ranks import mid_ranks

CONFIDENCE = 0.99
"""Of the slope's interval, two-sided: false alarms in one run of a hundred."""

FEW = 12
"""Autocorrelated medians' worth that goes for one degree of freedom: so a level that wanders for a quarter of
the run is called drifting in less than one run of 20 (tests/statistics/test_drift.py)."""

SMALLEST_SHARE = 0.05
"""Growth over the run below this share of the jitter (interquartile range) is no drift."""


@dataclass(frozen=True, slots=True)
class Trend:
    """Slope of a delay in ns per s with its two-sided interval; ``accumulated_ns``: slope
    times the duration; ``jitter_ns``: interquartile range about the trend."""

    slope_ns_per_s: float
    lower_ns_per_s: float
    upper_ns_per_s: float
    accumulated_ns: float
    jitter_ns: float

    @property
    def significant(self) -> bool:
        """The interval excludes zero, and the growth is large enough to matter."""
        excluded = self.lower_ns_per_s > 0 or self.upper_ns_per_s < 0
        return excluded and abs(self.accumulated_ns) > SMALLEST_SHARE * self.jitter_ns


def trend(
    time_s: Floats,
    medians: Floats,
    duration_s: float,
    jitter_ns: float = 0.0,
    confidence: float = CONFIDENCE,
) -> Trend:
    """Theil-Sen slope of block medians against time and its interval, from order statistics of the
    pairwise slopes whose distance follows from the variance of Kendall's S.

    Where autocorrelation leaves few medians' worth, that variance is little known, and Student's quantile
    for so many takes the normal one's place: a level that wanders for as long as the run is no drift."""
    first, second = np.triu_indices(len(medians), 1)
    slopes = (medians[second] - medians[first]) / (time_s[second] - time_s[first])
    slopes.sort()
    slope = float(np.median(slopes))
    pairs, count = len(slopes), len(medians)
    inflated = inflation(medians - slope * time_s)
    variance = count * (count - 1) * (2 * count + 5) / 18 * inflated
    sided = (1 + confidence) / 2
    quantile = (
        scipy.special.ndtri(sided)
        if inflated == 1
        else scipy.special.stdtrit(max(1.0, count / inflated / FEW), sided)
    )
    reach = float(quantile) * math.sqrt(variance)
    lower = max(0, math.floor((pairs - reach) / 2) - 1)
    upper = min(pairs - 1, math.ceil((pairs + reach) / 2))
    return Trend(slope, float(slopes[lower]), float(slopes[upper]), slope * duration_s, jitter_ns)


def inflation(residuals: Floats) -> float:
    """By how much autocorrelation raises the variance of Kendall's S, at least 1: (1 + rho) / (1 - rho),
    the limit of Hamed and Rao's eq. 12 for a first-order process, with rho of the residuals' ranks.

    The estimate of rho is raised by its bias after a trend was taken out, about (2 + 4 rho) / count
    (Kendall, Biometrika 41, 1954), and ignored where independence would show it in one case of 40.
    """
    count = len(residuals)
    ranks = mid_ranks(residuals) - (count + 1) / 2
    power = float(ranks @ ranks)
    if power == 0:
        return 1.0
    rho = float(ranks[1:] @ ranks[:-1]) / power
    rho = min((rho + 2 / count) / (1 - 4 / count), 0.98)
    return (1 + rho) / (1 - rho) if rho > 1.96 / math.sqrt(count) else 1.0
