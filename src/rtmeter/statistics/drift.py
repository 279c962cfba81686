"""Does the delay of a loop grow, and why?

The delay is start - release of every release that was served, on a grid that never moves; its trend is that
of block medians. It drifts where a timer keeps another time than the grid. Where the thread itself sleeps to
the grid nothing drifts: there a delay that grows is lateness, whatever made it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from rtmeter.statistics.order import partition
from rtmeter.statistics.quantities import Floats, Ints
from rtmeter.statistics.tail import block_edges
from rtmeter.statistics.trend import Trend, trend
from rtmeter.statistics.views import LATER

Bools = npt.NDArray[np.bool_]
Growth = Literal["bounded", "drifting", "overloaded", "skipping"]
GrowthCause = Literal["clock_rate", "relative_rearming", "executed_cycles", "work_longer_than_period"]

BLOCKS = 100
FEWEST_BLOCKS = 10
SMALLEST_BLOCK = 10
"""Releases of a block: the median of fewer is hardly steadier than they are, and a wandering level of a few
of them is no trend."""

AT_ENDS = 5
"""Blocks whose median is the level at either end of the run."""

SURE = 1 - 1e-9
"""Confidence of the slope's interval that calls a run with skips drifting: skips are never to be."""

BACK_TO_BACK = 0.01
"""A cycle that starts within this share of the period after the last one's end did not sleep."""

PIECE = 1 << 20

FEWEST_DELAYS = FEWEST_BLOCKS * SMALLEST_BLOCK
"""Served releases among the last PIECE of a run below which nothing is said of why it drifts."""

MOST_CLOCK_RATE = 500e-6
"""Two clocks of one machine differ by less than this."""


@dataclass(frozen=True, slots=True)
class Drift:
    """What became of the delay over a run.

    ``trend`` is None when there are too few served releases. ``skipped``: releases passed over;
    ``periods_jumped``: whole periods by which the delay's level jumped; ``causes``: those of
    docs/method-judgement.md that fit. ``rises``: the delay grows or falls as a drifting one does, though no
    timer keeps its time.
    """

    growth: Growth
    trend: Trend | None
    skipped: int
    periods_jumped: int
    causes: tuple[GrowthCause, ...]
    rises: bool = False


def drift(
    delay_ns: Ints,
    period_ns: int,
    skipped: Bools | None = None,
    completion_ns: Ints | None = None,
    own_grid: bool = False,
) -> Drift:
    """Classifies the growth of a delay.

    ``delay_ns``: start - release of each release in order, shape (n,); LATER where it was lost.
    ``skipped``: where a release was passed over (its delay is not looked at); None: nowhere.
    ``completion_ns``: completion - release of each, where the work is known. ``own_grid``: the
    thread sleeps to the grid itself, or no timer says which release it serves: nothing drifts.
    """
    edges = block_edges(len(delay_ns), max(1, min(BLOCKS, len(delay_ns) // SMALLEST_BLOCK)))
    quartiles = _quartiles(delay_ns, skipped, edges)
    filled = ~np.isnan(quartiles[:, 1])
    passed = 0 if skipped is None else int(np.count_nonzero(skipped))
    otherwise: Growth = "skipping" if passed else "bounded"
    long_work = passed and _works_longer(delay_ns, period_ns, skipped, completion_ns)
    skips: tuple[GrowthCause, ...] = ("work_longer_than_period",) if long_work else ()
    if np.count_nonzero(filled) < FEWEST_BLOCKS:
        return Drift(otherwise, None, passed, 0, skips)
    medians = quartiles[filled, 1]
    jitter = float(np.median(quartiles[filled, 2] - quartiles[filled, 0]))
    middle_s = ((edges[:-1] + edges[1:] - 1) / 2)[filled] * (period_ns / 1e9)
    seen = middle_s, medians, len(delay_ns) * period_ns / 1e9, jitter
    found = trend(*seen)
    work = delay_ns, period_ns, skipped, completion_ns
    if found.significant and found.slope_ns_per_s > 0 and (_works_longer(*work) or _overloaded(*work)):
        return Drift("overloaded", found, passed, 0, ("work_longer_than_period",))
    last = _settled(delay_ns, skipped, max(0, len(delay_ns) - PIECE), len(delay_ns))
    if jumped := _whole_periods(medians, last, period_ns):
        return Drift("skipping", found, passed, jumped, skips if passed else ("executed_cycles",))
    wrapped = np.abs(medians[2:] - medians[:-2]).max() > period_ns / 2
    if found.significant and not (passed and (wrapped or not trend(*seen, SURE).significant)):
        if own_grid:
            return Drift(otherwise, found, passed, 0, skips, rises=True)
        return Drift("drifting", found, passed, 0, _causes(last, found))
    return Drift(otherwise, found, passed, 0, skips)


def _quartiles(delay: Ints, skipped: Bools | None, edges: Ints) -> Floats:
    """Quartiles of the settled delays of each block, shape (blocks, 3); NaN where there are none."""
    quartiles = np.full((len(edges) - 1, 3), np.nan)
    for block, (start, end) in enumerate(itertools.pairwise(edges)):
        present = _settled(delay, skipped, start, end)
        if len(present):
            places = [(len(present) - 1) * quarter // 4 for quarter in (1, 2, 3)]
            ordered = present.copy()
            partition(ordered, places)
            quartiles[block] = ordered[places]
    return quartiles


def _settled(delay: Ints, skipped: Bools | None, start: int, end: int) -> Ints:
    """The delays of the releases that were served and not followed by a skip, whose stall they show."""
    part = delay[start:end]
    settled = part != LATER
    if skipped is not None:
        following = skipped[start + 1 : end + 1]
        settled &= ~skipped[start:end]
        settled[: len(following)] &= ~following
    return part if settled.all() else part[settled]


def _whole_periods(medians: Floats, delay: Ints, period_ns: int) -> int:
    """By how many whole periods the delay's level jumped for good; 0 if it changed otherwise too.

    Nineteen in twenty block medians, and nine in ten of the single delays at the end, lie a whole number
    of periods after the first block's, give or take a twentieth or a tenth of a period. A stall that was
    caught up, which lifts single blocks, is none.
    """
    since = (medians - medians[0]) / period_ns
    single = (delay - medians[0]) / period_ns
    whole = np.rint(since)
    near = np.count_nonzero(np.abs(since - whole) < 0.05) >= 0.95 * len(since)
    locked = np.count_nonzero(np.abs(single - np.rint(single)) < 0.1) >= 0.9 * len(single)
    jumped = float(np.median(whole[-AT_ENDS:]) - np.median(whole[:AT_ENDS]))
    return abs(round(jumped)) if near and locked else 0


def _overloaded(delay: Ints, period_ns: int, skipped: Bools | None, completion: Ints | None) -> bool:
    """Whether most cycles that followed each other began as soon as the one before had ended."""
    if completion is None:
        return False
    pairs = back_to_back = 0
    for start in range(0, len(delay), PIECE):
        part = slice(start, start + PIECE + 1)
        ran = (delay[part] != LATER) & (completion[part] != LATER)
        if skipped is not None:
            ran &= ~skipped[part]
        followed = ran[:-1] & ran[1:]
        idle = (period_ns + delay[part][1:] - completion[part][:-1])[followed]
        pairs += len(idle)
        back_to_back += int(np.count_nonzero(idle <= BACK_TO_BACK * period_ns))
    return back_to_back > 0.5 * pairs


def _works_longer(delay: Ints, period_ns: int, skipped: Bools | None, completion: Ints | None) -> bool:
    """Whether the work of most cycles that ran took longer than the period."""
    if completion is None:
        return False
    cycles = longer = 0
    for start in range(0, len(delay), PIECE):
        part = slice(start, start + PIECE)
        ran = (delay[part] != LATER) & (completion[part] != LATER)
        if skipped is not None:
            ran &= ~skipped[part]
        cycles += int(np.count_nonzero(ran))
        longer += int(np.count_nonzero((completion[part] - delay[part])[ran] > period_ns))
    return longer > 0.5 * cycles


def _causes(delay: Ints, found: Trend) -> tuple[GrowthCause, ...]:
    """What explains a drift in a loop that has slack.

    Where each cycle is armed relative to the last one every lateness stays: the delay is a random walk,
    and its increments over many cycles spread as far as their number makes them. Where another clock's
    grid times the cycles they spread no further than those over one cycle.
    """
    if len(delay) < FEWEST_DELAYS:
        return ()
    rate = found.slope_ns_per_s * 1e-9
    many = max(2, len(delay) // 20)
    spread = np.square(_range(np.diff(delay)))
    walks = spread > 0 and np.square(_range(delay[many:] - delay[:-many])) > 0.3 * many * spread
    causes: list[GrowthCause] = []
    if not walks and abs(rate) < MOST_CLOCK_RATE:
        causes.append("clock_rate")
    if rate > 0 and (walks or spread == 0):
        causes.append("relative_rearming")
    return tuple(causes)


def _range(values: Ints) -> float:
    low, high = np.percentile(values, (25, 75))
    return float(high - low)
