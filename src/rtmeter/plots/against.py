"""Conditions of which one factor differs → quantiles and misses against it, and the first that fails."""

from __future__ import annotations

from collections.abc import Sequence

from rtmeter.errors import RtmeterError
from rtmeter.judge.entries import by_condition
from rtmeter.plots import chart_against, factors
from rtmeter.plots.chart_against import Point
from rtmeter.plots.grammar import Spec
from rtmeter.plots.heading import heading, notes
from rtmeter.plots.picture import grid
from rtmeter.results import words
from rtmeter.results.overview import CellEntry
from rtmeter.results.record import CellRecord

_QUANTILES = {"p50": "p50_ns", "p99": "p99_ns", "p99.9": "p99_9_ns", "max": "max_ns"}

_HARDER_DOWN = ("period", "timeout", "deadline", "miss_ratio")
"""Factors of which the smaller values ask for more."""

_MISSES = 0.4
"""The height of a panel of misses, as a share of that above it."""


def panels(cells: Sequence[CellEntry], over: str | None, by: Sequence[str], height: int, width: int) -> Spec:
    """A panel for each value of ``by``; below it, where anything was required, one of the misses. Raises
    RtmeterError."""
    conditions = _going_up(by_condition(cells), by)
    files = [cell.record for cell in conditions if cell.record is not None]
    factor = over or _swept(files, by)
    rows: list[list[tuple[str, Spec]]] = []
    layout = [
        [
            (title, _points([(conditions[place], files[place]) for place in places], factor))
            for title, places in row
        ]
        for row in factors.laid_out(files, by)
    ]
    every = [points for row in layout for _, points in row]
    axis, below = factors.titled(files[0], factor), max(100, round(_MISSES * height))
    for row in layout:
        latencies = [(title, chart_against.quantiles(points, axis, height, every)) for title, points in row]
        misses = [("", chart_against.misses(points, axis, below, every)) for _, points in row]
        rows.append(latencies)
        if any(file.requirement for file in files):
            rows.append(misses)
    measured = [file for file in files if file.summary is not None]
    if not measured:
        raise RtmeterError("no cell has anything measured", remedy="name cells that were measured")
    repeated = [words.OF_ALL_RUNS]
    remarks = [*(repeated if any(cell.repeats for cell in conditions) else []), *notes(measured)]
    name = f"{' and '.join(dict.fromkeys(words.judged(file.meta) for file in measured))}, per release,"
    return grid(rows, f"{heading(measured, name)} against {factor}", remarks, width)


def _going_up(conditions: list[CellEntry], by: Sequence[str]) -> list[CellEntry]:
    """By the values that panels are for, where these are numbers."""
    known = [cell for cell in conditions if cell.record is not None]
    keys = {id(cell): [factors.value_of(cell.record, name) for name in by] for cell in known if cell.record}
    numbers = all(isinstance(value, int | float) for key in keys.values() for value in key)
    return sorted(known, key=lambda cell: keys[id(cell)]) if numbers else known


def _swept(files: Sequence[CellRecord], by: Sequence[str]) -> str:
    """The only axis of which the cells have several values; of periods the rate."""
    axes = dict.fromkeys(axis for file in files for axis in file.axes if axis not in (*by, "repeat"))
    found = [axis for axis in axes if len({str(file.axes.get(axis)) for file in files}) > 1]
    if "rate" in by:
        found = [axis for axis in found if axis != "period"]
    found = ["rate" if axis == "period" else axis for axis in found]
    if len(found) != 1:
        several = f" (the cells differ in {' and '.join(found)})" if found else ""
        example = f"--over {found[0]} --by {found[1]}" if found else "--over payload"
        raise RtmeterError("is missing", field="--over", remedy=f"name a factor, e.g. {example}{several}")
    return found[0]


def _points(cells: Sequence[tuple[CellEntry, CellRecord]], over: str) -> list[Point]:
    points = [_point(cell, record, over) for cell, record in cells]
    places = [point.at for point in points]
    if twice := [place for place in places if places.count(place) > 1]:
        remedy = "spread the cells with --by, or name fewer"
        raise RtmeterError("several cells have the same", field=over, value=str(twice[0]), remedy=remedy)
    if all(isinstance(place, float) for place in places):
        points.sort(key=lambda point: point.at, reverse=over in _HARDER_DOWN)
    return points


def _point(cell: CellEntry, record: CellRecord, over: str) -> Point:
    value = factors.value_of(record, over)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    found = {name: getattr(cell.judged, field, None) for name, field in _QUANTILES.items()}
    known = {name: ns if isinstance(ns, int | float) else None for name, ns in found.items()}
    required = record.requirement
    return Point(
        float(f"{value:.6g}") if number and over == "rate" else float(value) if number else str(value),
        factors.name_of(record, over),
        known,
        record.deadline_ns,
        cell.missed_between,
        required.miss_ratio if required else None,
        fails=cell.outcome in ("fail", "error"),
    )
