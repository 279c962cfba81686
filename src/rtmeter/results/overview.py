"""What there is under a path in whatever state: cells that are whole or damaged, run, or are to come."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rtmeter.errors import RtmeterError
from rtmeter.results import store, table
from rtmeter.results.record import CellRecord, Statistics
from rtmeter.results.record.alike import Alike
from rtmeter.results.record.summary import of_all_runs

State = Literal["complete", "interrupted", "failed", "skipped", "damaged", "running", "not run"]
CellOutcome = Literal["error", "fail", "inconclusive", "unfinished", "unjudged", "pass"]

WORST_FIRST: tuple[CellOutcome, ...] = ("error", "fail", "inconclusive", "unfinished", "unjudged", "pass")


@dataclass(frozen=True, slots=True)
class CellEntry:
    """A cell's folder and its record; ``problem`` says why there is none, or what is wrong with it;
    ``damage``: the error, if it cannot be read; ``repeats``: the cells of which it is the condition;
    ``place``: where its run lists it, if it does."""

    id: str
    folder: Path
    state: State
    record: CellRecord | None = None
    problem: str | None = None
    damage: RtmeterError | None = None
    repeats: tuple[CellEntry, ...] = ()
    place: int = 0

    @property
    def outcome(self) -> CellOutcome:
        """The verdict, or why there is none."""
        if self.state in ("running", "not run", "skipped"):
            return "unfinished"
        if self.record is None or self.state in ("failed", "damaged") or not self.record.valid:
            return "error"
        return self.record.verdict.outcome if self.record.verdict else "unjudged"

    @property
    def judged(self) -> Statistics | None:
        """The judged quantity, per release; None where nothing was measured. Of a condition what its repeats
        say together: of their quantiles each the largest."""
        each = [one for cell in self.repeats or (self,) if cell.record and (one := cell.record.judged)]
        together = of_all_runs(each)
        return together.shown if together else None

    @property
    def n(self) -> int | None:
        """How many releases were judged, or measured; None where nothing was."""
        verdict = self.record.verdict if self.record else None
        return verdict.n if verdict and verdict.n else self.judged.n if self.judged else None

    @property
    def missed(self) -> float | None:
        """The share of them that missed; None where nothing was judged."""
        verdict = self.record.verdict if self.record else None
        return verdict.misses / verdict.n if verdict and verdict.n else None

    @property
    def missed_between(self) -> tuple[float, float] | None:
        """The least and the most share that may have missed, which differ where no single values are known;
        None where nothing was judged."""
        verdict = self.record.verdict if self.record else None
        if verdict is None or not verdict.n:
            return None
        least, most = verdict.misses_between or (verdict.misses, verdict.misses)
        return least / verdict.n, most / verdict.n

    @property
    def badness(self) -> tuple[int, float, float]:
        """Sorts cells: the worst verdict first, then the most misses, then the nearest to its deadline."""
        return WORST_FIRST.index(self.outcome), -(self.missed or 0.0), -self.share_of_deadline

    @property
    def share_of_deadline(self) -> float:
        """The maximum as a share of the deadline (without one, in nanoseconds); infinite if lost."""
        maximum = self.judged.max_ns if self.judged else None
        deadline_ns = self.record.deadline_ns if self.record else None
        return math.inf if maximum == "lost" else (maximum or 0) / (deadline_ns or 1)


def cell_entries(path: Path) -> list[CellEntry]:
    """The cell at ``path``, or all below it in the order of their runs; also those that run, and those a run
    planned but lacks. Where nothing lies, the repeats of that name."""
    if repeats := store.repeats_of(path):
        return [_read(folder) for folder in repeats]
    if not path.is_dir():
        raise RtmeterError(
            "is no folder", field="path", value=str(path), remedy="give a cell or a folder of cells"
        )
    if _is_cell(path):
        return [_read(path)]
    places = _planned(path)
    cells = [_entry(folder, record) for folder, record in _read_all(sorted(_below(path)))]
    there = {_whole(cell.folder) for cell in cells}
    cells += [_to_come(folder) for folder in places if folder not in there]
    if not cells:
        remedy = "give a folder that `rtmeter measure` or `rtmeter run` wrote"
        raise RtmeterError("holds no cell", field="path", value=str(path), remedy=remedy)
    cells = [replace(cell, place=places.get(_whole(cell.folder), 0)) for cell in cells]
    cells.sort(key=lambda cell: (cell.folder.parent, cell.place))
    names = store.distinct({cell.folder: cell.id for cell in cells}, path)
    return [replace(cell, id=names[cell.folder]) for cell in cells]


def cell_entries_of(paths: Sequence[Path]) -> list[CellEntry]:
    """The cells of several paths; ids that occur more than once become the folders below what they share."""
    if len(paths) == 1:
        return cell_entries(paths[0])
    cells = {cell.folder.resolve(): cell for path in paths for cell in cell_entries(path)}
    names = store.distinct(
        {folder: cell.id for folder, cell in cells.items()}, Path(os.path.commonpath(cells))
    )
    return [replace(cell, id=names[folder]) for folder, cell in cells.items()]


def damaged(cell: CellEntry, error: RtmeterError) -> CellEntry:
    """The entry of a cell that cannot be read; shown without the folder, which the entry has."""
    where = error.where and Path(error.where).name
    shown = RtmeterError(error.message, **error.about | {"where": where})
    return replace(cell, state="damaged", problem=str(shown), damage=error)


def refuse(damage: Sequence[RtmeterError]) -> None:
    """Raises the first error, which says how many more there are; nothing if there is none.

    For commands that show what can be read all the same: none of them ends as if nothing was wrong.
    """
    if damage:
        more = f" ({len(damage) - 1} more cells cannot be read)" if len(damage) > 1 else ""
        raise RtmeterError(damage[0].message + more, **damage[0].about)


def _is_cell(folder: Path) -> bool:
    parts = (store.CELL, store.SAMPLES, store.CLIENT_LOG)
    return folder.name.endswith(store.PARTIAL) or any((folder / part).exists() for part in parts)


def _below(path: Path) -> Iterator[Path]:
    """The cells' folders below the path."""
    parts = {store.CELL, store.SAMPLES, store.CLIENT_LOG}
    for folder, _, files in os.walk(path):
        if folder != str(path) and (folder.endswith(store.PARTIAL) or not parts.isdisjoint(files)):
            yield Path(folder)


def _read_all(folders: Sequence[Path]) -> Iterator[tuple[Path, CellRecord | RtmeterError | None]]:
    """The records of the cells; None of one that is being measured."""
    whole = table.records([folder for folder in folders if not folder.name.endswith(store.PARTIAL)])
    alike = Alike()
    for folder in folders:
        if folder.name.endswith(store.PARTIAL):
            yield folder, None
        else:
            _, record = next(whole)
            yield folder, alike.of(record) if isinstance(record, CellRecord) else record


def _read(folder: Path) -> CellEntry:
    return _entry(*next(_read_all([folder])))


def _entry(folder: Path, record: CellRecord | RtmeterError | None) -> CellEntry:
    if record is None:
        problem = "It is being measured, or rtmeter was killed while it was."
        return CellEntry(folder.name.removesuffix(store.PARTIAL), folder, "running", problem=problem)
    if isinstance(record, RtmeterError):
        return damaged(CellEntry(folder.name, folder, "damaged"), record)
    return CellEntry(record.id, folder, record.status, record, _problem(record))


def _problem(record: CellRecord) -> str | None:
    """What is wrong with a cell that has no result."""
    if record.error and record.status == "skipped":
        return f"the {record.error.field} {record.error.value} {record.error.message}"
    return record.error.message if record.error else None


def _planned(path: Path) -> dict[Path, int]:
    """The folders of the cells that the runs below the path list, and their places there."""
    return {
        file.parent / name: place
        for file in sorted(path.rglob(store.RUN))
        for place, name in enumerate(store.read_run(file.parent).cells)
    }


def not_measured(path: Path) -> list[Path]:
    """The folders of the cells that the runs below the path list and that are not there; where nothing lies
    at it, of the repeats of that name. Raises RtmeterError for a damaged run.json."""
    if store.is_cell(path):
        return []
    planned = _planned(path)
    if store.repeats_of(path):
        repeat = re.compile(f"{re.escape(path.name)}-r[0-9]+")
        planned = {file: n for file, n in _planned(path.parent).items() if repeat.fullmatch(file.name)}
    return [folder for folder in planned if not store.is_cell(folder)]


def _to_come(folder: Path) -> CellEntry:
    return CellEntry(folder.name, folder, "not run", problem="The run has not come to it.")


def _whole(folder: Path) -> Path:
    """Where a cell that is being measured will lie."""
    return folder.with_name(folder.name.removesuffix(store.PARTIAL))
