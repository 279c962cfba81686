"""Progress of one or many cells on standard error: a live picture on a terminal, else a line now and then.

All of it is drawn by the thread that hears the probes, which keeps off the measured CPUs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rtmeter.cli.output import console, microseconds, whoever_looks
from rtmeter.errors import RtmeterError
from rtmeter.model import Cell
from rtmeter.results.store import PARTIAL

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from rtmeter.live.run import RunState
    from rtmeter.live.seen import RunningCell
    from rtmeter.results.record import CellRecord

ProgressEvent = Mapping[str, Any]
Moment = Literal["start", "during", "end"]
Show = Callable[[str, float, Moment], None]
"""(what to say, share of the cell done, when in the cell's life)"""

_LINE_EVERY_S = 10.0
_METRICS_EVERY_S = 1.0
_SHARE_THAT_TELLS = 0.02


class Progress:
    """Turns the probes' progress into words: cells done and to come, time left, live maximum, losses.

    ``metrics``: a file that is kept up to date for other programs.
    """

    def __init__(self, cells: Sequence[Cell], show: Show, metrics: Path | None = None) -> None:
        self._cells, self._show, self._metrics = cells, show, metrics
        self._planned_ns = [cell.planned_ns for cell in cells]
        self._began_at_ns: int | None = None
        self._left_ns = 0
        self._beside_ns: list[int] = []
        self._name = ""
        self._folder_of: Callable[[Cell], Path] | None = None
        self._running: RunningCell | None = None
        self._done: dict[str, str] = {}
        self._measured_at = -_METRICS_EVERY_S

    def follow(self, name: str, folder_of: Callable[[Cell], Path]) -> None:
        """Tells what is measured, and where each cell will lie: from now on its log is looked at."""
        self._name, self._folder_of = name, folder_of

    def watch(self, index: int, cell: Cell) -> Callable[[ProgressEvent], None]:
        """To be called with every progress event of the cell, which starts now."""
        self._began_at_ns = time.monotonic_ns()
        if self._folder_of is not None and (self._metrics or isinstance(self._show, _Terminal)):
            from rtmeter.live.seen import RunningCell

            folder = self._folder_of(cell)
            self._running = RunningCell(folder.with_name(folder.name + PARTIAL))
        self._say(index, cell, "starts", 0.0, "start")
        return lambda event: self._say(index, cell, words_of(event), share_done(event), "during")

    def _to_come_ns(self, index: int) -> int:
        """What the cells after this one take: as planned, and as much beside as those before took to start
        and end."""
        planned = self._planned_ns[index + 1 :]
        beside_ns = sum(self._beside_ns) // len(self._beside_ns) if self._beside_ns else 0
        return max(0, sum(planned) + beside_ns * len(planned))

    def ended(self, index: int, record: CellRecord) -> None:
        """The cell ended and is stored."""
        if record.status == "complete" and self._began_at_ns is not None:
            took_ns = time.monotonic_ns() - self._began_at_ns
            self._beside_ns.append(took_ns - self._planned_ns[index])
        self._began_at_ns = None
        self._note_end(index, record)
        self._show(f"{self._place(index)} {record.id}: {end_of(record)}", 1.0, "end")

    def kept(self, index: int) -> None:
        """The cell was there from an earlier run."""
        self._done[self._cells[index].id] = "done before"
        self._show(f"{self._place(index)} {self._cells[index].id}: done before", 1.0, "end")

    def _say(self, index: int, cell: Cell, words: str, share: float, moment: Moment) -> None:
        own_ns = float(self._planned_ns[index])
        tells = share > _SHARE_THAT_TELLS  # by its own pace: behind its grid, or on scripted time
        if tells and self._began_at_ns is not None:
            own_ns = (time.monotonic_ns() - self._began_at_ns) / share
        self._left_ns = int(own_ns * (1 - share)) + self._to_come_ns(index)
        left = timedelta(seconds=int(self._left_ns / 1e9))
        if self._running is not None:
            self._look(index, cell)
        self._show(f"{self._place(index)} {cell.id}: {words}, {left} left", share, moment)

    def _look(self, index: int, cell: Cell | None) -> None:
        """Draws, and writes the metrics if that is due."""
        now_s = time.monotonic()
        due = self._metrics is not None and now_s - self._measured_at >= _METRICS_EVERY_S
        if not due and not isinstance(self._show, _Terminal):
            return
        from rtmeter.live import metrics
        from rtmeter.live.run import RunState

        seen = None
        if self._running is not None and cell is not None:
            with suppress(RtmeterError):  # a log that cannot be followed fails its cell in time
                seen = self._running.look()
        to_come = tuple(later.id for later in self._cells[index + 1 :])
        state = RunState(
            self._name, dict(self._done), cell.id if cell else None, seen, to_come, self._left_ns
        )
        if isinstance(self._show, _Terminal) and cell:
            self._show.draw(state)
        if due and self._metrics is not None:
            self._measured_at = now_s
            try:
                metrics.write(self._metrics, state)
            except RtmeterError as error:  # no reason to end a measurement
                with whoever_looks():
                    print(f"rtmeter: {error}", file=sys.stderr)
                self._metrics = None

    def _note_end(self, index: int, record: CellRecord) -> None:
        from rtmeter.live.run import outcome_of

        self._done[self._cells[index].id] = outcome_of(record)
        self._left_ns = self._to_come_ns(index)
        if self._running is not None:
            self._running, self._measured_at = None, -_METRICS_EVERY_S
            self._look(index, None)

    def _place(self, index: int) -> str:
        return f"[{index + 1}/{len(self._cells)}]"


@contextmanager
def progress_for(cells: Sequence[Cell], metrics: Path | None = None) -> Iterator[Progress]:
    """Shows progress of cells that are measured while the block runs."""
    with showing() as show:
        yield Progress(cells, show, metrics)


@contextmanager
def showing() -> Iterator[Show]:
    """What shows progress while the block runs."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.live import Live

    screen = console(stderr=True)
    with Live(console=screen, transient=True, auto_refresh=False, redirect_stdout=False) as live:
        yield _Terminal(screen, live)


class _Terminal:
    """A bar, or the picture of a cell once there is one, drawn over at every call."""

    def __init__(self, screen: Console, live: Live) -> None:
        self._screen, self._live = screen, live
        self._state: RunState | None = None

    def draw(self, state: RunState) -> None:
        """What the next call shows below its words."""
        self._state = state

    def __call__(self, words: str, share: float, moment: Moment) -> None:
        with whoever_looks():
            self._draw(words, share, moment)

    def _draw(self, words: str, share: float, moment: Moment) -> None:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        from rtmeter.cli.screen import screen

        if moment == "end":
            self._state = None
            self._live.update("", refresh=True)
            self._screen.print(words, markup=False)
            return
        row = Table.grid(padding=(0, 1))
        row.add_row(ProgressBar(total=1.0, completed=share, width=24), words)
        picture = [screen(self._state, self._screen)] if self._state is not None else []
        self._live.update(Group(row, *picture), refresh=True)


class _Lines:
    """A line when a cell starts or ends, and every ten seconds."""

    def __init__(self) -> None:
        self._said_at = -_LINE_EVERY_S

    def __call__(self, words: str, _share: float, moment: Moment) -> None:
        if moment != "during" or time.monotonic() - self._said_at >= _LINE_EVERY_S:
            self._said_at = time.monotonic()
            with whoever_looks():
                print(words, file=sys.stderr, flush=True)


def end_of(record: CellRecord) -> str:
    """How a cell ended, in a line; why its verdict is so `rtmeter verdict` tells."""
    from rtmeter.judge.points import line_and_points, worst_of

    if record.error:
        return f"{record.status}: {record.error.as_error}"
    words = record.status + ("" if record.valid else ", invalid")
    if (verdict := record.verdict) is None:
        return words
    return f"{words}: {verdict.outcome}: {line_and_points(verdict, worst_of(record))[0]}"


def share_done(event: ProgressEvent) -> float:
    """The share of the cell's releases that are past."""
    return float(event["released"] / event["of"]) if event["of"] else 0.0


def words_of(event: ProgressEvent) -> str:
    """How the cell goes."""
    lost = f", {event['lost']:,} lost" if event["lost"] else ""
    skipped = f", {event['skipped']:,} skipped" if event["skipped"] else ""
    return f"{share_done(event):.0%}, max {microseconds(event['max_ns'])} us{lost}{skipped}"
