"""Tables on a terminal: no number is cut, however narrow it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Column, Table

_NARROWEST = 14
"""Columns of text: what is longer goes on in the next line."""

_BORDER = 3
"""Characters around the text of a column."""


def print_table(out: Console, table: Table, expendable: Sequence[str] = (), *, markup: bool = True) -> None:
    """Prints a table. Where the terminal is too narrow for it, columns are left out, and named, in the order
    of the headers ``expendable``; one that is narrower still breaks the lines itself."""
    left_out = []
    for header in expendable:
        if _needed(table, markup) <= out.width:
            break
        left_out += [header.partition("\n")[0] for column in table.columns if column.header == header]
        rest = (column for column in table.columns if column.header != header)
        table.columns = [replace(column, _index=place) for place, column in enumerate(rest)]
    terminal = out.width
    out.width = max(terminal, _needed(table, markup))
    out.print(table, markup=markup)
    out.width = terminal
    if left_out:
        out.print(f"{terminal} columns have no room for {', '.join(left_out)}: see --json", markup=False)


def _needed(table: Table, markup: bool) -> int:
    return sum(_width(column, markup) + _BORDER for column in table.columns)


def _width(column: Column, markup: bool) -> int:
    from rich.text import Text

    read = Text.from_markup if markup else Text
    texts = [read(str(text)) for text in (column.header, *column.cells)]
    whole = max(line.cell_len for text in texts for line in text.split("\n", allow_blank=True))
    return whole if column.no_wrap else min(whole, _NARROWEST)
