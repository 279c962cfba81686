"""Beyond what was seen: the level that a run passes once in N hours, or why that cannot be said.

Two models, fitted with a free shape: peaks over a threshold (generalised Pareto) and block maxima
(generalised extreme value). Clusters count once: "once" is a cluster of late releases. Pareto's level is the
answer; the other model, and other thresholds and block sizes, have to agree with it where they fit: a
threshold may reach down into another mode, or blocks lack the one at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rtmeter.model import GateFinding
from rtmeter.statistics.bounds import hours
from rtmeter.statistics.evidence import Evidence
from rtmeter.statistics.models import SMALLEST_SHAPE
from rtmeter.statistics.modes import quantum, second_mode
from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.tail import largest
from rtmeter.statistics.tail_fits import FEWEST_EXTREMES, TailFit, maxima_of, peaks_over
from rtmeter.statistics.words import about

MOST_PEAKS = 400
RELEASES_A_PEAK = 50
FEWEST_RELEASES = RELEASES_A_PEAK * FEWEST_EXTREMES
MOST_MAXIMA = 200
SMALLEST_BLOCK = 200

MOST_FACTOR = 10.0
"""A level is stated for at most this many times the length of the run."""

FEWEST_TIMES = 10.0
"""A level that fewer peaks than this reach in the time asked for lies within the data."""

AD_LIMIT = {"peaks": 1.7, "maxima": 0.95}
"""Anderson and Darling's statistic with fitted parameters is above it in one case of a hundred, for shapes
of -0.4 to 1 (tests/statistics/test_extremes.py)."""

OUTLIER = 1e-4
"""A largest value that the model gives a smaller probability than this is none of its kind."""

HEAVY = 0.1
"""A shape that is called heavy even if its interval includes 0."""

COARSE = 0.5
"""A resolution of this share of the tail's scale hides the tail's shape."""


@dataclass(frozen=True, slots=True)
class Extremes:
    """The level passed once in ``hours`` at ``confidence``: ``best`` states it, ``others`` are the fits
    over other thresholds and blocks; ``findings`` with a refusal mean that it must not be stated."""

    hours: float
    confidence: float
    best: TailFit | None
    others: tuple[TailFit, ...]
    findings: tuple[GateFinding, ...]

    @property
    def refusals(self) -> tuple[GateFinding, ...]:
        """Why no level is stated; empty if one is."""
        return tuple(finding for finding in self.findings if finding.consequence == "refuse")

    @property
    def upper_ns(self) -> float | None:
        """Upper end of the level's interval in ns; None if refused."""
        return None if self.refusals or self.best is None else self.best.level_interval_ns[1]


def extremes(
    values: Ints, period_ns: int, horizon_hours: float, evidence: Evidence, confidence: float = 0.95
) -> Extremes:
    """The return level of a run (ns per release, in order, shape (n,)) that ``evidence`` was taken of."""
    factor = horizon_hours / hours(len(values), period_ns)
    count = min(MOST_PEAKS, len(values) // RELEASES_A_PEAK)
    refusals = _by_evidence(evidence) + _by_length(len(values), period_ns, factor, count)
    if not refusals:
        refusals = _by_shape(largest(values, count + 1), evidence)
    if refusals:
        return Extremes(horizon_hours, confidence, None, (), tuple(refusals))
    best = peaks_over(values, count, factor, confidence)
    others = [peaks_over(values, other, factor, confidence) for other in (count // 2, 2 * count)]
    blocks = min(MOST_MAXIMA, len(values) // SMALLEST_BLOCK)
    sizes = [size for size in (blocks // 2, blocks) if size >= FEWEST_EXTREMES]
    others += [maxima_of(values, size, factor, confidence) for size in sizes]
    agreeing = tuple(fit for fit in others if fit is not None)
    return Extremes(horizon_hours, confidence, best, agreeing, tuple(_by_fit(best, agreeing)))


DISQUALIFYING = ("warm_up", "constant", "lost")
"""Findings that a bound of the miss ratio can stand and a model of the tail cannot."""


def _by_evidence(evidence: Evidence) -> list[GateFinding]:
    refusals = list(evidence.refusals)
    for finding in evidence.findings:
        if finding.type in DISQUALIFYING:
            refusals.append(
                GateFinding(finding.type, finding.statistic, finding.value, "refuse", finding.message)
            )
    return refusals


def _by_length(n: int, period_ns: int, factor: float, count: int) -> list[GateFinding]:
    run = hours(n, period_ns)
    if count < FEWEST_EXTREMES:
        message = f"{n:,} releases leave {count} extremes, and {FEWEST_EXTREMES} are needed"
        return [GateFinding("too_few_maxima", "extremes", float(count), "refuse", message)]
    if factor > MOST_FACTOR * (1 + 1e-9):
        message = (
            f"once in {about(factor * run * 3.6e12)} is beyond {MOST_FACTOR:g} times the run of "
            f"{about(run * 3.6e12)}: measure at least {about(factor * run * 3.6e12 / MOST_FACTOR)}"
        )
        return [GateFinding("beyond_the_run", "factor", factor, "refuse", message)]
    if factor * count < FEWEST_TIMES:
        message = f"once in {about(factor * run * 3.6e12)} is seen often in the run: take a quantile"
        return [GateFinding("within_the_run", "factor", factor, "refuse", message)]
    return []


def _by_shape(top: Ints, evidence: Evidence) -> list[GateFinding]:
    """``top``: the threshold and the values above it, ascending."""
    step = quantum(top)
    scale = float(np.median(top[1:] - top[0])) / math.log(2)
    if step > COARSE * scale:
        held = f"a tail with a scale of {about(scale)}" if scale else "a tail most of which is one step"
        message = f"values come in steps of {about(step)}, too coarse for {held}"
        return [GateFinding("quantisation", "resolution over scale", step / max(scale, 1), "refuse", message)]
    if mode := second_mode(top, step, evidence.design_effect):
        message = f"the {mode.values:,} largest values have a mode of their own at about {about(mode.at_ns)}"
        return [GateFinding("mixture", "share in a mode of its own", mode.share, "refuse", message)]
    return []


def not_converged(fit: TailFit) -> GateFinding:
    """That no level follows from a fit."""
    message = (
        f"the fit of a model of the tail to {fit.extremes} {fit.method} did not converge: no level follows "
        "from it, and a longer run has more of them"
    )
    return GateFinding("not_converged", "gain of the next step", fit.gain, "refuse", message)


def _by_fit(best: TailFit | None, others: tuple[TailFit, ...]) -> list[GateFinding]:
    if best is None:
        message = f"the latest releases come in fewer than {FEWEST_EXTREMES} clusters"
        return [GateFinding("too_few_maxima", "clusters", 0.0, "refuse", message)]
    if not best.converged:
        return [not_converged(best)]
    found = []
    if best.largest_probability < OUTLIER:
        message = "the largest value is none of the rest's kind: its cause has to be found, not extrapolated"
        found.append(GateFinding("outlier", "probability", best.largest_probability, "refuse", message))
    if best.anderson_darling > AD_LIMIT[best.method]:
        message = "no generalised Pareto distribution fits the tail"
        if best.shape <= SMALLEST_SHAPE:
            message = (
                "the tail ends more abruptly than is modelled, as if it were cut off "
                f"(shape below {SMALLEST_SHAPE:g})"
            )
        found.append(GateFinding("misfit", "Anderson-Darling", best.anderson_darling, "refuse", message))
    if not math.isfinite(best.level_interval_ns[1]):
        message = "the level has no upper end: the tail is too heavy for so few extremes"
        found.append(GateFinding("unbounded", "shape", best.shape, "refuse", message))
    if unsure := [fit for fit in others if not fit.fitted]:
        found.append(not_converged(unsure[0]))
    fitting = [fit for fit in others if fit.fitted and fit.anderson_darling <= AD_LIMIT[fit.method]]
    if odd := [fit for fit in fitting if not fit.agrees(best.profile_interval_ns)]:
        message = "the level depends on the threshold or on the block size"
        ratio = odd[0].level_ns / best.level_ns
        found.append(GateFinding("unstable", "level of another fit over this one", ratio, "refuse", message))
    low, high = best.shape_interval
    if best.shape > HEAVY or low > 0:
        heavy = "is" if low > 0 else "may be"
        message = (
            f"the tail {heavy} heavy (shape {best.shape:.2f} [{low:.2f}, {high:.2f}]): ever longer runs show "
            "ever later releases"
        )
        found.append(GateFinding("heavy_tail", "shape", best.shape, "info", message))
    return found
