"""What happened in the course of a run, to be marked on its plots over time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from rtmeter.conditions.throttling import QUOTA, THERMAL
from rtmeter.errors import RtmeterError
from rtmeter.host import checked
from rtmeter.plots.subject import PlottedEvent, TimeAxis
from rtmeter.results.overview import CellEntry

Seconds = npt.NDArray[np.float64]

_FILES = ("monitor.parquet", "watch.parquet")  # the second: as it was called once

_STRAIN = {"load_workers": "load", "traffic_streams": "traffic"}

_THROTTLED = {QUOTA: "quota", THERMAL: "heat"}

_SPANS = 500
"""Spans of a run that are told apart: those nearer to each other are one."""

_STOLEN = 0.05
"""A share of a CPU's time that the hypervisor took in one interval, to be told."""


def events_of(cell: CellEntry, time: TimeAxis) -> tuple[PlottedEvent, ...]:
    """Changes of the tail that its gates found, load and traffic that came or went, throttling, and time
    that the hypervisor took; in their order. Raises RtmeterError if what was seen is damaged."""
    found = [*_changes(cell, time), *_monitored(cell, time)]
    there = (event for event in found if event.end_s >= 0 and event.at_s <= time.end_s)
    return tuple(sorted(there, key=lambda event: event.at_s))


def _changes(cell: CellEntry, time: TimeAxis) -> Iterator[PlottedEvent]:
    """Where a gate found that the tail changes."""
    support = cell.record.verdict.support if cell.record and cell.record.verdict else None
    for finding in support.findings if support else ():
        for release in finding.at:
            yield PlottedEvent(time.of(int(time.first_k[0]) + release), "tail changes")


def _monitored(cell: CellEntry, time: TimeAxis) -> Iterator[PlottedEvent]:
    """What monitor.parquet has, where it is. Raises RtmeterError if it cannot be read."""
    origin_ns = _origin_ns(cell)
    file = next((path for name in _FILES if (path := cell.folder / name).exists()), None)
    if file is None:
        return
    try:
        rows = checked.read(file)
    except checked.DAMAGED as error:
        message = f"what the machine did meanwhile cannot be read: {str(error).splitlines()[0]}"
        remedy = "measure the cell again, or remove the file: the plot then marks nothing of it"
        raise RtmeterError(message, where=str(file), remedy=remedy) from None
    if origin_ns is None or "at_ns" not in rows.column_names:
        return
    at_s = (checked.numbers(rows.column("at_ns")) - origin_ns) / 1e9
    for column, what in _STRAIN.items():
        if column in rows.column_names:
            workers = checked.numbers(rows.column(column))
            for place in np.flatnonzero(np.diff(workers)) + 1:
                yield PlottedEvent(float(at_s[place]), f"{what}: {workers[place - 1]} to {workers[place]}")
    for column, what in _THROTTLED.items():
        if {column, "interval_ns"} <= set(rows.column_names):
            begins_s = at_s - checked.numbers(rows.column("interval_ns")) / 1e9
            times = checked.numbers(rows.column(column))
            yield from _spans(what, np.maximum(begins_s, 0), at_s, times, time.end_s / _SPANS)
    for column in rows.column_names:
        if column.endswith("_steal"):
            stolen = checked.numbers(rows.column(column))
            worst = int(stolen.argmax()) if len(stolen) else 0
            if len(stolen) and stolen[worst] > _STOLEN:
                yield PlottedEvent(
                    float(at_s[worst]), f"{column.removesuffix('_steal')}: {stolen[worst]:.0%} stolen"
                )


def _spans(
    what: str, begins_s: Seconds, ends_s: Seconds, times: Seconds, nearer_s: float
) -> Iterator[PlottedEvent]:
    """When it happened at all, by samples; spans nearer than that are joined."""
    there = np.flatnonzero((times > 0) & (ends_s > 0))
    if not len(there):
        return
    apart = np.flatnonzero(begins_s[there[1:]] - ends_s[there[:-1]] > nearer_s) + 1
    for span in np.split(there, apart):
        yield PlottedEvent(float(begins_s[span[0]]), what, float(ends_s[span[-1]]), int(times[span].sum()))


def _origin_ns(cell: CellEntry) -> int | None:
    """When the first measured release was, on the clock of monitor.parquet."""
    t0_ns = cell.record.grid.get("t0_ns") if cell.record else None
    if cell.record is None or t0_ns is None:
        return None
    return t0_ns + cell.record.warm_up * (cell.record.tick_ns or 0)
