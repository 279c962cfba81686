"""The two models of extremes: generalised Pareto above a threshold, generalised extreme value for maxima.

The shape xi is free: 0 is an exponential tail, above it is heavy, below it ends. SciPy's c is -xi for the
extreme value distribution and xi for the Pareto.
"""

from __future__ import annotations

import math

import numpy as np

from rtmeter.statistics.quantities import Floats

LARGEST_SHAPE = 2.0
SMALLEST_SHAPE = -0.75
"""Shapes outside are not looked at."""

NEARLY_ZERO = 1e-8
"""The shape that stands for 0, at which the formulas are not defined."""

LARGEST_EXPONENT = 700.0


def usable(shape: Floats) -> Floats:
    """The shapes, the nearest that is looked at in place of others, and NEARLY_ZERO for 0."""
    within = np.clip(shape, SMALLEST_SHAPE, LARGEST_SHAPE)
    return np.where(np.abs(within) < NEARLY_ZERO, NEARLY_ZERO, within)


def reduced(count: float, shape: Floats) -> Floats:
    """(count^shape - 1) / shape for shapes other than 0: scales above the threshold that one in ``count``
    exceeds."""
    return np.asarray(np.expm1(shape * math.log(count)) / shape)


class Pareto:
    """Excesses (ns, shape (k,)) over a threshold; level: the excess that one in ``count`` passes."""

    def __init__(self, excesses: Floats, count: float) -> None:
        self._excesses = np.sort(excesses)
        self._count = count

    def start(self) -> Floats:
        """Level and shape by probability-weighted moments (Hosking and Wallis, Technometrics 29, 1987)."""
        k = len(self._excesses)
        mean = float(self._excesses.mean())
        weighted = float(self._excesses @ (1 - (np.arange(k) + 0.65) / k)) / k
        shape = usable(np.clip(2 - mean / (mean - 2 * weighted), -0.4, 0.9))
        scale = max(2 * mean * weighted / (mean - 2 * weighted), 1e-3 * mean)
        return np.array([math.log(scale * reduced(self._count, shape)), shape])

    def nll(self, at: Floats) -> Floats:
        """Negative log-likelihood of points (log level, shape), shape (points, 2)."""
        shape = usable(at[:, 1])
        with np.errstate(all="ignore"):
            scale = np.exp(at[:, 0]) / reduced(self._count, shape)
            logs = np.log1p(np.multiply.outer(shape / scale, self._excesses)).sum(axis=1)
            found = len(self._excesses) * np.log(scale) + (1 + 1 / shape) * logs
        return np.where(np.isfinite(found), found, np.inf)

    def log_survival(self, at: Floats) -> Floats:
        """Logarithm of the probability of more than each excess, ascending excesses, shape (k,)."""
        shape = usable(at[1])
        scale = np.exp(at[0]) / reduced(self._count, shape)
        return np.asarray(-np.log1p(shape / scale * self._excesses) / shape)


class ExtremeValue:
    """Block maxima (ns, shape (blocks,)); level: what one block in ``count`` passes, on average over a
    long time: the extreme value distribution there is exp(-1 / count)."""

    def __init__(self, maxima: Floats, count: float) -> None:
        self._maxima = np.sort(maxima)
        self._count = count

    def start(self) -> Floats:
        """Logarithm of the level, shape and location by probability-weighted moments (Hosking, Wallis and
        Wood, Technometrics 27, 1985)."""
        n = len(self._maxima)
        rank = np.arange(n)
        b0 = float(self._maxima.mean())
        b1 = float(self._maxima @ rank) / (n * (n - 1))
        b2 = float(self._maxima @ (rank * (rank - 1))) / (n * (n - 1) * (n - 2))
        c = (2 * b1 - b0) / (3 * b2 - b0) - math.log(2) / math.log(3)
        k = float(usable(np.clip(7.859 * c + 2.9554 * c * c, -0.9, 0.4)))
        gamma = math.gamma(1 + k)
        spread = float(self._maxima[-1] - self._maxima[0])
        scale = max((2 * b1 - b0) * k / (gamma * (1 - 2**-k)), 1e-3 * spread)
        location = b0 + scale * (gamma - 1) / k
        level = location + scale * reduced(self._count, np.asarray(-k))
        return np.array([math.log(level), -k, location])

    def nll(self, at: Floats) -> Floats:
        """Negative log-likelihood of points (log level, shape, location), shape (points, 3)."""
        shape = usable(at[:, 1])
        with np.errstate(all="ignore"):
            scale, logs = self._logs(at.T[:, :, None])
            below = np.exp(np.minimum(-logs, LARGEST_EXPONENT)).sum(axis=1)
            found = len(self._maxima) * np.log(scale[:, 0]) + (1 + shape) * logs.sum(axis=1) + below
        return np.where(np.isfinite(found), found, np.inf)

    def log_survival(self, at: Floats) -> Floats:
        """Logarithm of the probability of more than each maximum, ascending maxima, shape (blocks,)."""
        return np.asarray(np.log(-np.expm1(-np.exp(-self._logs(at)[1]))))

    def _logs(self, at: Floats) -> tuple[Floats, Floats]:
        """The scale, and log(1 + shape z) / shape of the maxima's standard z."""
        log_level, shape, location = at[0], usable(at[1]), at[2]
        scale = (np.exp(log_level) - location) / reduced(self._count, shape)
        standard = (self._maxima - location) / scale
        return scale, np.asarray(np.log1p(shape * standard) / shape)
