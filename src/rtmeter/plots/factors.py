"""What cells differ in: the values of a factor, names that tell cells apart, and how they are laid out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rtmeter.errors import RtmeterError
from rtmeter.results import words
from rtmeter.results.record import CellRecord

_RATE = "rate"


def value_of(record: CellRecord, factor: str) -> Any:
    """The value of a factor of the campaign, of a setting (``payload``, ``period``) or of ``rate`` (Hz).

    Raises RtmeterError if the cell has none.
    """
    settings = _settings(record)
    levels: dict[str, Any] = dict(record.factors) | dict(record.axes)
    if factor in levels:
        asked = levels[factor]
        return next((settings[key] for key in _keys(factor) if settings.get(key) is not None), asked)
    if factor == _RATE and record.tick_ns:
        return 1e9 / record.tick_ns
    named: dict[str, Any] = {"adapter": record.adapter, "measurement": record.measurement, "cell": record.id}
    if factor in named:
        return named[factor]
    for key in _keys(factor):
        if settings.get(key) is not None:
            return settings[key]
    known = [*levels, *named, _RATE, *(words.label(key) for key in settings)]
    raise RtmeterError(
        f"is no factor of {record.id}",
        field="factor",
        value=factor,
        remedy=f"name one of {', '.join(dict.fromkeys(known))}",
    )


def _settings(record: CellRecord) -> dict[str, Any]:
    """Of the probe, and what is required, where anything is."""
    asked = record.requirement
    required = {"deadline_ns": asked.deadline_ns, "miss_ratio": asked.miss_ratio} if asked else {}
    return required | dict(record.config)


def _keys(factor: str) -> tuple[str, ...]:
    return f"{factor}_bytes", f"{factor}_ns", factor


def name_of(record: CellRecord, factor: str) -> str:
    """The value in words."""
    value = value_of(record, factor)
    if factor == _RATE:
        return f"{value:,g} Hz"
    key = next((key for key in _keys(factor) if key in _settings(record)), factor)
    return words.setting(key, value)


def titled(record: CellRecord, factor: str) -> str:
    """The factor with the unit of its values, as an axis names it."""
    if factor == _RATE:
        return "rate, Hz"
    settings = _settings(record)
    units = {f"{factor}_bytes": "B", f"{factor}_ns": "ns"}
    unit = next((unit for key, unit in units.items() if settings.get(key) is not None), None)
    return words.label(factor) + (f", {unit}" if unit else "")


def labels(
    cells: Sequence[CellRecord], laid_out: Sequence[str] = (), folders: Sequence[Path] = ()
) -> list[str]:
    """A name for each cell by what it differs in from the others, ``laid_out`` factors apart; its id where
    that does not tell them apart, and where that does not either its folder below what all share, or the
    number of its run."""
    axes = dict.fromkeys(axis for record in cells for axis in record.axes if axis not in laid_out)
    varying = [axis for axis in axes if len({str(record.axes.get(axis)) for record in cells}) > 1]
    if len({record.adapter for record in cells}) > 1 and "adapter" not in {*varying, *laid_out}:
        varying = ["adapter", *varying]
    found = [", ".join(_one(record, axis) for axis in varying) for record in cells]
    if all(found) and len(set(found)) == len(cells):
        return found
    ids = [record.id for record in cells]
    if len(set(ids)) < len(ids) and len(set(folders)) == len(ids):
        absolute = [folder.resolve() for folder in folders]
        shared = os.path.commonpath(absolute)
        names = zip(ids, absolute, strict=True)
        return [str(at.relative_to(shared)) if ids.count(one) > 1 else one for one, at in names]
    return [
        f"{name}, run {ids[: place + 1].count(name)}" if ids.count(name) > 1 else name
        for place, name in enumerate(ids)
    ]


def _one(record: CellRecord, axis: str) -> str:
    if axis != "adapter" and axis not in record.axes:
        return words.NONE
    text = name_of(record, axis)
    return (
        text
        if not text[:1].isdigit() and text not in ("yes", "no", "none", words.NONE)
        else f"{words.label(axis)} {text}"
    )


def laid_out(cells: Sequence[CellRecord], by: Sequence[str]) -> list[list[tuple[str, list[int]]]]:
    """Rows of panels, each with its title and the places of its cells: by one factor in columns, by two in
    rows and columns. Without a factor one panel."""
    if not by:
        return [[("", list(range(len(cells))))]]
    names = [tuple(name_of(record, factor) for factor in by) for record in cells]
    rows = list(dict.fromkeys(name[:-1] for name in names))
    columns = list(dict.fromkeys(name[-1] for name in names))

    def panel(row: tuple[str, ...], column: str) -> tuple[str, list[int]]:
        title = ", ".join(
            f"{words.label(factor)} {value}" for factor, value in zip(by, (*row, column), strict=True)
        )
        return title, [place for place, name in enumerate(names) if name == (*row, column)]

    found = [[panel(row, column) for column in columns] for row in rows]
    return [[one for one in row if one[1]] for row in found]
