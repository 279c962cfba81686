"""What a plot is about: distributions with their deadline, and when things happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rtmeter.plots.data import PlottedView, Series
from rtmeter.plots.grammar import VIEW_COLOURS
from rtmeter.results import words
from rtmeter.statistics.bins import BinGrid, quantile_range_ns
from rtmeter.statistics.quantities import Ints

_IN_SIGHT = 3
"""A deadline further away than this many times the largest value is told, not drawn."""


def maximum(view: PlottedView) -> str:
    """The maximum of a view in words, microseconds."""
    if view.lost or not len(view.largest_ns):
        return "lost"
    return f"{words.us(int(view.largest_ns[0]))} us" if view.largest_known else "not known"


@dataclass(frozen=True, slots=True)
class Line:
    """One distribution of a plot: its name, its values, its colour. ``design_effect``: how many releases
    count as one where a bound is stated; None: none is. ``note`` follows the name in the legend.
    ``skipped_in_time`` as in Series."""

    label: str
    view: PlottedView
    colour: str
    design_effect: float | None = None
    note: str = ""
    skipped_in_time: int = 0

    @property
    def legend(self) -> str:
        """What the legend says."""
        return f"{self.label}{self.note}"


@dataclass(frozen=True, slots=True)
class Distributions:
    """Distributions that share their axes, at least one, counted on one grid; the deadline on all.
    ``beside``: those of other plots that share the axes, and are not drawn."""

    lines: tuple[Line, ...]
    grid: BinGrid
    deadline_ns: int | None
    beside: tuple[Line, ...] = ()

    @property
    def sharing(self) -> tuple[Line, ...]:
        """All that share the axes."""
        return (*self.lines, *self.beside)

    @property
    def typical_us(self) -> float:
        """About the least of their medians, 0 if none has values."""
        known = (line.view.counts for line in self.sharing if line.view.counts.any())
        return min((quantile_range_ns(counts, ("50", "50"))[0] / 1e3 for counts in known), default=0)

    @property
    def deadline_us(self) -> float | None:
        """The deadline, if it is near enough to be drawn."""
        return in_sight_us(self.deadline_ns, self._greatest_us)

    @property
    def reach_us(self) -> float:
        """How far an axis goes that shows the largest value, and the deadline if it is in sight."""
        return max(self._greatest_us, self.deadline_us or 0) or 1

    @property
    def _greatest_us(self) -> float:
        largest = (line.view.largest_ns for line in self.sharing)
        return max((int(values[0]) / 1e3 for values in largest if len(values)), default=0)


@dataclass(frozen=True, slots=True)
class Subject:
    """The series of a quantity of a cell, and the deadline on it, if any; ``design_effect`` as in Line."""

    series: Series
    deadline_ns: int | None
    design_effect: float | None = None

    @property
    def views(self) -> dict[str, PlottedView]:
        """The views worth telling apart: one, if nothing was passed over or lost."""
        views = {name: view for name, view in self.series.views.items() if view.n}
        first, primary = next(iter(views.items()))
        return {name: view for name, view in views.items() if name == first or view.n != primary.n}

    @property
    def distributions(self) -> Distributions:
        """Its views."""
        first, *others = (
            Line(words.VIEWS[name], view, VIEW_COLOURS[name]) for name, view in self.views.items()
        )
        in_time = self.series.skipped_in_time
        first = replace(first, design_effect=self.design_effect, skipped_in_time=in_time)
        return Distributions((first, *others), self.series.grid, self.deadline_ns)


@dataclass(frozen=True, slots=True)
class PlottedEvent:
    """Something that happened in a run, in seconds after its first measured release.

    What was counted over a span, not seen at a moment, has its end, ``until_s``, and how many ``times``.
    """

    at_s: float
    what: str
    until_s: float | None = None
    times: int = 0

    @property
    def end_s(self) -> float:
        """When it was over."""
        return self.at_s if self.until_s is None else self.until_s


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The time axis of a cell: when the stretches of an envelope begin and the last one ends, in seconds,
    the spans of which the rows are missing, and what happened meanwhile."""

    first_k: Ints
    begins_s: npt.NDArray[np.float64]
    end_k: int
    end_s: float
    gaps_s: tuple[tuple[float, float], ...] = ()
    events: tuple[PlottedEvent, ...] = ()

    def of(self, k: int) -> float:
        """When release k was, to within a stretch."""
        return float(np.interp(k, np.r_[self.first_k, self.end_k], np.r_[self.begins_s, self.end_s]))

    @property
    def unit(self) -> tuple[str, int]:
        """The unit of its axis, and that in seconds."""
        return ("h", 3600) if self.end_s >= 4 * 3600 else ("min", 60) if self.end_s >= 240 else ("s", 1)


@dataclass(frozen=True, slots=True)
class Extent:
    """The range of an axis of latencies over time, and what is typical on it, in microseconds; the deadline
    on it, None where it is out of sight."""

    least_us: float
    greatest_us: float
    typical_us: float
    deadline_us: float | None

    @classmethod
    def of(cls, subjects: Sequence[Subject]) -> Extent:
        """What holds the envelopes of all subjects, at least one, and their deadline if they share one."""
        lows, highs = [], []
        for subject in subjects:
            envelope = subject.series.envelope
            if envelope is not None and (there := envelope.n > 0).any():
                lows.append(int(envelope.min_ns[there].min()) / 1e3)
                highs.append(int(envelope.max_ns[there].max()) / 1e3)
        greatest = max(highs, default=0.0)
        deadlines = {subject.deadline_ns for subject in subjects}
        deadline_us = in_sight_us(deadlines.pop(), greatest) if len(deadlines) == 1 else None
        typical = min(subject.distributions.typical_us for subject in subjects)
        return cls(min(lows, default=0.0), max(greatest, deadline_us or 0) or 1, typical, deadline_us)


def in_sight_us(deadline_ns: int | None, greatest_us: float) -> float | None:
    """A deadline in microseconds, if it is near enough to values up to the greatest to be drawn."""
    if deadline_ns is None or deadline_ns > _IN_SIGHT * 1e3 * greatest_us:
        return None
    return deadline_ns / 1e3
