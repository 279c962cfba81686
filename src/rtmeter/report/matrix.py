"""The verdicts of a campaign as a matrix over its axes, and what its cells can be filtered by."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from rtmeter.campaign.factors import LABELS
from rtmeter.judge.layouts import determined, layout_of, told_apart, varying
from rtmeter.results import words
from rtmeter.results.overview import CellEntry, CellOutcome
from rtmeter.values import parse_duration_ns, parse_rate, parse_size_bytes

_MOST_COLUMNS = 8
"""Columns of a matrix that fit beside the answer."""

_MOST_CHOICES = 40
"""Values of an axis that can be chosen from a list."""


@dataclass(frozen=True, slots=True)
class Square:
    """The condition at one place of the matrix, the worst if there are several: its outcome and anchor."""

    outcome: CellOutcome
    anchor: str
    cell: CellEntry

    @property
    def text(self) -> str:
        """The share of its releases that missed; nothing where none was judged."""
        verdict = self.cell.record.verdict if self.cell.record else None
        return words.missed_share(verdict) if verdict and verdict.n else ""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of squares (None: no cell there) of cells that vary in the same axes; ``across`` is the axis of
    the columns, ``down`` those of the rows, ``name`` what the cells' ids begin with."""

    name: str
    across: str
    down: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[Square | None, ...]], ...]


def axes_of(cells: Sequence[CellEntry]) -> list[str]:
    """The axes in which cells differ, in the order of the campaign, repeats apart. Where named cells or
    variants are places of a table over what they set, its factors in the place of their names."""
    records = [cell.record for cell in cells if cell.record]
    layouts = [layout_of(record) for record in records]
    found, told = varying(layouts), told_apart(layouts)
    axes = {"adapter", *(axis for record in records for axis in record.axes)}
    labels = [label for label in LABELS if label in told]
    told = [name for name in told if not any(determined(layouts, label, name) for label in labels)] + labels
    places = len({tuple(levels.get(name) for name in told) for levels in layouts})
    room = math.prod(len({levels.get(name) for levels in layouts}) for name in told)
    shown = {*told, *(axes - {*LABELS})} if 2 * places > room else {*axes, *LABELS}
    return [name for name in found if name in shown]


def shown_axes(cells: Sequence[CellEntry]) -> list[str]:
    """The axes that a table of the cells has: those of the campaign, and the adapter if there are several."""
    axes = dict.fromkeys(axis for cell in cells if cell.record for axis in cell.record.axes)
    return [*axes, *(axis for axis in axes_of(cells) if axis not in axes)]


def matrices(cells: Sequence[tuple[str, CellEntry]]) -> list[Matrix]:
    """A matrix for the cells, given with their anchors, of each set of axes in which there are several."""
    groups: dict[tuple[str, frozenset[str]], list[tuple[str, CellEntry]]] = {}
    for anchor, cell in cells:
        if cell.record is not None:
            kind = cell.record.measurement, frozenset(layout_of(cell.record))
            groups.setdefault(kind, []).append((anchor, cell))
    found = [_matrix(group) for group in groups.values()]
    return [one for one in found if one is not None]


def _matrix(cells: Sequence[tuple[str, CellEntry]]) -> Matrix | None:
    """None where they differ in no axis. The columns are the axis with the most values that fit across."""
    axes = axes_of([cell for _, cell in cells])
    counts = {axis: len({_value(cell, axis) for _, cell in cells}) for axis in axes}
    fitting = [axis for axis in axes if counts[axis] <= _MOST_COLUMNS]
    if not fitting:
        return None
    across = max(fitting, key=lambda axis: (counts[axis], axes.index(axis)))
    down = tuple(axis for axis in axes if axis != across)
    places: dict[tuple[str, ...], dict[str, list[tuple[str, CellEntry]]]] = {}
    for anchor, cell in cells:
        row = tuple(_value(cell, axis) for axis in down)
        places.setdefault(row, {}).setdefault(_value(cell, across), []).append((anchor, cell))
    columns = _levels([cell for _, cell in cells], across)
    order = [_levels([cell for _, cell in cells], axis) for axis in down]
    rows = tuple(
        (row, tuple(_square(places[row].get(column, [])) for column in columns))
        for row in sorted(places, key=lambda names: list(map(list.index, order, names)))
    )
    return Matrix(_common([cell.id for _, cell in cells], axes), across, down, tuple(columns), rows)


def _common(names: Sequence[str], axes: Sequence[str]) -> str:
    """The parts between dashes that all names begin with, but for a last one that names an axis."""
    common = []
    for parts in zip(*(name.split("-") for name in names), strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return "-".join(common[:-1] if len(common) > 1 and common[-1] in axes else common)


def _square(found: Sequence[tuple[str, CellEntry]]) -> Square | None:
    if not found:
        return None
    anchor, worst = min(found, key=lambda one: one[1].badness)
    return Square(worst.outcome, anchor, worst)


def choices(cells: Sequence[CellEntry]) -> list[tuple[str, list[str]]]:
    """(axis, its values) that cells can be filtered by."""
    found = []
    for axis in axes_of(cells):
        values = _levels(cells, axis)
        if len(values) <= _MOST_CHOICES:
            found.append((axis, values))
    return found


def searched(cell: CellEntry) -> str:
    """The words by which a cell is found: its name, adapter, values and verdict."""
    record = cell.record
    values = [f"{axis}={_value(cell, axis)}" for axis in record.layout] if record else []
    parts = [cell.id, record.adapter if record else "", *values, cell.outcome, cell.state]
    return " ".join(parts).lower()


def filtered_by(cell: CellEntry) -> str:
    """The values of its axes, as JSON."""
    return json.dumps({axis: _value(cell, axis) for axis in cell.record.layout} if cell.record else {})


def _value(cell: CellEntry, axis: str) -> str:
    return words.setting(axis, cell.record.layout.get(axis)) if cell.record else words.NONE


def _levels(cells: Sequence[CellEntry], axis: str) -> list[str]:
    """The values of an axis: durations, sizes and numbers by what they are, all others in the order of the
    campaign, or by name where there is none."""
    found = sorted((cell.place, _value(cell, axis)) for cell in cells if cell.record)
    return sorted(dict.fromkeys(value for _, value in found), key=_number)


def _number(name: str) -> tuple[bool, float]:
    for parse in (parse_duration_ns, parse_size_bytes, parse_rate):
        with suppress(ValueError):
            return False, float(parse(name))
    return True, 0.0
