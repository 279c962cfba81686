"""Published values and cells → both side by side, and which of the source's conditions held here."""

from rtmeter.judge.published.beside import (
    Beside,
    MeasuredTime,
    PublishedEntry,
    SourceTable,
    TableLine,
    Value,
    beside,
    has_unit,
    label,
)
from rtmeter.judge.published.held import Unmet

__all__ = [
    "Beside",
    "MeasuredTime",
    "PublishedEntry",
    "SourceTable",
    "TableLine",
    "Unmet",
    "Value",
    "beside",
    "has_unit",
    "label",
]
