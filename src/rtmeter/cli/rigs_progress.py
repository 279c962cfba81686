"""A run on many rigs on standard error: one table on a terminal, a row a rig; else lines."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rtmeter.cli.output import console, microseconds, whoever_looks
from rtmeter.cli.progress import end_of, share_done
from rtmeter.model import Cell
from rtmeter.values import visible

if TYPE_CHECKING:
    from rich.table import Table

    from rtmeter.results.record import CellRecord

_DRAW_EVERY_S = 0.25
_LINE_EVERY_S = 10.0
_AROUND = 6  # lines of a terminal that are no rigs'


@dataclass
class Row:
    """Where a rig stands: cells of its own, how many are done and how many of these failed, the one that is
    measured, by what share, its latest maximum, and the releases that are still to come."""

    rig: str
    cells: int
    left_ns: int
    done: int = 0
    failed: int = 0
    cell: str = ""
    share: float = 0.0
    max_ns: int | None = None
    says: str = "starts"

    @property
    def over(self) -> bool:
        return self.done == self.cells


class RigsProgress:
    """Hears from all rigs at once; ``show`` draws the rows, and is called by one thread at a time, ``print_``
    says what stays."""

    def __init__(
        self,
        cells: Sequence[Cell],
        show: Callable[[Sequence[Row]], None],
        print_: Callable[[str], None],
        every_s: float,
    ) -> None:
        self._cells, self._show, self._print, self._every_s = cells, show, print_, every_s
        self._turn, self._shown_at = threading.Lock(), float("-inf")
        self.rows: dict[str, Row] = {}
        for cell in cells:
            assert cell.rig is not None
            row = self.rows.setdefault(cell.rig.name, Row(cell.rig.name, 0, 0))
            row.cells, row.left_ns = row.cells + 1, row.left_ns + cell.planned_ns

    def watcher(self, rig: str) -> OfRig:
        """Who is told how that rig goes."""
        return OfRig(self, self.rows[rig])

    def changed(self, row: Row, said: str = "", **facts: Any) -> None:
        """A rig's row is another now; what is ``said`` stays."""
        with self._turn:
            for name, value in facts.items():
                setattr(row, name, value)
            with whoever_looks():
                if said:
                    self._print(said)
                if time.monotonic() - self._shown_at >= self._every_s:
                    self._shown_at = time.monotonic()
                    self._show(list(self.rows.values()))

    def cell(self, index: int) -> Cell:
        return self._cells[index]


class OfRig:
    """The watcher (rtmeter.measure.rigs.RigWatcher) of one rig."""

    def __init__(self, all_of_them: RigsProgress, row: Row) -> None:
        self._all, self._row = all_of_them, row

    def says(self, words: str) -> None:
        """What the rig does, while it measures nothing."""
        if words != self._row.says:
            self._all.changed(self._row, f"{self._row.rig}: {words}", says=words)

    def watch(self, index: int, cell: Cell) -> Callable[[Mapping[str, Any]], None]:
        """The cell starts."""
        del index
        self._all.changed(self._row, cell=cell.id, share=0.0, max_ns=None, says="")

        def hear(event: Mapping[str, Any]) -> None:
            self._all.changed(self._row, share=share_done(event), max_ns=event["max_ns"])

        return hear

    def ended(self, index: int, record: CellRecord) -> None:
        """The cell is stored."""
        self._end(index, end_of(record), failed=record.status != "complete" or not record.valid)

    def kept(self, index: int) -> None:
        """The cell is there already."""
        self._end(index, "done before", failed=False)

    def _end(self, index: int, words: str, *, failed: bool) -> None:
        row, cell = self._row, self._all.cell(index)
        done = row.done + 1
        facts = {"done": done, "failed": row.failed + failed, "cell": "", "share": 0.0, "max_ns": None}
        facts |= {"left_ns": row.left_ns - cell.planned_ns, "says": "done" if done == row.cells else ""}
        self._all.changed(row, f"{row.rig} [{done}/{row.cells}] {cell.id}: {words}", **facts)


@contextmanager
def rigs_progress(cells: Sequence[Cell]) -> Iterator[RigsProgress]:
    """Shows progress of cells that rigs measure while the block runs."""
    if not sys.stderr.isatty():
        yield RigsProgress(cells, lambda rows: _say(line_of(rows)), _say, _LINE_EVERY_S)
        return
    from rich.live import Live

    screen = console(stderr=True)
    with Live(console=screen, transient=True, auto_refresh=False, redirect_stdout=False) as live:

        def show(rows: Sequence[Row]) -> None:
            live.update(table_of(rows, screen.height - _AROUND), refresh=True)

        yield RigsProgress(
            cells, show, lambda said: screen.print(said, markup=False, soft_wrap=True), _DRAW_EVERY_S
        )


def _say(said: str) -> None:
    print(said, file=sys.stderr, flush=True)


def line_of(rows: Sequence[Row]) -> str:
    """All rigs in a line."""
    cells, done, failed = (sum(getattr(row, name) for row in rows) for name in ("cells", "done", "failed"))
    left = timedelta(seconds=round(max((_left_ns(row) for row in rows), default=0) / 1e9))
    measuring = sum(bool(row.cell) for row in rows)
    words = f"{done:,} of {cells:,} cells done" + (f", {failed:,} of them failed" if failed else "")
    return f"{words}; {measuring} of {len(rows)} rigs measure, {left} left"


def table_of(rows: Sequence[Row], most: int) -> Table:
    """A row a rig: those in trouble first, then those that measure; at most so many."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=line_of(rows), caption_justify="left")
    for name in ("rig", "cells", "failed", "now", "done", "max us", "left"):
        table.add_column(name, justify="left" if name in ("rig", "now") else "right", no_wrap=True)
    ordered = sorted(rows, key=lambda row: (row.over, not row.failed, not row.cell))
    for row in ordered[: max(most, 1)]:
        left = "" if row.over else str(timedelta(seconds=round(_left_ns(row) / 1e9)))
        share, worst = (f"{row.share:.0%}", microseconds(row.max_ns)) if row.cell else ("", "")
        failed = str(row.failed) if row.failed else ""
        now = Text(visible(row.cell or row.says))
        table.add_row(Text(visible(row.rig)), f"{row.done}/{row.cells}", failed, now, share, worst, left)
    if len(rows) > most:
        table.add_row(f"and {len(rows) - max(most, 1)} more")
    return table


def _left_ns(row: Row) -> float:
    """As planned; of the cell that is measured what is left of it."""
    own = row.left_ns / max(row.cells - row.done, 1)
    return row.left_ns - own * row.share
