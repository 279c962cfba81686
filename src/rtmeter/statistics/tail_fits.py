"""Models of the tail fitted to a run: peaks over a threshold and block maxima, and how well they fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Literal

import numpy as np

from rtmeter.statistics.clusters import INDEX_NOISE, decluster, extremal_index, run_length_of
from rtmeter.statistics.likelihood import Interval, holds, interval, maximise
from rtmeter.statistics.models import ExtremeValue, Pareto, usable
from rtmeter.statistics.quantities import Floats, Ints
from rtmeter.statistics.rare_cause import furthest_levels
from rtmeter.statistics.tail import above, block_edges, block_maxima, threshold

FEWEST_EXTREMES = 50

Method = Literal["peaks", "maxima"]


class TailFit:
    """A model of the tail at its largest likelihood: of ``extremes`` peaks over ``threshold_ns`` or
    maxima of blocks of ``block_releases``.

    The model's data are the values less ``origin_ns``, over ``unit_ns``. ``shape`` and ``level_ns`` are
    the likeliest; ``log_survival`` are the logarithms of the extremes' probabilities, ascending extremes.
    ``furthest``: how far the level may lie, by the shape, where a rare cause is in the tail.
    """

    def __init__(
        self,
        model: Pareto | ExtremeValue,
        extremes: int,
        confidence: float,
        unit_ns: float = 1.0,
        origin_ns: float = 0.0,
        threshold_ns: int | None = None,
        block_releases: int | None = None,
        furthest: Callable[[float], tuple[float, float]] | None = None,
    ) -> None:
        self._model, self._confidence, self._furthest = model, confidence, furthest
        self._unit_ns, self._origin_ns = unit_ns, origin_ns
        self._best = maximise(model.nll, model.start())
        self.method: Method = "peaks" if isinstance(model, Pareto) else "maxima"
        self.extremes, self.threshold_ns, self.block_releases = extremes, threshold_ns, block_releases
        self.level_ns = origin_ns + unit_ns * math.exp(self._best.at[0])
        self.shape = float(usable(self._best.at[1]))
        self.log_survival = model.log_survival(self._best.at)

    @property
    def gain(self) -> float:
        """By how much the fit could be better, as far as the search can tell (likelihood.Fit)."""
        return self._best.gain

    @property
    def fitted(self) -> bool:
        """Whether the likeliest parameters were found at all."""
        return self._best.converged

    @cached_property
    def converged(self) -> bool:
        """Whether the fit is a maximum of the likelihood, and so is what the level's interval rests on."""
        return self._best.converged and self._level.converged

    @cached_property
    def _level(self) -> Interval:
        """Of the level's logarithm, by profile likelihood."""
        return interval(self._model.nll, self._best, 0, self._confidence)

    @cached_property
    def level_interval_ns(self) -> tuple[float, float]:
        """Two-sided: by profile likelihood, and as far as a rare cause may carry it."""
        lower, upper = self.profile_interval_ns
        if self._furthest is None:
            return lower, upper
        lowest, highest = self._furthest(self.shape)
        return min(lower, lowest), max(upper, highest)

    @cached_property
    def profile_interval_ns(self) -> tuple[float, float]:
        """Two-sided, by profile likelihood."""
        lower, upper = np.exp((self._level.lower, self._level.upper)).tolist()
        return self._origin_ns + self._unit_ns * lower, self._origin_ns + self._unit_ns * upper

    @cached_property
    def shape_interval(self) -> tuple[float, float]:
        """Two-sided, by profile likelihood."""
        ends = interval(self._model.nll, self._best, 1, self._confidence)
        lower, upper = usable(np.array((ends.lower, ends.upper))).tolist()
        return lower, upper

    def agrees(self, with_ns: tuple[float, float]) -> bool:
        """Whether the level's interval overlaps another one: it holds the nearest level there."""
        nearest_ns = min(max(self.level_ns, with_ns[0]), with_ns[1])
        if nearest_ns == self.level_ns:
            return True
        height = (nearest_ns - self._origin_ns) / self._unit_ns
        return height > 0 and holds(self._model.nll, self._best, 0, math.log(height), self._confidence)

    @property
    def anderson_darling(self) -> float:
        """How far the extremes are from the model."""
        return anderson_darling(self.log_survival)

    @property
    def largest_probability(self) -> float:
        """Of a largest value as large as the one there is, or larger; at most."""
        return min(1.0, len(self.log_survival) * math.exp(float(self.log_survival[-1])))


def peaks_over(values: Ints, exceedances: int, factor: float, confidence: float) -> TailFit | None:
    """Peaks over the threshold that ``exceedances`` values are greater than, more of them if they
    cluster; None if these are fewer than FEWEST_EXTREMES clusters or all equal."""
    limit, highest = peaks(values, exceedances)
    excesses = (highest - limit).astype(np.float64)
    if len(highest) < FEWEST_EXTREMES or np.ptp(excesses) == 0:
        return None
    unit = float(excesses.mean())
    model = Pareto(excesses / unit, len(highest) * factor)
    ordered = np.sort(highest).astype(np.float64)

    def furthest(shape: float) -> tuple[float, float]:
        return furthest_levels(ordered, factor, shape, confidence)

    return TailFit(model, len(highest), confidence, unit, limit, threshold_ns=limit, furthest=furthest)


def maxima_of(values: Ints, blocks: int, factor: float, confidence: float) -> TailFit | None:
    """Maxima of so many blocks; None if they are all equal."""
    maxima = block_maxima(values, block_edges(len(values), blocks)).astype(np.float64)
    centre, unit = float(np.median(maxima)), float(maxima.std())
    if unit == 0:
        return None
    model = ExtremeValue((maxima - centre) / unit, blocks * factor)
    return TailFit(model, blocks, confidence, unit, centre, block_releases=len(values) // blocks)


def peaks(values: Ints, exceedances: int) -> tuple[int, Ints]:
    """A threshold that at least ``exceedances`` values are greater than, but for ties, and the largest value
    of each cluster above it (ns, in release order)."""
    limit = threshold(values, exceedances)
    at = above(values, limit)
    theta = extremal_index(at) or 1.0
    if theta >= 1 - INDEX_NOISE / math.sqrt(max(1, len(at))):
        return limit, values[at]
    limit = threshold(values, min(round(exceedances / theta), len(values) // 20))
    at = above(values, limit)
    sizes = decluster(at, run_length_of(at, extremal_index(at) or 1.0)).sizes
    return limit, np.maximum.reduceat(values[at], np.cumsum(sizes) - sizes)


def anderson_darling(log_survival: Floats) -> float:
    """A^2 of values whose survival probabilities a model gives, for ascending values, shape (k,)."""
    k = len(log_survival)
    log_below = np.log(-np.expm1(np.minimum(log_survival, -1e-15)))
    weight = 2 * np.arange(1, k + 1) - 1
    return float(-k - (weight * (log_below + log_survival[::-1])).sum() / k)
