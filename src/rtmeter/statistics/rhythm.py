"""Do late samples come in a rhythm, and whose rhythm is it?

The times of late events (clusters of late releases count once) are put on circles of every period from some
cycles of the grid to a share of the run; events in step with a period gather at one place on its circle.
The share that does is Rayleigh's mean resultant length R (Fisher, Statistical Analysis of Circular Data,
1993, section 4.3); n R^2 of independent times is exponential with mean 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from rtmeter.statistics.clusters import Indices
from rtmeter.statistics.quantities import Floats

FEWEST_EVENTS = 8
FEWEST_CYCLES = 4

SMALLEST_STRENGTH = 0.5
"""R below which late events are not said to keep a period."""

FALSE_ALARMS = 0.01
"""Probability that independent events seem to keep some period."""

WINDOW = 1 << 21
"""Releases that are looked at one by one, those with most events; longer runs are binned besides."""

MOST_EVENTS = 4000
"""Events that the exact period is found from."""

KNOWN: tuple[tuple[float, str | None], ...] = (
    (60.0, "a job each minute"),
    (10.0, "a job each ten seconds"),
    (1.0, "real-time throttling (sched_rt_runtime_us) or a task each second"),
    (0.1, "a host's or control group's CPU quota (100 ms)"),
    (0.01, None),
    (0.004, None),
    (1 / 300, None),
    (0.001, None),
)
"""Periods in seconds and what is known to have them (docs/method-judgement.md); the last are those of the
ticks that kernels may have: which one a cell's kernel has is not recorded, so that none is named."""

KNOWN_WITHIN = 0.01
"""A period is a known one if it differs by less than this share."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """A period that late events keep: in seconds, how strongly (R, 0 to 1), over how many events, and
    the known cause with that period, or None."""

    period_s: float
    strength: float
    events: int
    cause: str | None


def rhythm(late: Indices, n: int, period_ns: int) -> Rhythm | None:
    """The longest period that the events at releases ``late`` (of ``n``) keep, or None.

    Periods from two releases to a quarter of the run are looked at; what repeats faster cannot be seen on
    this grid. One is kept if R is at least SMALLEST_STRENGTH and would come of independent events with a
    probability below FALSE_ALARMS at any of the periods looked at, or at any of the known ones.
    """
    found = _longest(late, n, period_ns)
    if found is None and n > WINDOW:
        starts = np.searchsorted(late, np.arange(0, n, WINDOW))
        busiest = int(np.diff(np.append(starts, len(late))).argmax())
        part = late[starts[busiest] :] - busiest * WINDOW
        found = _longest(part[part < WINDOW], WINDOW, period_ns)
    return found


def cause_of(period_s: float) -> str | None:
    """What is known to have that period."""
    for known_s, cause in KNOWN:
        if abs(period_s / known_s - 1) < KNOWN_WITHIN:
            return cause
    return None


def _longest(late: Indices, n: int, period_ns: int) -> Rhythm | None:
    if len(late) < FEWEST_EVENTS:
        return None
    run_s = n * period_ns / 1e9
    strength, cycles = _strengths(late, n)
    is_kept = strength >= _needed(len(late), len(cycles))
    for known_s, _ in KNOWN:
        off = max(0.25, KNOWN_WITHIN * run_s / known_s)
        first = int(np.searchsorted(cycles, run_s / known_s - off))
        near = slice(first, int(np.searchsorted(cycles, run_s / known_s + off, side="right")))
        is_kept[near] |= strength[near] >= _needed(len(late), (near.stop - near.start) * len(KNOWN))
    kept = np.flatnonzero(is_kept)
    if not len(kept):
        return None
    exact, exact_strength = _refine(late, n, float(cycles[_top(strength, kept)]))
    in_use = len(np.unique(np.floor(late * (exact / n))))
    if exact_strength < SMALLEST_STRENGTH or in_use < max(FEWEST_CYCLES, 0.25 * min(exact, len(late))):
        return None  # an artefact of the bins, or a burst that is short against the period
    period_s = run_s / exact
    return Rhythm(period_s, exact_strength, len(late), cause_of(period_s))


def _needed(events: int, periods: int) -> float:
    return max(SMALLEST_STRENGTH, math.sqrt(math.log(max(1, periods) / FALSE_ALARMS) / events))


def _strengths(late: Indices, n: int) -> tuple[Floats, Floats]:
    """R at numbers of cycles a run a quarter apart (so that no peak falls between two of them), from
    FEWEST_CYCLES on; events of a run longer than the window are binned, which hides short periods."""
    size = n if n <= WINDOW else WINDOW
    counts = np.bincount(late if size == n else late * size // n, minlength=size).astype(np.float32)
    padded = scipy.fft.next_fast_len(4 * size, real=True)
    spectrum = np.asarray(np.abs(scipy.fft.rfft(counts, padded)) / len(late), dtype=np.float64)
    cycles = np.arange(len(spectrum), dtype=np.float64) * (size / padded)
    wanted = slice(int(np.searchsorted(cycles, FEWEST_CYCLES)), None)
    return spectrum[wanted], cycles[wanted]


def _top(strength: Floats, kept: Indices) -> int:
    """The strongest of the first neighbouring periods kept: harmonics follow at shorter ones."""
    breaks = np.flatnonzero(np.diff(kept) > 1)
    first = kept[: int(breaks[0]) + 1] if len(breaks) else kept
    return int(first[strength[first].argmax()])


def _refine(late: Indices, n: int, cycles: float) -> tuple[float, float]:
    """The number of cycles a run near ``cycles`` at which R is largest, and that R."""
    near = cycles + np.linspace(-0.25, 0.25, 51)
    some = late[:: len(late) // MOST_EVENTS + 1]
    strength = np.abs(np.exp(2j * np.pi * np.outer(near, some / n)).mean(axis=1))
    best = int(strength.argmax())
    return float(near[best]), float(strength[best])
