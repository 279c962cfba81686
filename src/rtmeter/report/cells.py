"""The cells of a report: which there are, in which state, and what was said of each."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rtmeter.errors import RtmeterError
from rtmeter.report.cellfile import CellFile, Statistics, read_cell_file
from rtmeter.statistics.quantities import judged_quantity

State = Literal["complete", "interrupted", "failed", "damaged", "running", "not run"]
Outcome = Literal["error", "fail", "inconclusive", "unfinished", "unjudged", "pass"]

WORST_FIRST: tuple[Outcome, ...] = ("error", "fail", "inconclusive", "unfinished", "unjudged", "pass")

PARTIAL = ".partial"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell's directory and its cell.json; ``problem`` says why there is none, or what is wrong with it."""

    id: str
    directory: Path
    state: State
    file: CellFile | None = None
    problem: str | None = None

    @property
    def outcome(self) -> Outcome:
        """The verdict, or why there is none."""
        if self.state in ("running", "not run"):
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
        raise RtmeterError("is no directory", field="PATH", value=str(path), remedy="give a cell or a folder")
    if _is_cell(path):
        return [_read(path, path.name)]
    cells = [
        _read(directory, str(directory.relative_to(path)))
        for directory in sorted(path.rglob("*"))
        if directory.is_dir() and _is_cell(directory)
    ]
    cells += _planned(path, {cell.directory for cell in cells})
    if not cells:
        raise RtmeterError(
            "has no results in it",
            field="PATH",
            value=str(path),
            remedy="give what `rtmeter measure --out` or `rtmeter run --out` wrote",
        )
    return cells


def _is_cell(directory: Path) -> bool:
    parts = ("cell.json", "samples.parquet", "probe.rtlog")
    return directory.name.endswith(PARTIAL) or any((directory / part).exists() for part in parts)


def _read(directory: Path, name: str) -> Cell:
    if directory.name.endswith(PARTIAL):
        problem = "It is being measured, or rtmeter was killed while it was."
        return Cell(name.removesuffix(PARTIAL), directory, "running", problem=problem)
    try:
        file = read_cell_file(directory / "cell.json")
    except RtmeterError as error:
        return Cell(name, directory, "damaged", problem=str(error))
    return Cell(file.id, directory, file.status, file, file.error.message if file.error else None)


def _planned(path: Path, present: set[Path]) -> Iterator[Cell]:
    """Cells that a run.json lists and that have no directory."""
    for run in sorted(path.rglob("run.json")):
        try:
            ids = json.loads(run.read_bytes())["cells"]
            directories = {str(cell): run.parent / str(cell) for cell in ids}
        except (OSError, ValueError, TypeError, KeyError):
            continue
        for cell, directory in directories.items():
            partial = directory.with_name(directory.name + PARTIAL)
            if not {directory, partial} & present:
                yield Cell(cell, directory, "not run", problem="The run has not come to it.")
