"""A run of a campaign, or one cell, looked at from its folder: what is done, what runs, what is to come."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rtmeter.campaign.file import read_campaign
from rtmeter.errors import RtmeterError
from rtmeter.live.seen import CellSeen, RunningCell
from rtmeter.measure.own_loop import is_open
from rtmeter.model import Cell
from rtmeter.results import store, table
from rtmeter.results.loops import loop_folders
from rtmeter.results.record import CellRecord
from rtmeter.results.table import Stamp


@dataclass(frozen=True, slots=True)
class RunState:
    """``done``: the outcome of each cell that is stored, by id; ``running``: the one that is measured, with
    what is seen of it; ``beside``: those that are at the same time, on other rigs; ``to_come``: the ids of
    the others; ``left_ns``: as planned, None if that is not known; ``ended``: it says so; ``damage``: why
    cells that are there cannot be read."""

    name: str
    done: dict[str, str]
    running: str | None
    seen: CellSeen | None
    to_come: tuple[str, ...]
    left_ns: int | None
    ended: bool = False
    damage: tuple[RtmeterError, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def begun(self) -> tuple[str, ...]:
        """All that are measured."""
        return () if self.running is None else (self.running, *self.beside)

    @property
    def over(self) -> bool:
        """Whether nothing runs, and nothing is to come or will."""
        return self.running is None and (self.ended or not self.to_come)


@dataclass
class FollowedLoop:
    """Follows a program's own loop in its ``folder``, until that is open no more."""

    folder: Path
    _running: RunningCell = field(init=False)

    def __post_init__(self) -> None:
        self._running = RunningCell(self.folder)

    def state(self) -> RunState:
        """What is there now."""
        going_on, name = is_open(self.folder), self.folder.parent.name
        seen = self._running.look()
        running = name if going_on else None
        done = {} if going_on else {name: "recorded"}
        left_ns = None if going_on else 0  # it has no end
        return RunState(f"{name}, {self.folder.stem}", done, running, seen, (), left_ns, ended=not going_on)


@dataclass
class FollowedRun:
    """Follows the run in ``folder``; ``only`` one of its cells if it is the folder of one."""

    folder: Path
    cells: tuple[Cell, ...]
    ids: tuple[str, ...]
    name: str
    rigs: bool = False
    _running: RunningCell | None = field(default=None, init=False)
    _known: dict[tuple[str, int], str | RtmeterError] = field(default_factory=dict, init=False)
    _ended_at: tuple[Stamp, bool] | None = field(default=None, init=False)

    @classmethod
    def at(cls, path: Path) -> FollowedRun | FollowedLoop:
        """The run whose folder this is; or, of results, the one that began last; or a program's own loop, if
        one is open there, or nothing else is. Raises RtmeterError."""
        loops = loop_folders(path)
        if going_on := [loop for loop in loops if is_open(loop)]:
            return FollowedLoop(max(going_on, key=lambda loop: loop.name))
        folders = [path] if (path / store.RUN).is_file() else [f.parent for f in path.rglob(store.RUN)]
        if not folders:
            if (path.parent / f"{path.name}{store.PARTIAL}").is_dir() or store.is_cell(path):
                return cls(path.parent, (), (path.name,), path.name)
            if loops:
                return FollowedLoop(max(loops, key=lambda loop: loop.name))
            remedy = "give the folder of a run or of a cell, or of the results"
            raise RtmeterError("holds no run", field="path", value=str(path), remedy=remedy)
        abouts = {folder: store.read_run(folder) for folder in folders}
        folder = max(abouts, key=lambda one: abouts[one].started)
        about = abouts[folder]
        cells: tuple[Cell, ...] = ()
        if (folder / store.CAMPAIGN).is_file():
            scale, host = about.scale, about.host
            try:
                cells = read_campaign(folder / store.CAMPAIGN, scale=scale, host=host).cells
            except RtmeterError:
                cells = ()  # of another version: what is left to do is then not known in time
        name = f"{about.campaign}, {folder.name}"
        return cls(folder, cells, tuple(about.cells), name, about.rigs is not None)

    def state(self) -> RunState:
        """What is there now."""
        there = {entry.name: entry.inode() for entry in os.scandir(self.folder)}
        partial = [one for one in self.ids if f"{one}{store.PARTIAL}" in there]
        running, beside = partial[0] if partial else None, tuple(partial[1:]) if self.rigs else ()
        begun = {running, *beside}
        damage: list[RtmeterError] = []
        stored = self._done(there, damage)
        done = {cell: outcome for cell, outcome in stored if cell not in begun}  # of an earlier try
        if running is None:
            self._running = None
        elif self._running is None or self._running.folder != self._partial(running):
            self._running = RunningCell(self._partial(running))
        seen = self._running.look() if self._running else None
        to_come = tuple(one for one in self.ids if one not in done and one not in begun)
        left_ns = self._left_ns(running, seen, (*beside, *to_come))
        ended = self._ended()
        return RunState(self.name, done, running, seen, to_come, left_ns, ended, tuple(damage), beside)

    def _ended(self) -> bool:
        try:
            about = (self.folder / store.RUN).stat()
        except FileNotFoundError:  # a cell alone
            return False
        stamp = about.st_mtime_ns, about.st_size
        if self._ended_at is None or self._ended_at[0] != stamp:
            self._ended_at = stamp, store.read_run(self.folder).ended is not None
        return self._ended_at[1]

    def _partial(self, cell: str) -> Path:
        return self.folder / f"{cell}{store.PARTIAL}"

    def _done(self, there: Mapping[str, int], damage: list[RtmeterError]) -> Iterator[tuple[str, str]]:
        """The outcomes of stored cells; only of folders that were not there at the last look is anything
        read: a cell that is measured again gets another folder."""
        places = {cell: (cell, there[cell]) for cell in self.ids if cell in there}
        new = [self.folder / cell for cell, place in places.items() if place not in self._known]
        whole = [folder for folder in new if store.is_cell(folder)]
        for folder, record in table.records(whole, keep=False):
            place = places[folder.name]
            self._known[place] = record if isinstance(record, RtmeterError) else outcome_of(record)
        for cell, place in places.items():
            known = self._known.get(place)
            if isinstance(known, RtmeterError):
                damage.append(known)
            if known is not None:
                yield cell, known if isinstance(known, str) else "damaged"

    def _left_ns(self, running: str | None, seen: CellSeen | None, others: tuple[str, ...]) -> int | None:
        planned = {cell.id: cell.planned_ns for cell in self.cells}
        unseen = others if running is None or seen is not None else (running, *others)
        if any(cell not in planned for cell in unseen):
            return None
        return (seen.left_ns if seen else 0) + sum(planned[cell] for cell in unseen)


def outcome_of(record: CellRecord) -> str:
    """In a word how a stored cell ended: its verdict, or why there is none."""
    if record.status != "complete":
        return record.status
    if not record.valid:
        return "invalid"
    return record.verdict.outcome if record.verdict else "measured"
