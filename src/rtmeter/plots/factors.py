"""What cells differ in: the values of a factor, names that tell cells apart, and how they are laid out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rtmeter.errors import RtmeterError
from rtmeter.results import words
from rtmeter.results.cell_file import CellFile

_RATE = "rate"


def value_of(file: CellFile, factor: str) -> Any:
    """The value of an axis of the campaign, of a setting (``payload``, ``period``) or of ``rate`` (Hz).

    Raises RtmeterError if the cell has none.
    """
    settings = file.config.model_dump()
    if factor in file.axes:
        asked = file.axes[factor]
        return next((settings[key] for key in _keys(factor) if settings.get(key) is not None), asked)
    if factor == _RATE and file.tick_ns:
        return 1e9 / file.tick_ns
    named: dict[str, Any] = {"adapter": file.adapter, "measurement": file.measurement, "cell": file.id}
    if factor in named:
        return named[factor]
    for key in _keys(factor):
        if settings.get(key) is not None:
            return settings[key]
    known = [*file.axes, *named, _RATE, *(words.label(key).replace(" ", "_") for key in settings)]
    raise RtmeterError(
        f"is no factor of {file.id}",
        field="factor",
        value=factor,
        remedy=f"name one of {', '.join(dict.fromkeys(known))}",
    )


def _keys(factor: str) -> tuple[str, ...]:
    return f"{factor}_bytes", f"{factor}_ns", factor


def name_of(file: CellFile, factor: str) -> str:
    """The value in words."""
    value = value_of(file, factor)
    if factor == _RATE:
        return f"{value:,g} Hz"
    key = next((key for key in _keys(factor) if key in file.config.model_dump()), factor)
    return words.setting(key, value)


def titled(file: CellFile, factor: str) -> str:
    """The factor with the unit of its values, as an axis names it."""
    if factor == _RATE:
        return "rate, Hz"
    settings = file.config.model_dump()
    units = {f"{factor}_bytes": "B", f"{factor}_ns": "ns"}
    unit = next((unit for key, unit in units.items() if settings.get(key) is not None), None)
    return words.label(factor) + (f", {unit}" if unit else "")


def labels(cells: Sequence[CellFile], laid_out: Sequence[str] = ()) -> list[str]:
    """A name for each cell by what it differs in from the others, ``laid_out`` factors apart; its id where
    that does not tell them apart."""
    axes = dict.fromkeys(axis for file in cells for axis in file.axes if axis not in laid_out)
    varying = [axis for axis in axes if len({str(file.axes.get(axis)) for file in cells}) > 1]
    if len({file.adapter for file in cells}) > 1 and "adapter" not in {*varying, *laid_out}:
        varying = ["adapter", *varying]
    found = [", ".join(_one(file, axis) for axis in varying) for file in cells]
    return found if all(found) and len(set(found)) == len(cells) else [file.id for file in cells]


def _one(file: CellFile, axis: str) -> str:
    if axis != "adapter" and axis not in file.axes:
        return words.NONE
    text = name_of(file, axis)
    return (
        text
        if not text[:1].isdigit() and text not in ("yes", "no", "none", words.NONE)
        else f"{words.label(axis)} {text}"
    )


def laid_out(cells: Sequence[CellFile], by: Sequence[str]) -> list[list[tuple[str, list[int]]]]:
    """Rows of panels, each with its title and the places of its cells: by one factor in columns, by two in
    rows and columns. Without a factor one panel."""
    if not by:
        return [[("", list(range(len(cells))))]]
    names = [tuple(name_of(file, factor) for factor in by) for file in cells]
    rows = list(dict.fromkeys(name[:-1] for name in names))
    columns = list(dict.fromkeys(name[-1] for name in names))

    def panel(row: tuple[str, ...], column: str) -> tuple[str, list[int]]:
        title = ", ".join(
            f"{words.label(factor)} {value}" for factor, value in zip(by, (*row, column), strict=True)
        )
        return title, [place for place, name in enumerate(names) if name == (*row, column)]

    found = [[panel(row, column) for column in columns] for row in rows]
    return [[one for one in row if one[1]] for row in found]
