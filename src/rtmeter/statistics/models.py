"""The two models of extremes: generalised Pareto above a threshold, generalised extreme value for maxima.

The shape xi is free: 0 is an exponential tail, above it is heavy, below it ends. SciPy's c is -xi for the
extreme value distribution and xi for the Pareto.
"""

from __future__ import annotations

import math

import numpy as np

from rtmeter.statistics.likelihood import IMPOSSIBLE
from rtmeter.statistics.trend import Floats

LARGEST_SHAPE = 2.0
SMALLEST_SHAPE = -0.75
"""Shapes outside are not looked at."""

NEARLY_ZERO = 1e-6
LARGEST_EXPONENT = 700.0


def reduced(count: float, shape: float) -> float:
    """(count^shape - 1) / shape, its logarithm at shape 0: scales above the threshold that one in
    ``count`` exceeds."""
    return math.log(count) if abs(shape) < NEARLY_ZERO else math.expm1(shape * math.log(count)) / shape


def _exp(values: Floats) -> Floats:
    return np.asarray(np.exp(np.minimum(values, LARGEST_EXPONENT)))


class Pareto:
    """Excesses (ns, shape (k,)) over a threshold; level: the excess that one in ``count`` passes."""

    def __init__(self, excesses: Floats, count: float) -> None:
        self._excesses = excesses
        self._count = count

    def start(self) -> Floats:
        """Level and shape by probability-weighted moments (Hosking and Wallis, Technometrics 29, 1987)."""
        ordered = np.sort(self._excesses)
        k = len(ordered)
        mean = float(ordered.mean())
        weighted = float(ordered @ (1 - (np.arange(k) + 0.65) / k)) / k
        shape = min(max(2 - mean / (mean - 2 * weighted), -0.4), 0.9)
        scale = max(2 * mean * weighted / (mean - 2 * weighted), 1e-3 * mean)
        return np.array([scale * reduced(self._count, shape), shape])

    def nll(self, at: Floats) -> float:
        """Negative log-likelihood of (level, shape)."""
        level, shape = float(at[0]), float(at[1])
        if level <= 0 or not SMALLEST_SHAPE < shape < LARGEST_SHAPE:
            return IMPOSSIBLE * (1 + abs(level) + abs(shape))
        scale = level / reduced(self._count, shape)
        if abs(shape) < NEARLY_ZERO:
            return len(self._excesses) * math.log(scale) + float(self._excesses.sum()) / scale
        inner = 1 + self._excesses * (shape / scale)
        if inner.min() <= 0:
            return IMPOSSIBLE * (1 - float(inner.min()))
        return len(inner) * math.log(scale) + (1 + 1 / shape) * float(np.log(inner).sum())

    def log_survival(self, at: Floats) -> Floats:
        """Logarithm of the probability of more than each excess, ascending excesses, shape (k,)."""
        level, shape = float(at[0]), float(at[1])
        standard = np.sort(self._excesses) * (reduced(self._count, shape) / level)
        return np.asarray(-standard if abs(shape) < NEARLY_ZERO else -np.log1p(shape * standard) / shape)


class ExtremeValue:
    """Block maxima (ns, shape (blocks,)); level: what one block in ``count`` passes, on average over a
    long time: the extreme value distribution there is exp(-1 / count)."""

    def __init__(self, maxima: Floats, count: float) -> None:
        self._maxima = maxima
        self._count = count

    def start(self) -> Floats:
        """Level, shape and logarithm of the scale by probability-weighted moments (Hosking, Wallis and
        Wood, Technometrics 27, 1985)."""
        ordered = np.sort(self._maxima)
        n = len(ordered)
        rank = np.arange(n)
        b0 = float(ordered.mean())
        b1 = float(ordered @ rank) / (n * (n - 1))
        b2 = float(ordered @ (rank * (rank - 1))) / (n * (n - 1) * (n - 2))
        c = (2 * b1 - b0) / (3 * b2 - b0) - math.log(2) / math.log(3)
        k = min(max(7.859 * c + 2.9554 * c * c, -0.9), 0.4)
        if abs(k) < NEARLY_ZERO:
            k = NEARLY_ZERO
        gamma = math.gamma(1 + k)
        scale = max((2 * b1 - b0) * k / (gamma * (1 - 2**-k)), 1e-3 * float(np.ptp(ordered)))
        location = b0 + scale * (gamma - 1) / k
        return np.array([location + scale * reduced(self._count, -k), -k, math.log(scale)])

    def nll(self, at: Floats) -> float:
        """Negative log-likelihood of (level, shape, log scale)."""
        level, shape, log_scale = (float(part) for part in at)
        if not SMALLEST_SHAPE < shape < LARGEST_SHAPE or abs(log_scale) > 60:
            return IMPOSSIBLE * (1 + abs(shape) + abs(log_scale))
        scale = math.exp(log_scale)
        location = level - scale * reduced(self._count, shape)
        standard = (self._maxima - location) / scale
        if abs(shape) < NEARLY_ZERO:
            return len(standard) * log_scale + float(standard.sum() + _exp(-standard).sum())
        inner = 1 + shape * standard
        if inner.min() <= 0:
            return IMPOSSIBLE * (1 - float(inner.min()))
        logs = np.log(inner)
        return len(logs) * log_scale + float((1 + 1 / shape) * logs.sum() + _exp(-logs / shape).sum())

    def log_survival(self, at: Floats) -> Floats:
        """Logarithm of the probability of more than each maximum, ascending maxima, shape (blocks,)."""
        level, shape, log_scale = (float(part) for part in at)
        scale = math.exp(log_scale)
        standard = (np.sort(self._maxima) - level) / scale + reduced(self._count, shape)
        if abs(shape) < NEARLY_ZERO:
            below = -np.exp(-standard)
        else:
            below = -np.power(1 + shape * standard, -1 / shape)
        return np.asarray(np.log(-np.expm1(below)))
