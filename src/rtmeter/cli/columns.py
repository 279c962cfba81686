"""Tables on a terminal: no number is cut, however narrow it is."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cache, lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Column, Table

_NARROWEST = 14
"""Columns of text: what is longer goes on in the next line."""

_WHOLE = 40
"""Columns of text that are no longer are whole as long as a column can be left out for them."""

_BORDER = 3
"""Characters around the text of a column."""

_MANY = 200
"""Rows from which on a table's lines are written here: rich takes a second for 2,000 of them."""


def print_table(out: Console, table: Table, expendable: Sequence[str] = (), *, markup: bool = False) -> None:
    """Prints a table, literally unless with ``markup``: then all text from outside it must be escaped. Where
    the terminal is too narrow for it, columns are left out, and named, in the order of the headers
    ``expendable``; one that is narrower still breaks the lines itself."""
    left_out = []
    for header in expendable:
        if _needed(table, markup, _WHOLE) <= out.width:
            break
        left_out += [header.partition("\n")[0] for column in table.columns if column.header == header]
        rest = (column for column in table.columns if column.header != header)
        table.columns = [replace(column, _index=place) for place, column in enumerate(rest)]
    terminal = out.width
    out.width = max(terminal, _needed(table, markup))
    if table.row_count < _MANY:
        out.print(table, markup=markup)
    else:
        _print_lines(out, table, markup)
    out.width = terminal
    if left_out:
        out.print(f"{terminal} columns have no room for {', '.join(left_out)}: see --json", markup=False)


def _print_lines(out: Console, table: Table, markup: bool) -> None:
    """What rich prints of the table, cell by cell as wide as its column."""
    from rich.cells import cell_len, chop_cells
    from rich.text import Text

    widths = _widths(out, table, markup)
    sized = [
        replace(column, _index=place, _cells=[], min_width=width, max_width=width)
        for place, (column, width) in enumerate(zip(table.columns, widths, strict=True))
    ]
    head = copy(table)
    head.columns, head.rows = sized, []
    with out.capture() as captured:
        out.print(head, markup=markup)
    *above, below = captured.get().splitlines(keepends=True)

    @cache
    def styled(text: str) -> tuple[str, int]:
        """A cell as it is printed, and how wide that is."""
        if not markup or not ("[" in text or "\\" in text):
            return text, cell_len(text)
        read = Text.from_markup(text)
        with out.capture() as captured:
            out.print(read, end="", soft_wrap=True)
        return captured.get(), read.cell_len

    def lines(text: str, width: int, right: bool) -> list[str]:
        """A cell's lines, each as wide as its column."""
        shown, length = styled(text)
        parts = [(shown, length)]
        if length > width:
            plain = Text.from_markup(text).plain if markup else text
            parts = [(part, cell_len(part)) for part in chop_cells(plain, width)]
        return [" " * (width - n) + part if right else part + " " * (width - n) for part, n in parts]

    write = out.file.write
    write("".join(above))
    sides = [(w, column.justify == "right") for w, column in zip(widths, table.columns, strict=True)]
    for row in zip(*(column.cells for column in table.columns), strict=True):
        cells = [lines(str(text), *about) for text, about in zip(row, sides, strict=True)]
        for line in zip_longest(*cells):
            padded = (part or " " * width for part, width in zip(line, widths, strict=True))
            write(f" {(' ' * _BORDER).join(padded)} \n")
    write(below)


def _widths(out: Console, table: Table, markup: bool) -> list[int]:
    """Of each column: as wide as its text where there is room, else those narrower that may be."""
    widths = [_whole(column, markup) for column in table.columns]
    while sum(widths) + _BORDER * len(widths) - 1 > out.width:  # one space at either end
        wide = [w if not c.no_wrap else 0 for w, c in zip(widths, table.columns, strict=True)]
        if max(wide) <= _NARROWEST:
            break
        widths[wide.index(max(wide))] -= 1
    return widths


def _needed(table: Table, markup: bool, of_text: int = _NARROWEST) -> int:
    """The width that a table needs, its columns of text at most so wide."""
    return sum(_width(column, markup, of_text) + _BORDER for column in table.columns)


def _width(column: Column, markup: bool, of_text: int) -> int:
    whole = _whole(column, markup)
    return whole if column.no_wrap else min(whole, of_text)


def _whole(column: Column, markup: bool) -> int:
    return max(_text_width(str(text), markup) for text in (column.header, *column.cells))


@lru_cache(maxsize=1 << 16)
def _text_width(text: str, markup: bool) -> int:
    from rich.cells import cell_len
    from rich.text import Text

    plain = Text.from_markup(text).plain if markup and ("[" in text or "\\" in text) else text
    return max(map(cell_len, plain.split("\n")))
