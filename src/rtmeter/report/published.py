"""Published values beside the cells of a report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rtmeter.judge.published import Beside, MeasuredTime, TableLine, Value, beside, has_unit
from rtmeter.results import words
from rtmeter.results.overview import CellEntry


class Placed(Protocol):
    """A cell and where it is in the page."""

    @property
    def anchor(self) -> str: ...

    @property
    def cell(self) -> CellEntry: ...


def published(sections: Iterable[Placed]) -> list[Beside]:
    """Every published table that the cells are to be set beside; a cell that cannot be read is left out."""
    found = []
    for section in sorted(sections, key=lambda one: int(one.anchor.rpartition("-")[2])):
        if section.cell.record is not None:
            found.append((section.cell.id, section.cell.record))
    return beside(found)


def anchors(sections: Iterable[Placed]) -> dict[str, str]:
    """Where each cell is in the page."""
    return {section.cell.id: section.anchor for section in sections}


def shown(value: Value, column: str) -> str:
    """A value as the tables write it: times in microseconds, published numbers with thousands set apart."""
    if isinstance(value, MeasuredTime):
        us = words.us(value.ns)
        return us if has_unit(column) else f"{value.statistic} {us} us"
    if isinstance(value, str) and value.removeprefix("-").isdecimal():
        value = int(value)
    if value is None or isinstance(value, str):
        return value or words.NONE
    return f"{value:,}"


def quantity(line: TableLine) -> str:
    """What a line of a cell shows, in words."""
    return "" if line.quantity is None or line.meta is None else words.quantity(line.meta, line.quantity)
