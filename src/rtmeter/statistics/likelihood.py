"""Maximum likelihood and profile-likelihood intervals of a return level with a free shape.

A model of the tail is given by its negative log-likelihood as a function of the return level and of what is
free besides: so the interval is of the level itself, unsymmetrical as it has to be (Coles, An Introduction
to Statistical Modeling of Extreme Values, 2001, sections 2.6.6 and 3.3.4).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from rtmeter.statistics.quantities import Floats

NegativeLogLikelihood = Callable[[Floats], Floats]
"""Of points (log level, shape, …), an array of shape (points, parameters), for data scaled to the size of 1:
array of shape (points,), infinite where the data could not be."""

SMALLEST_REACH, LARGEST_REACH = 1e-3, 1.0
"""Of the first guess at an interval's end."""

FURTHEST_REACH = math.log(1e6)
OVERSHOOT = 1.05
PRECISION = 1e-3
"""In square roots of the likelihood's drop, of which an interval takes about 1.4."""

STENCIL = 1e-4
"""Distance of the points that derivatives are taken from; less next to what is impossible."""

FRACTIONS = np.append(0.0, 0.25 ** np.arange(6))
"""Of Newton's step: those that are looked at, all at once."""

NEARBY = 0.1 * 2.0 ** np.arange(8)
"""Distances at which a possible point is looked for, parameter by parameter."""

ENOUGH = 1e-4
"""A step that promises to lower the negative log-likelihood by less is the last one: it leaves far less."""

MOST_STEPS = 50

STALLED = 1e-2
"""A search that ends though the next step promises more than this has not found the maximum."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A maximum of a likelihood: where, its negative logarithm there, and the latter's second derivatives
    next to it, shape (parameters, parameters). ``gain``: by how much a further step promises to lower it;
    infinite where it cannot be told, on the border of what is possible or beyond."""

    at: Floats
    value: float
    curvature: Floats
    gain: float

    @property
    def converged(self) -> bool:
        """Whether it is a maximum. If not, nothing may be concluded from it."""
        return self.gain < STALLED


@dataclass(frozen=True, slots=True)
class Interval:
    """Ends of an interval; ``converged``: the likelihoods that they rest on were maxima."""

    lower: float
    upper: float
    converged: bool


def maximise(nll: NegativeLogLikelihood, start: Floats) -> Fit:
    """The maximum near ``start``: Newton's steps, downhill also where the function is not convex, and
    shortened where they lead too far (Nocedal and Wright, Numerical Optimization, 2006, section 3.4)."""
    at = _possible(nll, start)
    for _ in range(MOST_STEPS):
        gradient, curvature, inside = _derivatives(nll, at)
        sizes, axes = np.linalg.eigh(curvature)
        step = -axes @ (axes.T @ gradient / np.maximum(np.abs(sizes), 1e-9))
        tried = at + FRACTIONS[:, None] * step
        values = nll(tried)
        best = int(values.argmin())
        at = tried[best]
        gain = float(-gradient @ step) if inside else math.inf
        if best == 0 or gain < ENOUGH:
            break
    return Fit(at, float(values[best]), curvature, gain)


def _possible(nll: NegativeLogLikelihood, start: Floats) -> Floats:
    """The start, or if the data could not be there the best of the points nearby."""
    if np.isfinite(nll(start[None])[0]):
        return start
    offsets = np.concatenate((NEARBY, -NEARBY))[:, None, None] * np.eye(len(start))
    tried = start + offsets.reshape(-1, len(start))
    return np.asarray(tried[int(nll(tried).argmin())])


def _derivatives(nll: NegativeLogLikelihood, at: Floats) -> tuple[Floats, Floats, bool]:
    """Gradient and second derivatives, by central differences; whether they could be taken."""
    count = len(at)
    points, pairs = _stencil(count)
    distance = STENCIL
    while not np.isfinite(values := nll(at + distance * points)).all() and distance > 1e-3 * STENCIL:
        distance /= 10
    value, ahead, behind = values[0], values[1 : 1 + count], values[1 + count : 1 + 2 * count]
    if not np.isfinite(values).all():
        return np.zeros(count), np.eye(count), False  # on the border of what is possible
    second = ahead + behind - 2 * value
    curvature = np.diag(second)
    across = values[1 + 2 * count :].reshape(2, -1).sum(axis=0) - 2 * value
    for (i, j), both in zip(pairs, across, strict=True):
        curvature[i, j] = curvature[j, i] = (both - second[i] - second[j]) / 2
    return (ahead - behind) / (2 * distance), curvature / distance**2, True


@functools.cache
def _stencil(count: int) -> tuple[Floats, list[tuple[int, int]]]:
    """The points whose values give derivatives, shape (points, count), and the pairs of parameters."""
    axes = np.eye(count)
    pairs = list(itertools.combinations(range(count), 2))
    diagonals = np.array([axes[i] + axes[j] for i, j in pairs]).reshape(-1, count)
    return np.vstack((np.zeros(count), axes, -axes, diagonals, -diagonals)), pairs


def interval(nll: NegativeLogLikelihood, best: Fit, index: int, confidence: float) -> Interval:
    """The values of the parameter at ``index`` whose profile likelihood is not below the maximum by more
    than chi2(confidence) / 2; infinite where it does not come down so far."""
    drop = math.sqrt(_drop(confidence))
    free = np.delete(best.at, index)
    covariance = np.linalg.pinv(best.curvature)
    variance = max(float(covariance[index, index]), 1e-12)
    first = min(max(math.sqrt(2 * variance) * drop, SMALLEST_REACH), LARGEST_REACH)

    def end(sign: int) -> tuple[float, bool]:
        sure: dict[float, bool] = {}
        slope = sign * np.delete(covariance[index], index) / variance

        def excess(reach: float) -> float:
            nonlocal slope
            found = _profile(nll, index, float(best.at[index]) + sign * reach, free + reach * slope)
            slope = (found.at - free) / reach
            sure[reach] = found.converged or found.value == math.inf
            return math.sqrt(max(found.value - best.value, 0.0)) - drop

        reach = _crossing(excess, -drop, first)
        if reach is None:
            return sign * math.inf, sure[FURTHEST_REACH]
        return float(best.at[index]) + sign * reach, sure[reach]

    (lower, below), (upper, above) = end(-1), end(1)
    return Interval(lower, upper, best.converged and below and above)


def holds(nll: NegativeLogLikelihood, best: Fit, index: int, value: float, confidence: float) -> bool:
    """Whether the interval of the parameter at ``index`` holds a value. Where the profile does not converge
    it says so too rarely."""
    free = np.delete(best.at, index)
    return _profile(nll, index, value, free).value - best.value <= _drop(confidence)


def _drop(confidence: float) -> float:
    """By how much the profile's logarithm drops from the maximum to an end of the interval."""
    return float(scipy.special.chdtri(1, 1 - confidence)) / 2


def _crossing(excess: Callable[[float], float], at_zero: float, first: float) -> float | None:
    """Where ``excess``, nearly a straight line from a negative value at 0, is zero: from a ``first`` guess
    along the line, then by false position (Illinois); None if it is not within FURTHEST_REACH."""
    inside, below = 0.0, at_zero
    outside, above = first, excess(first)
    while above < -PRECISION:
        if outside >= FURTHEST_REACH:
            return None
        along = -above * (outside - inside) / max(above - below, PRECISION)
        inside, below = outside, above
        outside = min(outside + min(OVERSHOOT * along, 3 * outside), FURTHEST_REACH)
        above = excess(outside)
    while above > PRECISION and outside - inside > PRECISION * first:
        if math.isfinite(above):
            between = min(max((inside * above - outside * below) / (above - below), inside), outside)
        else:
            between = (inside + outside) / 2
        value = excess(between)
        if abs(value) < PRECISION:
            return between
        if value < 0:
            inside, below, above = between, value, above / 2
        else:
            outside, above, below = between, value, below / 2
    return outside


def _profile(nll: NegativeLogLikelihood, index: int, value: float, free: Floats) -> Fit:
    """The largest likelihood with one parameter held, and the others there, looked for near ``free``."""
    others = np.arange(len(free) + 1) != index

    def rest_nll(rest: Floats) -> Floats:
        at = np.full((len(rest), len(others)), value)
        at[:, others] = rest
        return nll(at)

    return maximise(rest_nll, free)
