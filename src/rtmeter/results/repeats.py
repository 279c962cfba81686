"""Cells that repeat each other, and where a path stands for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtmeter.errors import RtmeterError
from rtmeter.results import store
from rtmeter.values import without_repeat


@dataclass(frozen=True, slots=True)
class Stored:
    """A cell on disk: its folder and its cell.json."""

    folder: Path
    record: Mapping[str, Any]

    @property
    def repeat(self) -> int:
        """Which of its repeats it is, from 1."""
        return int(self.record["axes"].get("repeat", 1))

    @property
    def name(self) -> str:
        """Its id, which all its repeats share: ``wakeup-posix`` of ``wakeup-posix-r2``."""
        return without_repeat(self.record["id"], self.record["axes"])

    @property
    def usable(self) -> bool:
        """Whether its samples may be judged."""
        return bool(self.record["valid"] and not self.record["error"] and self.record["summary"])

    @property
    def why_not(self) -> str:
        """Why they may not."""
        if self.record["error"]:
            return f"failed: {self.record['error']['message']}"
        return "is invalid: see its warnings" if not self.record["valid"] else "measured nothing"


def find_stored(path: Path) -> list[Stored]:
    """The cell at the path, all cells under it, or, where nothing lies, the repeats ``<path>-r1``,
    ``<path>-r2``, …

    Raises RtmeterError if there is none.
    """
    if not path.exists() and path.parent.is_dir():
        beside = (
            Stored(f, store.load_cell(f)) for f in path.parent.glob(f"{path.name}-r*") if store.is_cell(f)
        )
        repeats = sorted((cell for cell in beside if cell.name == path.name), key=lambda cell: cell.repeat)
        if repeats:
            return repeats
    return [Stored(folder, store.load_cell(folder)) for folder in store.find_cells(path)]


def by_name(cells: Iterable[Stored]) -> dict[str, dict[int, Stored]]:
    """The cells by name and number of the repeat.

    Raises RtmeterError if one is there twice, as in a folder of several runs.
    """
    groups: dict[str, dict[int, Stored]] = {}
    for cell in cells:
        repeats = groups.setdefault(cell.name, {})
        if cell.repeat in repeats:
            raise RtmeterError(
                f"is there twice: in {repeats[cell.repeat].folder} and {cell.folder}",
                field="cell",
                value=cell.record["id"],
                remedy="name one of the runs",
            )
        repeats[cell.repeat] = cell
    return groups
