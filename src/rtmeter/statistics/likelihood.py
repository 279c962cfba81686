"""Maximum likelihood and profile-likelihood intervals of a return level with a free shape.

A model of the tail is given by its negative log-likelihood as a function of the return level and of what is
free besides: so the interval is of the level itself, unsymmetrical as it has to be (Coles, An Introduction
to Statistical Modeling of Extreme Values, 2001, sections 2.6.6 and 3.3.4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import chdtri

from rtmeter.statistics.trend import Floats

NegativeLogLikelihood = Callable[[Floats], float]
"""Of (level, shape, …), for data scaled to the size of 1; IMPOSSIBLE or more where they could not be."""

IMPOSSIBLE = 1e12
"""Finite, and rising with the distance from what is possible, so that a simplex finds its way back."""

FIRST_REACH, FURTHEST_REACH, PRECISION = 0.1, math.log(1e6), 1e-3


@dataclass(frozen=True, slots=True)
class Fit:
    """A maximum of a likelihood: where, and its negative logarithm there."""

    at: Floats
    value: float


def maximise(nll: NegativeLogLikelihood, start: Floats, step: Floats, times: int = 2) -> Fit:
    """The maximum near ``start``, by a simplex of size ``step`` that is started anew from what it finds."""
    at = start
    for _ in range(times):
        simplex = np.vstack((at, at + np.diag(step)))
        options = {"initial_simplex": simplex, "xatol": 1e-4, "fatol": 1e-5}
        found = minimize(nll, at, method="Nelder-Mead", options=options)
        at = found.x
    return Fit(np.asarray(at), float(found.fun))


def level_interval(
    nll: NegativeLogLikelihood, best: Fit, lowest: float, step: Floats, confidence: float
) -> tuple[float, float]:
    """The interval of the level. ``lowest``: no level is below it. ``step``: simplex for what is free
    besides the level. An end is infinite, or ``lowest``, if the profile does not come down far enough."""
    origin = math.log(best.at[0] - lowest)

    def level(reach: float) -> float:
        return lowest + math.exp(origin + reach)

    lower, upper = _interval(nll, best, 0, level, step, confidence)
    return lowest if lower == -math.inf else lower, upper


def shape_interval(
    nll: NegativeLogLikelihood, best: Fit, step: Floats, confidence: float
) -> tuple[float, float]:
    """The interval of the shape. ``step``: simplex for what is free besides the shape."""
    return _interval(nll, best, 1, lambda reach: float(best.at[1]) + reach, step, confidence)


def _interval(
    nll: NegativeLogLikelihood,
    best: Fit,
    index: int,
    value_at: Callable[[float], float],
    step: Floats,
    confidence: float,
) -> tuple[float, float]:
    """The values of the parameter at ``index`` whose profile likelihood is not below the maximum by more
    than chi2(confidence) / 2; ``value_at`` maps a signed reach to a value, 0 to the best one."""
    drop = math.sqrt(float(chdtri(1, 1 - confidence)) / 2)

    def end(sign: int) -> float:
        free = np.delete(best.at, index)

        def excess(reach: float) -> float:
            nonlocal free
            found = _profile(nll, index, value_at(sign * reach), free, step)
            free = found.at
            return math.sqrt(max(found.value - best.value, 0.0)) - drop

        reach = _crossing(excess, -drop)
        return sign * math.inf if reach is None else value_at(sign * reach)

    return end(-1), end(1)


def _crossing(excess: Callable[[float], float], at_zero: float) -> float | None:
    """Where ``excess``, nearly a straight line from a negative value at 0, is zero: by doubling, then by
    false position (Illinois); None if it is not within FURTHEST_REACH."""
    inside, below = 0.0, at_zero
    outside, above = FIRST_REACH, excess(FIRST_REACH)
    while above < 0:
        inside, below = outside, above
        outside *= 2
        if outside > FURTHEST_REACH:
            return None
        above = excess(outside)
    while outside - inside > PRECISION:
        between = min(max((inside * above - outside * below) / (above - below), inside), outside)
        value = excess(between)
        if abs(value) < PRECISION:
            return between
        if value < 0:
            inside, below, above = between, value, above / 2
        else:
            outside, above, below = between, value, below / 2
    return outside


def _profile(nll: NegativeLogLikelihood, index: int, value: float, free: Floats, step: Floats) -> Fit:
    """The largest likelihood with one parameter held, and the others there, looked for near ``free``."""

    at = np.empty(len(free) + 1)
    others = np.arange(len(at)) != index
    at[index] = value

    def rest_nll(rest: Floats) -> float:
        at[others] = rest
        return nll(at)

    return maximise(rest_nll, free, step, times=1)
