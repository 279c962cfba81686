"""The figures of a cell: its samples gathered and drawn, quantity by quantity."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from rtmeter.model import ABSENT
from rtmeter.plots import chart_distribution, chart_time
from rtmeter.plots.counted import of_counted
from rtmeter.plots.data import Detail, Series, gather
from rtmeter.plots.events import events_of
from rtmeter.plots.grammar import Spec
from rtmeter.plots.subject import Subject, TimeAxis
from rtmeter.results import store, words
from rtmeter.results.condition_words import uncertainty
from rtmeter.results.data import counted_of
from rtmeter.results.overview import CellEntry
from rtmeter.results.record import CellRecord
from rtmeter.samples.rows import Samples
from rtmeter.statistics.quantities import Ints, Quantity, judged_quantity, kind, quantities

_PLOTTED = {
    "wakeup": ("latency",),
    "timer/periodic": ("latency", "dispatch"),
    "timer/one_shot": ("measured", "reported", "difference"),
    "roundtrip": ("response", "round_trip", "ping", "pong"),
    "request": (
        *("response", "round_trip", "request", "respond"),
        *("accepted", "first_feedback"),
    ),
    "cycle": ("completion", "cycle_delay", "request", "respond"),
    "chain": ("reaction",),
    "discovery": ("time_to_first", "time_to_matched"),
    "own_loop": ("completion", "latency"),
    "loop": ("completion", "latency", "busy", "interval"),
    "imported": ("latency",),
}
"""The quantities that are plotted, the judged one first; the table shows all."""

_WITH_DEADLINE = {
    *("latency", "measured", "response", "round_trip", "completion", "reaction", "time_to_first"),
}

_SHARED_POINTS = 100_000
"""Stretches that the figures of a report share: what keeps it below 10 MB."""

_MOST_STRETCHES = 6000
"""Ten to a pixel of a phone: what zooming in shows."""

_THREADS = 2

_TALL, _LOW = 250, 150

_SHARE = "Share of the releases that were that late or later; logarithmic"


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot: its title, what it shows, and its specification."""

    title: str
    about: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class LargestValue:
    """One of the largest values: release, seconds after the first one, nanoseconds."""

    k: int
    at_s: float
    value_ns: int


@dataclass(frozen=True, slots=True)
class Panel:
    """The figures of one quantity; ``view`` and ``n`` say of what they are, ``lost`` how many of them are
    later than the ``largest``."""

    quantity: str
    judged: bool
    view: str
    n: int
    lost: int
    figures: list[Figure]
    largest: list[LargestValue]


def detail_for(cells: int) -> Detail:
    """How much detail each plot of a report of so many cells gets."""
    share = _SHARED_POINTS // max(1, cells)
    stretches = min(_MOST_STRETCHES, max(60, share // 4))
    if share >= 2400:
        return Detail(stretches)
    return Detail(stretches, steps=max(60, share // 10), points_a_decade=12)


def panels(cell: CellEntry, detail: Detail, all_quantities: bool) -> list[Panel]:
    """The panels of a cell with a file; none if it has no samples. Unreadable ones raise RtmeterError."""
    record, path = cell.record, cell.folder / store.SAMPLES
    assert record is not None
    if record.summary is None:
        return []
    counted = counted_of(cell.folder, record)
    if counted is not None:
        series = of_counted(counted, judged_quantity(record.meta), detail)
        return [_panel(record, series, None, detail)] if series else []
    samples = Samples(path)
    judged, *others = _plotted(record)
    others = [other for other in others if all_quantities and samples.columns.issuperset(other.columns)]

    def gathered(quantity: Quantity) -> Series | None:
        return gather(Samples(path), record.meta, quantity, deadline_ns(record, quantity), detail)

    with ThreadPoolExecutor(_THREADS) as pool:
        found = [series for series in pool.map(gathered, [judged, *others]) if series is not None]
    if not found:
        return []
    assert found[0].envelope is not None
    time = time_of(samples, record, found[0].envelope.first_k)
    time = replace(time, events=events_of(cell, time))
    return [_panel(record, series, time, detail) for series in found]


def _plotted(record: CellRecord) -> list[Quantity]:
    by_name = {quantity.name: quantity for quantity in quantities(record.meta)}
    return [by_name[name] for name in _PLOTTED[kind(record.meta)] if name in by_name]


def deadline_ns(record: CellRecord, quantity: Quantity) -> int | None:
    """The deadline that a plot of the quantity shows."""
    return record.deadline_ns if quantity.name in _WITH_DEADLINE else None


def design_effect(record: CellRecord) -> float | None:
    """How many releases count as one in bounds of shares, by the verdict; None without one that looked."""
    return record.verdict.support.design_effect if record.verdict and record.verdict.support else None


def _panel(record: CellRecord, series: Series, time: TimeAxis | None, detail: Detail) -> Panel:
    """The panel of a quantity; without ``time`` there is no order: nothing is drawn over time."""
    quantity = series.quantity
    judged = quantity == judged_quantity(record.meta)
    subject = Subject(series, deadline_ns(record, quantity), design_effect(record) if judged else None)
    height = _TALL if judged else _LOW
    name, view = next(iter(subject.views.items()))
    return Panel(
        quantity=words.quantity(record.meta, quantity.name)
        + uncertainty(quantity.name, record.clock_offset, record.kernel_stamps),
        judged=judged,
        view=words.VIEWS[name],
        n=view.n,
        lost=view.lost,
        figures=[
            *([_over_time(subject, time, height)] if time else []),
            Figure(
                "Histogram",
                "How many releases had which value; counts on a logarithmic axis",
                chart_distribution.histogram(subject.distributions, height),
            ),
            Figure(
                "Complementary CDF",
                _SHARE + (f"; band: {100 * chart_distribution.BAND:g} % at each point" if judged else ""),
                chart_distribution.complementary_cdf(subject.distributions, height, detail.points_a_decade),
            ),
        ],
        largest=[
            LargestValue(k, float(time.of(k)), value_ns)
            for k, value_ns in zip(view.largest_k.tolist(), view.largest_ns.tolist(), strict=True)
        ]
        if time
        else [],
    )


def _over_time(subject: Subject, time: TimeAxis, height: int) -> Figure:
    return Figure(
        "Over time",
        "Least to greatest value of each stretch of time, their mean, and when releases missed",
        chart_time.over_time(subject, time, height, zoomable=True),
    )


def time_of(
    samples: Samples, record: CellRecord, first_k: Ints, zero_k: int | None = None, end_k: int | None = None
) -> TimeAxis:
    """When each stretch began, counted from the first measured release, ``zero_k`` (default: where the first
    one begins); they end before ``end_k`` (default: with the file)."""
    assert record.tick_ns is not None
    zero_k = int(first_k[0]) if zero_k is None else zero_k
    end_k = max(samples.k_range()[1] + 1, int(first_k[-1]) + 1) if end_k is None else end_k
    begun = "armed_before_ns" if record.mode == "one_shot" else "release_ns"
    if record.mode == "one_shot" or record.measurement == "loop":
        begins_ns, end_ns = _begun(samples, begun, first_k, zero_k, end_k, record.tick_ns)
    else:
        begins_ns, end_ns = (first_k - zero_k) * record.tick_ns, (end_k - zero_k) * record.tick_ns
    at = TimeAxis(first_k, begins_ns / 1e9, end_k, end_ns / 1e9)
    gaps = [(first, end_k - 1 if last is None else last) for first, last in record.missing]
    spans = [(at.of(first), at.of(last + 1)) for first, last in gaps if last >= first_k[0] and first < end_k]
    return replace(at, gaps_s=tuple(spans))


def _begun(
    samples: Samples, column: str, first_k: Ints, zero_k: int, end_k: int, tick_ns: int
) -> tuple[Ints, int]:
    """When the first shot of each stretch was armed, or the first job of a program's loop released, which
    need be on no grid; and a timeout or period after the last."""
    k = np.unique(np.r_[zero_k, first_k, end_k - 1])
    begun = samples.at(k, column)
    known = begun != ABSENT
    begun = np.interp(k, k[known], begun[known] - begun[known][0]).astype(np.int64)
    return begun[np.searchsorted(k, first_k)], int(begun[-1]) + tick_ns
