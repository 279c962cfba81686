"""Models of the tail fitted to a run: peaks over a threshold and block maxima, and how well they fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rtmeter.statistics.clusters import INDEX_NOISE, decluster, extremal_index, run_length_of
from rtmeter.statistics.likelihood import interval, maximise
from rtmeter.statistics.models import ExtremeValue, Pareto, usable
from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.tail import above, block_edges, block_maxima, threshold
from rtmeter.statistics.trend import Floats

FEWEST_EXTREMES = 50

Method = Literal["peaks", "maxima"]


@dataclass(frozen=True, slots=True)
class TailFit:
    """One model of the tail: ``extremes`` peaks over ``threshold_ns`` or maxima of blocks of
    ``block_releases``; the shape and the return level with their two-sided intervals (the shape's of the
    best fit only); Anderson and Darling's statistic; the probability of so large a largest value."""

    method: Method
    extremes: int
    threshold_ns: int | None
    block_releases: int | None
    shape: float
    shape_interval: tuple[float, float] | None
    level_ns: float
    level_interval_ns: tuple[float, float]
    anderson_darling: float
    largest_probability: float


def peaks_over(
    values: Ints, exceedances: int, factor: float, confidence: float, with_shape: bool = False
) -> TailFit | None:
    """Peaks over the threshold that ``exceedances`` values are greater than, more of them if they
    cluster; None if these are fewer than FEWEST_EXTREMES clusters or all equal."""
    limit, peaks = _peaks(values, exceedances)
    excesses = (peaks - limit).astype(np.float64)
    if len(peaks) < FEWEST_EXTREMES or np.ptp(excesses) == 0:
        return None
    unit = float(excesses.mean())
    model = Pareto(excesses / unit, len(peaks) * factor)
    fit = Fitted(model, confidence)
    return TailFit(
        method="peaks",
        extremes=len(peaks),
        threshold_ns=limit,
        block_releases=None,
        shape=fit.shape,
        shape_interval=fit.shape_interval() if with_shape else None,
        level_ns=limit + unit * fit.level,
        level_interval_ns=fit.level_interval(unit, limit),
        anderson_darling=anderson_darling(fit.log_survival),
        largest_probability=fit.largest_probability,
    )


def maxima_of(values: Ints, blocks: int, factor: float, confidence: float) -> TailFit | None:
    """Maxima of so many blocks; None if they are all equal."""
    maxima = block_maxima(values, block_edges(len(values), blocks)).astype(np.float64)
    centre, unit = float(np.median(maxima)), float(maxima.std())
    if unit == 0:
        return None
    fit = Fitted(ExtremeValue((maxima - centre) / unit, blocks * factor), confidence)
    return TailFit(
        method="maxima",
        extremes=blocks,
        threshold_ns=None,
        block_releases=len(values) // blocks,
        shape=fit.shape,
        shape_interval=None,
        level_ns=centre + unit * fit.level,
        level_interval_ns=fit.level_interval(unit, centre),
        anderson_darling=anderson_darling(fit.log_survival),
        largest_probability=fit.largest_probability,
    )


def _peaks(values: Ints, exceedances: int) -> tuple[int, Ints]:
    """A threshold and the largest value of each cluster above it."""
    limit = threshold(values, exceedances)
    at = above(values, limit)
    theta = extremal_index(at) or 1.0
    if theta >= 1 - INDEX_NOISE / math.sqrt(max(1, len(at))):
        return limit, values[at]
    limit = threshold(values, min(round(exceedances / theta), len(values) // 20))
    at = above(values, limit)
    sizes = decluster(at, run_length_of(at, extremal_index(at) or 1.0)).sizes
    return limit, np.maximum.reduceat(values[at], np.cumsum(sizes) - sizes)


class Fitted:
    """A model at its largest likelihood, in units of the data's own size (median or threshold: 0)."""

    def __init__(self, model: Pareto | ExtremeValue, confidence: float) -> None:
        self._model, self._confidence = model, confidence
        self._best = maximise(model.nll, model.start())
        self.level, self.shape = math.exp(self._best.at[0]), float(usable(self._best.at[1]))
        self.log_survival = model.log_survival(self._best.at)

    @property
    def largest_probability(self) -> float:
        """Of a largest value as large as the one there is, or larger; at most."""
        return min(1.0, len(self.log_survival) * math.exp(float(self.log_survival[-1])))

    def shape_interval(self) -> tuple[float, float]:
        """Two-sided, by profile likelihood."""
        lower, upper = usable(np.array(interval(self._model.nll, self._best, 1, self._confidence))).tolist()
        return lower, upper

    def level_interval(self, unit: float, origin: float) -> tuple[float, float]:
        """Two-sided, by profile likelihood, in ns."""
        lower, upper = np.exp(interval(self._model.nll, self._best, 0, self._confidence)).tolist()
        return origin + unit * lower, origin + unit * upper


def anderson_darling(log_survival: Floats) -> float:
    """A^2 of values whose survival probabilities a model gives, for ascending values, shape (k,)."""
    k = len(log_survival)
    log_below = np.log(-np.expm1(np.minimum(log_survival, -1e-15)))
    weight = 2 * np.arange(1, k + 1) - 1
    return float(-k - (weight * (log_below + log_survival[::-1])).sum() / k)
