"""A cell read for one plot of one of its quantities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rtmeter.errors import RtmeterError
from rtmeter.plots.counted import of_counted
from rtmeter.plots.data import Detail, PlottedView, Series, envelope_of, gather, length_of, recount, together
from rtmeter.plots.events import events_of
from rtmeter.plots.figures import deadline_ns, design_effect, time_of
from rtmeter.plots.subject import Line, Subject, TimeAxis, maximum
from rtmeter.results import store, words
from rtmeter.results.condition_words import uncertainty
from rtmeter.results.data import counted_of
from rtmeter.results.overview import CellEntry
from rtmeter.results.record import CellRecord
from rtmeter.samples.rows import Samples
from rtmeter.statistics.bins import BinGrid
from rtmeter.statistics.quantities import Quantity, judged_quantity, quantities

_DETAIL = Detail()

_INTERVALS = 100
"""Into about so many intervals a run is cut if their length is not asked for, unless that is longer than
OSADL's."""

_OSADL_NS = 300 * 10**9
"""The intervals of OSADL's latency plots (osadl.org): five minutes."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A quantity of a cell: what the plot shows of it and, where that is a part of the run, the whole."""

    cell: CellEntry
    record: CellRecord
    quantity: str
    subject: Subject
    time: TimeAxis | None
    whole: Subject | None = None
    whole_time: TimeAxis | None = None

    @property
    def view(self) -> PlottedView:
        """Its first view."""
        return next(iter(self.subject.views.values()))

    def on(self, grid: BinGrid) -> Loaded:
        """The same, its steps counted on another grid."""
        series = self.subject.series
        counted = counted_of(self.cell.folder, self.record)
        if counted is None:
            moved = recount(Samples(self.cell.folder / store.SAMPLES), self.record.meta, series, grid)
        else:
            found = of_counted(counted, series.quantity, _DETAIL, grid)
            assert found is not None
            moved = found
        return replace(self, subject=replace(self.subject, series=moved))


def titled(loaded: Sequence[Loaded]) -> str:
    """The quantities and the views that are drawn."""
    quantities = dict.fromkeys(one.quantity for one in loaded)
    views = dict.fromkeys(words.VIEWS[next(iter(one.subject.views))] for one in loaded)
    return f"{' and '.join(quantities)}, {' and '.join(views)}"


def told_apart(names: Sequence[str], loaded: Sequence[Loaded]) -> list[str]:
    """The names, each with its quantity where these differ."""
    several = len({one.quantity for one in loaded}) > 1
    return [f"{name}, {one.quantity}" if several else name for name, one in zip(names, loaded, strict=True)]


def line(runs: Sequence[Loaded], label: str, colour: str) -> Line:
    """The first views of the runs of a condition as one line of a plot, the largest value in the legend; of
    several runs no bound is stated."""
    view = together([run.view for run in runs])
    effect = runs[0].subject.design_effect if len(runs) == 1 else None
    in_time = sum(run.subject.series.skipped_in_time for run in runs)
    return Line(label, view, colour, effect, f"   Max: {maximum(view)}", in_time)


def load(
    cell: CellEntry,
    quantity: str | None,
    zoom_s: tuple[float, float] | None = None,
    pixels: int = 900,
    *,
    binned: bool = True,
) -> Loaded:
    """Reads a cell with a summary, of which ``zoom_s``, seconds after its first measured release, are shown
    over so many pixels; ``binned``: also for distributions.

    Raises RtmeterError if it has no such quantity, or nothing of it there.
    """
    assert cell.record is not None
    record, wanted = cell.record, _quantity(cell.record, quantity)
    name = words.quantity(record.meta, wanted.name) + uncertainty(
        wanted.name, record.clock_offset, record.kernel_stamps
    )
    counted = counted_of(cell.folder, record)
    if counted is not None:
        series = of_counted(counted, wanted, _DETAIL)
        if series is None:
            raise _nothing(cell, "has maxima of intervals only: their distribution is not known")
        return Loaded(cell, record, name, _subject(record, series), None)
    samples = Samples(cell.folder / store.SAMPLES)
    detail = replace(_DETAIL, stretches=pixels, steps=_DETAIL.steps if binned else 0)
    series = gather(samples, record.meta, wanted, deadline_ns(record, wanted), detail)
    if series is None or series.envelope is None:
        raise _nothing(cell, f"has no {name}")
    time = time_of(samples, record, series.envelope.first_k)
    time = replace(time, events=events_of(cell, time))
    whole = Loaded(cell, record, name, _subject(record, series), time)
    return whole if zoom_s is None else _zoomed(whole, samples, wanted, zoom_s, pixels)


def in_order(loaded: Loaded) -> tuple[Subject, TimeAxis]:
    """What is plotted over time. Raises RtmeterError of a cell whose values have no order."""
    if loaded.time is None:
        raise _nothing(loaded.cell, "is a histogram: nothing is known of the order of its values")
    return loaded.subject, loaded.time


def in_intervals(loaded: Loaded, interval_ns: int | None) -> tuple[Subject, TimeAxis]:
    """The same in intervals of a length, by default OSADL's, or shorter ones of a short run."""
    subject, time = in_order(loaded)
    tick_ns = loaded.record.tick_ns
    assert tick_ns is not None
    first_k, last_k = int(time.first_k[0]), time.end_k - 1
    wanted_ns = interval_ns or min(_OSADL_NS, _round_ns((last_k + 1 - first_k) * tick_ns / _INTERVALS))
    length = max(1, round(wanted_ns / tick_ns))
    samples = Samples(loaded.cell.folder / store.SAMPLES)
    quantity = subject.series.quantity
    envelope = envelope_of(
        samples, loaded.record.meta, quantity, subject.deadline_ns, (first_k, last_k), length
    )
    at = time_of(samples, loaded.record, envelope.first_k)
    return replace(subject, series=replace(subject.series, envelope=envelope)), replace(
        at, events=time.events
    )


def _round_ns(ns: float) -> int:
    """The first of 1, 2, 5, 10, 20, 30, 60 and 120 s or their thousandth parts that is not less."""
    steps = [factor * 10**exponent for exponent in range(3, 9) for factor in (1, 2, 5)]
    steps += [seconds * 10**9 for seconds in (1, 2, 5, 10, 20, 30, 60, 120, 300)]
    return next((step for step in steps if step >= ns), _OSADL_NS)


def _zoomed(
    whole: Loaded, samples: Samples, quantity: Quantity, zoom_s: tuple[float, float], pixels: int
) -> Loaded:
    _, time = in_order(whole)
    zero_k = int(time.first_k[0])
    ks, seconds = np.r_[time.first_k, time.end_k], np.r_[time.begins_s, time.end_s]
    from_k, to_k = (round(float(np.interp(second, seconds, ks))) for second in zoom_s)
    if to_k <= from_k:
        raise RtmeterError(
            f"holds no release of {whole.cell.id}, which lasts {time.end_s:g} s",
            field="--zoom",
            value=f"{zoom_s[0]:g}s..{zoom_s[1]:g}s",
            remedy="name a part of the run",
        )
    within = (from_k, to_k - 1)
    length = length_of(to_k - from_k, pixels)
    envelope = envelope_of(samples, whole.record.meta, quantity, whole.subject.deadline_ns, within, length)
    part = replace(whole.subject, series=replace(whole.subject.series, envelope=envelope))
    at = time_of(samples, whole.record, envelope.first_k, zero_k, to_k)
    return replace(
        whole,
        subject=part,
        time=replace(at, events=time.events),
        whole=whole.subject,
        whole_time=time,
    )


def _subject(record: CellRecord, series: Series) -> Subject:
    return Subject(series, deadline_ns(record, series.quantity), design_effect(record))


def _quantity(record: CellRecord, name: str | None) -> Quantity:
    if name is None:
        return judged_quantity(record.meta)
    by_name = {quantity.name: quantity for quantity in quantities(record.meta)}
    if name not in by_name:
        raise RtmeterError(
            f"is no quantity of {record.id}",
            field="--quantity",
            value=name,
            remedy=f"name {' or '.join(by_name)}",
        )
    return by_name[name]


def _nothing(cell: CellEntry, message: str) -> RtmeterError:
    return RtmeterError(message, field="cell", value=str(cell.folder), remedy="name another cell or kind")
