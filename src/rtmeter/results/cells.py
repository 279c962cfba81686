"""The cells under a path, with their records; which of them repeat each other, and are one condition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.results import store, table
from rtmeter.results.record import CellRecord
from rtmeter.results.record.alike import Alike


@dataclass(frozen=True, slots=True)
class StoredCell:
    """A cell on disk: its folder and its record."""

    folder: Path
    record: CellRecord


def find_cells(path: Path) -> list[StoredCell]:
    """The cell at the path, all cells under it, or, where nothing lies, the repeats ``<path>-r1``,
    ``<path>-r2``, …

    Raises RtmeterError if there is none.
    """
    alike = Alike()
    return [StoredCell(cell.folder, alike.of(cell.record)) for cell in each_cell(path)]


def each_cell(path: Path) -> Iterator[StoredCell]:
    """The cell at the path, or all cells under it, one after the other: their records need not be in memory
    together. Raises RtmeterError if there is none, or one cannot be read."""
    for cell in stored(store.cell_folders(path)):
        if isinstance(cell, RtmeterError):
            raise cell
        yield cell


def stored(folders: Sequence[Path]) -> Iterator[StoredCell | RtmeterError]:
    """The cell in each of the folders, one after the other, or what is wrong with it."""
    for folder, record in table.records(folders):
        yield record if isinstance(record, RtmeterError) else StoredCell(folder, record)


def folders_of(paths: Iterable[Path]) -> tuple[list[Path], list[RtmeterError]]:
    """The folders of all cells at or under the paths, and what is wrong with paths or runs whose cells are
    not among them."""
    folders: list[Path] = []
    wrong: list[RtmeterError] = []
    for path in paths:
        try:
            folders += store.cell_folders(path, wrong.append)
        except RtmeterError as error:
            wrong.append(error)
    return folders, wrong


def by_name(cells: Iterable[StoredCell]) -> dict[str, dict[int, StoredCell]]:
    """The cells by name and number of the repeat.

    Raises RtmeterError if one is there twice, as in a folder of several runs.
    """
    groups: dict[str, dict[int, StoredCell]] = {}
    for cell in cells:
        repeats = groups.setdefault(cell.record.name, {})
        if cell.record.repeat in repeats:
            raise RtmeterError(
                f"is there twice: in {repeats[cell.record.repeat].folder} and {cell.folder}",
                field="cell",
                value=cell.record.id,
                remedy="name one of the runs",
            )
        repeats[cell.record.repeat] = cell
    return groups


def conditions(cells: Iterable[StoredCell]) -> list[list[StoredCell]]:
    """The repeats of each cell of a run together, in the order of their first one; cells that happen to have
    one name, as those that were measured one by one, are no repeats."""
    groups: dict[tuple[Path, str], list[StoredCell]] = {}
    for cell in cells:
        of = cell.folder.parent if cell.record.is_repeat else cell.folder
        groups.setdefault((of, cell.record.name), []).append(cell)
    return [sorted(repeats, key=lambda cell: cell.record.repeat) for repeats in groups.values()]
