"""Tests of a series of blocks, on ranks: level stationarity and autocorrelation; and the time over which the
values of a short one hang together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from rtmeter.statistics.quantities import Floats
from rtmeter.statistics.ranks import mid_ranks

KPSS_LIMIT = 0.743
"""Passed by one stationary series in 100 (Anderson and Darling, Annals of Mathematical Statistics 23, 1952,
whose statistic has the same limit)."""


@dataclass(frozen=True, slots=True)
class Autocorrelation:
    """Ljung and Box's Q over ``lags`` lags, its probability under independence, and the largest
    autocorrelation in size, which is the effect."""

    q: float
    probability: float
    lags: int
    largest: float


def kpss(series: Floats) -> float:
    """Kwiatkowski, Phillips, Schmidt and Shin's statistic of level stationarity (J. Econometrics 54,
    1992) of the series' ranks, shape (blocks,), with Bartlett's window; 0 if they are all equal."""
    size = len(series)
    centred = mid_ranks(series) - (size + 1) / 2
    window = int(4 * (size / 100) ** 0.25)
    variance = float(centred @ centred) / size
    for lag in range(1, window + 1):
        weight = 1 - lag / (window + 1)
        variance += 2 * weight * float(centred[lag:] @ centred[:-lag]) / size
    if variance <= 0:
        return 0.0
    return float(np.square(np.cumsum(centred)).sum()) / (size**2 * variance)


def autocorrelation(series: Floats, lags: int = 10) -> Autocorrelation:
    """Ljung and Box's test (Biometrika 65, 1978) of the series' ranks, shape (blocks,)."""
    size = len(series)
    centred = mid_ranks(series) - (size + 1) / 2
    power = float(centred @ centred)
    if power == 0:
        return Autocorrelation(0.0, 1.0, lags, 0.0)
    rho = np.array([float(centred[lag:] @ centred[:-lag]) / power for lag in range(1, lags + 1)])
    q = size * (size + 2) * float((rho**2 / (size - np.arange(1, lags + 1))).sum())
    largest = float(rho[np.abs(rho).argmax()])
    return Autocorrelation(
        q, float(scipy.special.chdtrc(lags, q)) if math.isfinite(q) else 0.0, lags, largest
    )


def correlation_time(series: Floats) -> float:
    """By how much autocorrelation raises the variance of the sum of a series, shape (n,), over that of
    independent values, from 1 to n: the initial monotone sequence (Geyer, Statistical Science 7, 1992), the
    sum over lags up to where pairs of autocorrelations are no longer positive, each pair no more than the
    last."""
    size = len(series)
    centred = series - (series.mean() if size else 0.0)
    power = float(centred @ centred)
    if power == 0:
        return 1.0
    rho = np.correlate(centred, centred, "full")[size - 1 :] / power
    pairs = rho[: size // 2 * 2].reshape(-1, 2).sum(axis=1)
    positive = pairs[: int(np.argmax(pairs <= 0))] if (pairs <= 0).any() else pairs
    return min(max(2 * float(np.minimum.accumulate(positive).sum()) - 1, 1.0), float(size))
