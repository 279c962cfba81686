"""Adding cells: each once, whatever is added again, by however many writers at once, killed whenever."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from rtmeter.archive.cells import CellRows, rows_of
from rtmeter.archive.schema import CAUSES, CELLS, CHILDREN, DISTRIBUTIONS, FINDINGS, MAXIMA, SCHEMAS
from rtmeter.archive.tables import Archive, MovedError
from rtmeter.results.cells import StoredCell

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

_BATCH = 500
"""Cells of one commit."""

_LONGEST_WAIT_S = 1.0


@dataclass
class Added:
    """How many cells are new in the archive, and how many it had."""

    new: int = 0
    known: int = 0


def add(
    archive: Archive,
    cells: Iterable[StoredCell],
    labels: Mapping[str, str] | None = None,
    say: Callable[[int], None] = lambda _: None,
) -> Added:
    """Adds cells to the archive, which is made if it is not there. What was added before an error, or before
    the process was killed, is whole, and is not added again. Raises RtmeterError if a cell or the store
    cannot be read, or the store refuses."""
    archive.make()
    done = Added()
    for group in _groups(cells):
        now = datetime.now(UTC)
        found = {rows.cell["cell"]: rows for rows in (rows_of(cell, labels or {}, now) for cell in group)}
        new = add_rows(archive, found)
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
    times = [rows.cell["started"] for rows in found.values()]
    new, written, waited = dict(found), False, 0
    while True:
        cells = archive.table(CELLS)
        for known in _there(archive, cells, times):
            new.pop(known, None)
        if not new:
            return 0
        if not written:
            for name in CHILDREN:
                rows = [row for one in new.values() for row in _children(name, one, batch)]
                if rows:
                    archive.append(name, table_of(name, rows))
            written = True
        try:
            archive.append(
                CELLS, table_of(CELLS, [one.cell | {"batch": batch} for one in new.values()]), cells
            )
            return len(new)
        except MovedError:
            waited += 1
            time.sleep(random.uniform(0, min(_LONGEST_WAIT_S, 0.01 * 2**waited)))


def _there(archive: Archive, cells: DeltaTable, times: list[datetime | None]) -> list[str]:
    """The identities of the cells that are there from the time in which these were measured."""
    import pyarrow.compute as pc

    known = [time for time in times if time is not None]
    started = pc.field("started")
    wanted = started.is_null() if len(known) < len(times) else pc.scalar(False)
    if known:
        wanted = wanted | ((started >= min(known)) & (started <= max(known)))
    with archive.telling():
        found = cells.to_pyarrow_dataset().to_table(columns=["cell"], filter=wanted)
    return [str(cell) for cell in found.column("cell").to_pylist()]


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
