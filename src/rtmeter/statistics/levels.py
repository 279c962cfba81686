"""Return levels over a range of times: the curve of a return-level plot, and the peaks it was fitted to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rtmeter.model import GateFinding
from rtmeter.statistics.bounds import hours
from rtmeter.statistics.evidence import Evidence
from rtmeter.statistics.extremes import (
    FEWEST_TIMES,
    MOST_FACTOR,
    MOST_PEAKS,
    RELEASES_A_PEAK,
    extremes,
    not_converged,
)
from rtmeter.statistics.quantities import Floats, Ints
from rtmeter.statistics.tail_fits import peaks, peaks_over
from rtmeter.statistics.views import LATER

POINTS = 16


@dataclass(frozen=True, slots=True)
class Levels:
    """Peaks and what is fitted to them.

    ``peaks_ns``, descending, and once in how many hours each was passed, shape (peaks,). ``hours``: times,
    ascending; the level passed once in each and the ends of its interval at ``confidence``, ns, shape
    (times,); empty where ``refusals`` say why no level may be stated. The last time is the longest for
    which one is.
    """

    peaks_ns: Ints
    peaks_hours: Floats
    run_hours: float
    confidence: float
    hours: Floats
    level_ns: Floats
    lower_ns: Floats
    upper_ns: Floats
    refusals: tuple[GateFinding, ...]


def levels(values: Ints, period_ns: int, evidence: Evidence, confidence: float = 0.95) -> Levels:
    """The levels of a run (ns per release, in order, shape (n,)) that ``evidence`` was taken of."""
    run = hours(len(values), period_ns)
    count = max(1, min(MOST_PEAKS, len(values) // RELEASES_A_PEAK))
    found = np.sort(peaks(values, count)[1])[::-1]
    rank = np.arange(1, len(found) + 1)
    passed = run * (len(found) + 1) / (max(1, len(found)) * rank)
    there = found != LATER
    refusals = extremes(values, period_ns, MOST_FACTOR * run, evidence, confidence).refusals
    times: list[float] = []
    if not refusals:
        times = (np.geomspace(1.01 * FEWEST_TIMES / count, MOST_FACTOR, POINTS) * run).tolist()
    fits = [peaks_over(values, count, time / run, confidence) for time in times]
    if unsure := [fit for fit in fits if fit is not None and not fit.converged]:
        refusals, times, fits = (not_converged(unsure[0]),), [], []
    curve = [(fit.level_ns, *fit.level_interval_ns) for fit in fits if fit is not None]
    level, lower, upper = np.array(curve, dtype=np.float64).reshape(-1, 3).T
    return Levels(
        peaks_ns=found[there],
        peaks_hours=passed[there],
        run_hours=run,
        confidence=confidence,
        hours=np.array(times, dtype=np.float64),
        level_ns=level,
        lower_ns=lower,
        upper_ns=upper,
        refusals=refusals,
    )
