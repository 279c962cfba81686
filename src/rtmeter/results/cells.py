"""The cells of a report: which there are, in which state, and what was said of each."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rtmeter.errors import RtmeterError
from rtmeter.results import store
from rtmeter.results.cell_file import CellFile, Statistics, read_cell_file
from rtmeter.statistics.quantities import judged_quantity

State = Literal["complete", "interrupted", "failed", "skipped", "damaged", "running", "not run"]
Outcome = Literal["error", "fail", "inconclusive", "unfinished", "unjudged", "pass"]

WORST_FIRST: tuple[Outcome, ...] = ("error", "fail", "inconclusive", "unfinished", "unjudged", "pass")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell's folder and its cell.json; ``problem`` says why there is none, or what is wrong with it."""

    id: str
    folder: Path
    state: State
    file: CellFile | None = None
    problem: str | None = None

    @property
    def outcome(self) -> Outcome:
        """The verdict, or why there is none."""
        if self.state in ("running", "not run", "skipped"):
            return "unfinished"
        if self.file is None or self.state in ("failed", "damaged") or not self.file.valid:
            return "error"
        return self.file.verdict.outcome if self.file.verdict else "unjudged"

    @property
    def judged(self) -> Statistics | None:
        """The judged quantity, per release; None where nothing was measured."""
        if self.file is None or self.file.summary is None:
            return None
        views = self.file.summary.quantities.get(judged_quantity(self.file.meta).name, {})
        return views.get("per_release")

    @property
    def badness(self) -> tuple[int, float, float]:
        """Sorts cells: the worst verdict first, then the most misses, then the nearest to its deadline."""
        verdict = self.file.verdict if self.file else None
        missed = verdict.misses / verdict.n if verdict and verdict.n else 0.0
        return WORST_FIRST.index(self.outcome), -missed, -self.share_of_deadline

    @property
    def share_of_deadline(self) -> float:
        """The maximum as a share of the deadline (without one, in nanoseconds); infinite if lost."""
        maximum = self.judged.max_ns if self.judged else None
        deadline_ns = self.file.deadline_ns if self.file else None
        return math.inf if maximum == "lost" else (maximum or 0) / (deadline_ns or 1)


def find_cells(path: Path) -> list[Cell]:
    """The cell at ``path``, or all below it; also those that run, and those a run planned but lacks."""
    if not path.is_dir():
        raise RtmeterError(
            "is no folder", field="path", value=str(path), remedy="give a cell or a folder of cells"
        )
    if _is_cell(path):
        return [_read(path)]
    cells = [_read(folder) for folder in sorted(path.rglob("*")) if folder.is_dir() and _is_cell(folder)]
    cells += _planned(path, {cell.folder for cell in cells})
    if not cells:
        remedy = "give a folder that `rtmeter measure` or `rtmeter run` wrote"
        raise RtmeterError("holds no cell", field="path", value=str(path), remedy=remedy)
    names = store.distinct({cell.folder: cell.id for cell in cells}, path)
    return [replace(cell, id=names[cell.folder]) for cell in cells]


def find_all(paths: Sequence[Path]) -> list[Cell]:
    """The cells of several paths; ids that occur more than once become the folders below what they share."""
    if len(paths) == 1:
        return find_cells(paths[0])
    cells = {cell.folder.resolve(): cell for path in paths for cell in find_cells(path)}
    names = store.distinct(
        {folder: cell.id for folder, cell in cells.items()}, Path(os.path.commonpath(cells))
    )
    return [replace(cell, id=names[folder]) for folder, cell in cells.items()]


def _is_cell(folder: Path) -> bool:
    parts = (store.CELL, store.SAMPLES, store.CLIENT_LOG)
    return folder.name.endswith(store.PARTIAL) or any((folder / part).exists() for part in parts)


def _read(folder: Path) -> Cell:
    if folder.name.endswith(store.PARTIAL):
        problem = "It is being measured, or rtmeter was killed while it was."
        return Cell(folder.name.removesuffix(store.PARTIAL), folder, "running", problem=problem)
    try:
        file = read_cell_file(folder / store.CELL)
    except RtmeterError as error:
        return Cell(folder.name, folder, "damaged", problem=str(error))
    return Cell(file.id, folder, file.status, file, _problem(file))


def _problem(file: CellFile) -> str | None:
    """What is wrong with a cell that has no result."""
    if file.error and file.status == "skipped":
        return f"the {file.error.field} {file.error.value} {file.error.message}"
    return file.error.message if file.error else None


def _planned(path: Path, present: set[Path]) -> Iterator[Cell]:
    """Cells that a run.json lists and that have no folder."""
    for run in sorted(path.rglob(store.RUN)):
        try:
            names = [str(name) for name in store.read_json(run, store.RUN_FORMAT)["cells"]]
        except (RtmeterError, KeyError, TypeError):
            continue  # the cells that are there are shown all the same
        for name in names:
            if not {run.parent / name, run.parent / f"{name}{store.PARTIAL}"} & present:
                yield Cell(name, run.parent / name, "not run", problem="The run has not come to it.")
