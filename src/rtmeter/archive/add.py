"""Adding cells: each once, whatever is added again, by however many writers at once, killed whenever."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from rtmeter.archive.cells import CellRows, rows_of
from rtmeter.archive.complete import complete
from rtmeter.archive.once import until_first, write_once
from rtmeter.archive.samples import UnreadableError, add_samples
from rtmeter.archive.schema import CAUSES, CELLS, CHILDREN, DISTRIBUTIONS, FINDINGS, MAXIMA
from rtmeter.archive.tables import Archive, table_of
from rtmeter.errors import RtmeterError
from rtmeter.results.cells import StoredCell
from rtmeter.results.record.reading import unreadable
from rtmeter.results.store import STILL_RUNNING

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 500
"""Cells of one commit."""

_T = TypeVar("_T")


@dataclass
class Added:
    """How many cells are new in the archive, how many it had, how many of these it now tells more of, of how
    many the samples were taken along; what was wrong with those that could not be added, or whose samples
    could not be taken; what stood in the way of the causes of others; and those of programs' own loops that
    went on."""

    new: int = 0
    known: int = 0
    completed: int = 0
    sampled: int = 0
    failed: list[RtmeterError] = field(default_factory=list)
    unexplained: list[RtmeterError] = field(default_factory=list)
    running: list[Path] = field(default_factory=list)


def add(
    archive: Archive,
    cells: Iterable[StoredCell | RtmeterError],
    labels: Mapping[str, str] | None = None,
    say: Callable[[int], None] = lambda _: None,
    with_samples: bool = False,
) -> Added:
    """Adds cells to the archive, which is made if it is not there, what it lacks of those that it had, and
    the samples of both, unless it had these, if ``with_samples``; ``say`` hears after each how many were
    read. A cell that cannot be read holds up no other; one of a loop that went on is left out, as it would be
    another cell once that has ended. What was added before an error, or before the process was killed, is
    whole, and is not added again. Raises RtmeterError if the store cannot be read, or refuses."""
    archive.make()
    done, read, now = Added(), 0, datetime.now(UTC)
    for group in _groups(cells):
        good: list[tuple[CellRows, StoredCell]] = []
        for cell in group:
            try:
                if _goes_on(cell):
                    done.running.append(cell.folder)
                else:
                    good.append(_read(cell, labels or {}, now))
            except RtmeterError as error:
                done.failed.append(error)
            read += 1
            say(read)
        found = {of.cell["cell"]: of for of, _ in good}
        new = add_rows(archive, found, done.unexplained)
        if new < len(found):
            done.completed += complete(archive, found, now, done.unexplained)
        if with_samples:
            _take_samples(archive, good, now, done)
        done.new += new
        done.known += len(good) - new
    return done


def _goes_on(cell: StoredCell | RtmeterError) -> TypeGuard[StoredCell]:
    return isinstance(cell, StoredCell) and any(doubt.type == STILL_RUNNING for doubt in cell.record.warnings)


def _groups(cells: Iterable[_T]) -> Iterator[list[_T]]:
    rest = iter(cells)
    while group := list(islice(rest, _BATCH)):
        yield group


def _read(
    cell: StoredCell | RtmeterError, labels: Mapping[str, str], now: datetime
) -> tuple[CellRows, StoredCell]:
    """The rows of the cell, and itself. Raises RtmeterError with a path if it cannot be read."""
    if isinstance(cell, RtmeterError):
        raise cell
    try:
        return rows_of(cell, labels, now), cell
    except OSError as error:
        raise unreadable(error, cell.folder) from error
    except RtmeterError as error:
        raise _located(error, cell) from error


def _located(error: RtmeterError, cell: StoredCell) -> RtmeterError:
    error.where = error.where or str(cell.folder)
    return error


def _take_samples(
    archive: Archive, of: Sequence[tuple[CellRows, StoredCell]], now: datetime, done: Added
) -> None:
    cells = {rows.cell["cell"]: cell for rows, cell in of}
    started = [rows.cell["started"] for rows, _ in of]
    try:
        done.sampled += add_samples(archive, cells, started, now)
    except UnreadableError as error:
        done.failed += [_located(wrong, cells[name]) for name, wrong in error.of.items()]
        readable = {name: cell for name, cell in cells.items() if name not in error.of}
        done.sampled += add_samples(archive, readable, started, now)


def add_rows(
    archive: Archive, found: Mapping[str, CellRows], unexplained: list[RtmeterError] | None = None
) -> int:
    """Adds the cells, by identity, that the archive has not, with their causes; returns how many.
    ``unexplained`` is told what stood in the way of some causes."""
    batch = uuid.uuid4().hex

    def children(new: Mapping[str, CellRows]) -> None:
        wrong = [error for one in new.values() if (error := one.explain()) is not None]
        if unexplained is not None:
            unexplained.extend(wrong)
        for name in CHILDREN:
            rows = [row for one in new.values() for row in _children(name, one, batch)]
            if rows:
                until_first(partial(archive.append, name, table_of(name, rows)))

    def rows(new: Mapping[str, CellRows]) -> pa.Table:
        return table_of(CELLS, [one.cell | {"batch": batch} for one in new.values()])

    return write_once(archive, CELLS, found, [one.cell["started"] for one in found.values()], children, rows)


def _children(name: str, of: CellRows, batch: str) -> list[dict[str, Any]]:
    """The rows of a child table."""
    key = {"batch": batch} | {column: of.cell[column] for column in ("cell", "measured", "rig")}
    if name != DISTRIBUTIONS:
        assert name in (MAXIMA, CAUSES, FINDINGS)
        return [key | row for row in of.others.get(name, [])]
    if of.binned is None:
        return []
    pairs = zip(of.binned.bins.tolist(), of.binned.counts.tolist(), strict=True)
    counts = [{"bin": number, "count": count} for number, count in pairs]
    extremes = {column: of.cell.get(column) for column in ("min_ns", "max_ns", "max_at_k")}
    return [key | extremes | {"n": of.binned.n, "lost": of.binned.lost, "counts": counts}]
