"""Progress of one or many cells on standard error: a live bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal

from rtmeter.cli.output import console, microseconds
from rtmeter.errors import RtmeterError
from rtmeter.model import Cell

Event = Mapping[str, Any]
Moment = Literal["start", "during", "end"]
Show = Callable[[str, float, Moment], None]
"""(what to say, share of the cell done, when in the cell's life)"""

_LINE_EVERY_S = 10.0
_SHARE_THAT_TELLS = 0.02


class Progress:
    """Turns the probes' progress into words: cells done and to come, time left, live maximum, losses."""

    def __init__(self, cells: Sequence[Cell], show: Show) -> None:
        self._cells, self._show = cells, show
        self._planned_ns = [_planned_ns(cell) for cell in cells]
        self._began_at_ns = 0

    def watch(self, index: int, cell: Cell) -> Callable[[Event], None]:
        """To be called with every progress event of the cell, which starts now."""
        self._began_at_ns = time.monotonic_ns()
        self._say(index, cell, "starts", 0.0, "start")
        return lambda event: self._say(index, cell, _words(event), _share(event), "during")

    def ended(self, index: int, record: Mapping[str, Any]) -> None:
        """The cell ended and is stored."""
        verdict = record["verdict"]
        invalid = "" if record["valid"] or record["error"] else ", invalid"
        words = (
            record["status"] + invalid + (f": {verdict['outcome']}, {verdict['reason']}" if verdict else "")
        )
        if record["error"]:
            words = f"{record['status']}: {RtmeterError.from_json(record['error'])}"
        self._show(f"{self._place(index)} {record['id']}: {words}", 1.0, "end")

    def kept(self, index: int) -> None:
        """The cell was there from an earlier run."""
        self._show(f"{self._place(index)} {self._cells[index].id}: done before", 1.0, "end")

    def _say(self, index: int, cell: Cell, words: str, share: float, moment: Moment) -> None:
        own_ns = float(self._planned_ns[index])
        if share > _SHARE_THAT_TELLS:  # by its own pace: behind its grid, or on scripted time
            own_ns = (time.monotonic_ns() - self._began_at_ns) / share
        left_ns = own_ns * (1 - share) + sum(self._planned_ns[index + 1 :])
        left = timedelta(seconds=int(left_ns / 1e9))
        self._show(f"{self._place(index)} {cell.id}: {words}, {left} left", share, moment)

    def _place(self, index: int) -> str:
        return f"[{index + 1}/{len(self._cells)}]"


@contextmanager
def progress_for(cells: Sequence[Cell]) -> Iterator[Progress]:
    """Shows progress of cells that are measured while the block runs."""
    with showing() as show:
        yield Progress(cells, show)


@contextmanager
def showing() -> Iterator[Show]:
    """What shows progress while the block runs."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    screen = console(stderr=True)
    with Live(console=screen, transient=True, refresh_per_second=4, redirect_stdout=False) as live:

        def show(words: str, share: float, moment: Moment) -> None:
            if moment == "end":
                live.update("")
                screen.print(words, markup=False)
                return
            row = Table.grid(padding=(0, 1))
            row.add_row(ProgressBar(total=1.0, completed=share, width=24), words)
            live.update(row)

        yield show


class _Lines:
    """A line when a cell starts or ends, and every ten seconds."""

    def __init__(self) -> None:
        self._said_at = -_LINE_EVERY_S

    def __call__(self, words: str, _share: float, moment: Moment) -> None:
        if moment != "during" or time.monotonic() - self._said_at >= _LINE_EVERY_S:
            self._said_at = time.monotonic()
            print(words, file=sys.stderr, flush=True)


def _planned_ns(cell: Cell) -> int:
    config = cell.config
    return int((config["warm_up"] + config["samples"]) * config["period_ns"])


def _share(event: Event) -> float:
    return float(event["released"] / event["of"]) if event["of"] else 0.0


def _words(event: Event) -> str:
    lost = f", {event['lost']:,} lost" if event["lost"] else ""
    skipped = f", {event['skipped']:,} skipped" if event["skipped"] else ""
    return f"{_share(event):.0%}, max {microseconds(event['max_ns'])} us{lost}{skipped}"
