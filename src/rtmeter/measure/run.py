"""One execution of a campaign: which cells are to be measured still, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, Self

from rtmeter.errors import RtmeterError
from rtmeter.host.files import open_file
from rtmeter.host.identity import machine_id
from rtmeter.host.owned import kept
from rtmeter.host.root import Root
from rtmeter.measure import cell as runner
from rtmeter.measure.probe.supervise import Stop
from rtmeter.measure.source.refused import Refused
from rtmeter.model import Campaign, Cell
from rtmeter.results import store
from rtmeter.results.data import data_of
from rtmeter.results.record import CellRecord, RigOfRun, RunRecord
from rtmeter.results.record.reading import unreadable
from rtmeter.values import as_json, version


class Watcher(Protocol):
    """Who is told how the run goes."""

    def watch(self, index: int, cell: Cell) -> Callable[[Mapping[str, Any]], None]:
        """The cell starts; what is returned hears its progress."""

    def ended(self, index: int, record: CellRecord) -> None:
        """The cell is stored."""

    def kept(self, index: int) -> None:
        """The cell is there already."""


KnownToFail = Callable[[Cell, CellRecord | None], RtmeterError | None]
"""Why a cell is known to fail before it is tried, by the one measured before it; None: it is tried."""


class Run:
    """A campaign's cells in ``folder``."""

    def __init__(self, folder: Path, campaign: Campaign) -> None:
        self.folder, self._campaign = folder, campaign
        self._whole = set[str]()  # cells that are there, by their id

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
            rigs=_rigs_of(campaign),
            rtmeter=version(),
        )
        with store.own_run_folder(out, campaign.name) as folder:
            store.write_run(folder, record, campaign.source)
        return cls(folder, campaign)

    @classmethod
    def resume(cls, out: Path, campaign: Campaign, scale: float) -> Self:
        """The last run of the campaign under ``out``, which must be of the same text and scale, and go on in
        no other process."""
        run = cls.last(out, campaign, scale)
        with _alone(run.folder):
            about = store.read_run(run.folder)
            added = [cell.id for cell in campaign.cells if cell.id not in about.cells]
            rigs = (about.rigs or {}) | (_rigs_of(campaign) or {})
            changed = about.changed(cells=[*about.cells, *added], rigs=rigs or None)
            store.write_run(run.folder, changed, None)  # its text is there, and the same
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
        for what, changed, remedy in (
            ("campaign", _is_other(folder, campaign), f"put its text back from {folder / store.CAMPAIGN}"),
            ("scale", about.scale != scale, f"resume with --scale {about.scale:g}"),
            ("host", about.host != campaign.host, _with_host(about.host)),
        ):
            if changed:
                message = f"finds a run with another {what}"
                anew = f"{remedy}, or run anew"
                raise RtmeterError(message, field="--resume", value=str(folder), remedy=anew)
        _check_rigs(about, campaign, folder)
        _check_graphs(campaign, folder)
        return cls(folder, campaign)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Those of the campaign, in running order."""
        return self._campaign.cells

    def has(self, cell: Cell) -> bool:
        """Whether the cell need not be measured again; its data are read whole once."""
        if cell.id not in self._whole and _done(self.folder / cell.id) is not None:
            self._whole.add(cell.id)
        return cell.id in self._whole

    def damaged(self) -> Iterator[RtmeterError]:
        """What is wrong with the cells that are there and are measured again, since they or their data cannot
        be read."""
        for cell in self.cells:
            if not self.has(cell) and isinstance(found := _found(self.folder / cell.id), RtmeterError):
                yield RtmeterError(found.message, **found.about | {"remedy": "it is measured again"})

    def remaining(self) -> list[Cell]:
        """The cells that are to be measured still, in order."""
        return [cell for cell in self.cells if not self.has(cell)]

    def measure(self, stop: Stop, watcher: Watcher) -> list[str]:
        """Measures what is not there yet, in order, until all is done or ``stop`` is asked.

        Returns the id of every cell that is there then; its record is on the disk. Raises RtmeterError if a
        result cannot be written.
        """
        with self.going_on():
            return self.measure_cells(range(len(self.cells)), stop, watcher)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """While the block runs, run.json says that the run has not ended, and no other process can go on with
        it. Raises RtmeterError if one does."""
        with _alone(self.folder):
            self._note(ended=None)
            try:
                yield
            finally:
                self._note(ended=store.stamp(datetime.now(UTC)))

    def _note(self, **facts: Any) -> None:
        """Puts facts into run.json: whoever looks on sees by ``ended`` that nothing more will come."""
        with suppress(RtmeterError):  # nothing that was measured hangs on it
            about = store.read_run(self.folder)
            store.write_run(self.folder, about.changed(**facts), None)

    def measure_cells(
        self,
        indices: Iterable[int],
        stop: Stop,
        watcher: Watcher,
        why: KnownToFail = lambda cell, before: None,
    ) -> list[str]:
        """measure() of these cells; one that is known to fail is stored as failed without being tried."""
        there: list[str] = []
        before: CellRecord | None = None
        for index in indices:
            cell = self.cells[index]
            path = self.folder / cell.id
            if self.has(cell):
                watcher.kept(index)
            elif stop.asked:
                continue
            else:
                error = why(cell, before)
                if error is not None and stop.asked:
                    continue
                source = Refused(runner.source_of(cell), error) if error else None
                heard = watcher.watch(index, cell)
                before = runner.run_cell(cell, path, stop, heard, source=source)
                watcher.ended(index, before)
            there.append(cell.id)
        return there


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """The run's folder is this process's. Raises RtmeterError if it is another's."""
    with ExitStack() as stack:
        with store.writing(folder):
            try:
                stack.enter_context(kept(folder))
            except BlockingIOError:
                message = "goes on: another process measures it"
                remedy = f"see it by `rtmeter watch {folder}`, and resume it when it has ended"
                raise RtmeterError(message, field="run", value=str(folder), remedy=remedy) from None
        yield


def _rigs_of(campaign: Campaign) -> dict[str, RigOfRun] | None:
    """As run.json has them."""
    return {
        rig.name: RigOfRun(address=rig.address, labels=rig.labels, set=as_json(rig.set), place=rig.place)
        for rig in campaign.rigs
    } or None


def _check_rigs(about: RunRecord, campaign: Campaign, folder: Path) -> None:
    """Raises RtmeterError if the run was of rigs and is to go on without, or the other way round, or with
    something else set. Rigs may come, go and move."""
    ours, theirs = _rigs_of(campaign), about.rigs
    changed = None
    if (ours is None) != (theirs is None):
        changed = f"with{'out' if theirs is None else ''} rigs"
    elif ours is not None and theirs is not None:
        name = next(
            (name for name, rig in ours.items() if name in theirs and rig.set != theirs[name].set), None
        )
        changed = None if name is None else f"in which {name} had something else set"
    if changed is not None:
        remedy = "resume it with the same --rigs, or run anew"
        message = f"finds a run {changed}"
        raise RtmeterError(message, field="--resume", value=str(folder), remedy=remedy)


def _check_graphs(campaign: Campaign, folder: Path) -> None:
    """Raises RtmeterError if a chain that need not be measured again was of another graph: that is a file of
    its own, which may have changed since."""
    for cell in campaign.cells:
        if (graph := cell.config.get("graph")) is None or (done := _done(folder / cell.id)) is None:
            continue
        if done.config.get("graph") != as_json(graph):
            message, remedy = "finds a chain of another graph", "put that graph back, or run anew"
            where = str(folder / cell.id)
            raise RtmeterError(message, field="--resume", value=where, remedy=remedy)


def _is_other(folder: Path, campaign: Campaign) -> bool:
    """Whether the run's copy has another text. Raises RtmeterError if it cannot be read."""
    copy = folder / store.CAMPAIGN
    try:
        with open_file(copy) as file:
            return file.read() != campaign.source.encode()
    except OSError as error:
        raise unreadable(error, copy) from error


def _with_host(host: str | None) -> str:
    return f"resume with --host component={host}" if host else "resume without --host"


def _done(path: Path) -> CellRecord | None:
    """The record of a cell that need not be measured again."""
    found = _found(path)
    return found if isinstance(found, CellRecord) and found.status == "complete" and found.valid else None


def _found(path: Path) -> CellRecord | RtmeterError | None:
    """The record of the cell that is there, or why it or its data cannot be read. Raises RtmeterError of one
    that a later rtmeter wrote: it is none to be replaced."""
    if not store.is_cell(path):
        return None
    try:
        record = store.read_cell(path)
        data_of(path, record)
    except RtmeterError as error:
        if error.field == "version":
            raise
        return error
    return record
