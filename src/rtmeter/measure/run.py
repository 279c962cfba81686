"""One execution of a campaign: which cells are to be measured still, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, Self

from rtmeter import version
from rtmeter.errors import RtmeterError
from rtmeter.host.identity import machine_id
from rtmeter.host.root import Root
from rtmeter.measure import cell as runner
from rtmeter.measure.supervise import Stop
from rtmeter.model import Campaign, Cell
from rtmeter.results import store
from rtmeter.results.record import CellRecord, RunRecord


class Watcher(Protocol):
    """Who is told how the run goes."""

    def watch(self, index: int, cell: Cell) -> Callable[[Mapping[str, Any]], None]:
        """The cell starts; what is returned hears its progress."""

    def ended(self, index: int, record: CellRecord) -> None:
        """The cell is stored."""

    def kept(self, index: int) -> None:
        """The cell is there already."""


class Run:
    """A campaign's cells in ``folder``."""

    def __init__(self, folder: Path, campaign: Campaign) -> None:
        self.folder, self._campaign = folder, campaign

    @classmethod
    def start(cls, out: Path, campaign: Campaign, scale: float) -> Self:
        """A new run under ``out``."""
        started = store.stamp(datetime.now(UTC))
        record = RunRecord(
            campaign=campaign.name,
            description=campaign.description,
            started=started,
            ended=None,
            cells=[cell.id for cell in campaign.cells],
            scale=scale,
            host=campaign.host,
            machine_id=machine_id(Root()),
            rtmeter=version(),
        )
        with store.own_run_folder(out, campaign.name) as folder:
            store.write_run(folder, record, campaign.source)
        return cls(folder, campaign)

    @classmethod
    def resume(cls, out: Path, campaign: Campaign, scale: float) -> Self:
        """The last run of the campaign under ``out``, which must be of the same text and scale."""
        run = cls.last(out, campaign, scale)
        about = store.read_run(run.folder)
        added = [cell.id for cell in campaign.cells if cell.id not in about.cells]
        store.write_run(run.folder, about.changed(cells=[*about.cells, *added]), campaign.source)
        return run

    @classmethod
    def last(cls, out: Path, campaign: Campaign, scale: float) -> Self:
        """As resume(), to be looked at only."""
        folder = store.latest_run(out, campaign.name)
        if folder is None:
            raise RtmeterError(
                f"finds no run of {campaign.name} on this machine",
                field="--resume",
                value=str(out),
                remedy="run it without --resume, or name its results with --out",
            )
        about = store.read_run(folder)
        source = (folder / store.CAMPAIGN).read_text(encoding="utf-8")
        for what, changed in (
            ("campaign", source != campaign.source),
            ("scale", about.scale != scale),
            ("host", about.host != campaign.host),
        ):
            if changed:
                given = f"--scale {about.scale:g}" + (f" --host component={about.host}" if about.host else "")
                remedy = f"resume with {folder / store.CAMPAIGN} and {given}, or run anew"
                message = f"finds a run with another {what}"
                raise RtmeterError(message, field="--resume", value=str(folder), remedy=remedy)
        return cls(folder, campaign)

    def remaining(self) -> list[Cell]:
        """The cells that are to be measured still, in order."""
        return [cell for cell in self._campaign.cells if _done(self.folder / cell.id) is None]

    def measure(self, stop: Stop, watcher: Watcher) -> list[str]:
        """Measures what is not there yet, in order, until all is done or ``stop`` is asked.

        Returns the id of every cell that is there then; its record is on the disk. Raises RtmeterError if a
        result cannot be written.
        """
        self._note(ended=None)
        try:
            return self._measure(stop, watcher)
        finally:
            self._note(ended=store.stamp(datetime.now(UTC)))

    def _note(self, **facts: Any) -> None:
        """Puts facts into run.json: whoever looks on sees by ``ended`` that nothing more will come."""
        with suppress(RtmeterError):  # nothing that was measured hangs on it
            about = store.read_run(self.folder)
            store.write_run(self.folder, about.changed(**facts), None)

    def _measure(self, stop: Stop, watcher: Watcher) -> list[str]:
        there: list[str] = []
        for index, cell in enumerate(self._campaign.cells):
            path = self.folder / cell.id
            if _done(path) is not None:
                watcher.kept(index)
            elif stop.asked:
                continue
            else:
                watcher.ended(index, runner.run_cell(cell, path, stop, watcher.watch(index, cell)))
            there.append(cell.id)
        return there


def _done(path: Path) -> CellRecord | None:
    """The record of a cell that need not be measured again."""
    if not store.is_cell(path):
        return None
    record = store.read_cell(path)
    return record if record.status == "complete" and record.valid else None
