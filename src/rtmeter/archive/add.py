"""Adding cells: each once, whatever is added again, by however many writers at once, killed whenever."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from rtmeter.archive.cells import CellRows, rows_of
from rtmeter.archive.once import write_once
from rtmeter.archive.samples import add_samples
from rtmeter.archive.schema import CAUSES, CELLS, CHILDREN, DISTRIBUTIONS, FINDINGS, MAXIMA, SCHEMAS
from rtmeter.archive.tables import Archive
from rtmeter.results.cells import StoredCell

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 500
"""Cells of one commit."""


@dataclass
class Added:
    """How many cells are new in the archive, how many it had, of how many the samples were taken along."""

    new: int = 0
    known: int = 0
    sampled: int = 0


def add(
    archive: Archive,
    cells: Iterable[StoredCell],
    labels: Mapping[str, str] | None = None,
    say: Callable[[int], None] = lambda _: None,
    with_samples: bool = False,
) -> Added:
    """Adds cells to the archive, which is made if it is not there, and with them, or to those that it had
    without, their samples, if ``with_samples``. What was added before an error, or before
    the process was killed, is whole, and is not added again. Raises RtmeterError if a cell or the store
    cannot be read, or the store refuses."""
    archive.make()
    done = Added()
    for group in _groups(cells):
        now = datetime.now(UTC)
        rows = [rows_of(cell, labels or {}, now) for cell in group]
        new = add_rows(archive, {of.cell["cell"]: of for of in rows})
        if with_samples:
            cells_of = {of.cell["cell"]: cell for of, cell in zip(rows, group, strict=True)}
            done.sampled += add_samples(archive, cells_of, [of.cell["started"] for of in rows], now)
        done.new += new
        done.known += len(group) - new
        say(done.new + done.known)
    return done


def _groups(cells: Iterable[StoredCell]) -> Iterator[list[StoredCell]]:
    rest = iter(cells)
    while group := list(islice(rest, _BATCH)):
        yield group


def add_rows(archive: Archive, found: Mapping[str, CellRows]) -> int:
    """Adds the cells, by identity, that the archive has not; returns how many."""
    batch = uuid.uuid4().hex

    def children(new: Mapping[str, CellRows]) -> None:
        for name in CHILDREN:
            rows = [row for one in new.values() for row in _children(name, one, batch)]
            if rows:
                archive.append(name, table_of(name, rows))

    def rows(new: Mapping[str, CellRows]) -> pa.Table:
        return table_of(CELLS, [one.cell | {"batch": batch} for one in new.values()])

    return write_once(archive, CELLS, found, [one.cell["started"] for one in found.values()], children, rows)


def table_of(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as a table has them, of one rig together."""
    import pyarrow as pa

    ordered = sorted(rows, key=lambda row: (row["rig"], row["measured"], row["cell"]))
    return pa.Table.from_pylist(ordered, SCHEMAS[name])


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
