"""Completing the cells that an archive has: what it does not tell of them and the same results do, in rows of
``completed`` beside them. What it tells stays as it is (spec/archive.md, completed)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from rtmeter.archive.cells import CellRows
from rtmeter.archive.once import rows_there, until_first
from rtmeter.archive.schema import CAUSES, CELLS, COMPLETABLE, COMPLETED, VERDICT
from rtmeter.archive.tables import Archive, table_of
from rtmeter.errors import RtmeterError

_KEY = ("cell", "measured", "rig")


def complete(
    archive: Archive, found: Mapping[str, CellRows], now: datetime, unexplained: list[RtmeterError]
) -> int:
    """Adds what the archive lacks of these cells, by identity; returns of how many cells. ``unexplained`` is
    told what stood in the way of some causes."""
    started = [one.cell["started"] for one in found.values()]
    cells = rows_there(archive, archive.table(CELLS), CELLS, started, (*_KEY, *COMPLETABLE), found)
    measured = [row["measured"] for row in cells]
    batch, written = "", frozenset[str]()

    def once() -> int:
        nonlocal batch, written
        seen, told = archive.table(COMPLETED), {row["cell"]: dict(row) for row in cells}
        for row in rows_there(archive, seen, COMPLETED, measured, ("cell", *COMPLETABLE), found):
            told[row.pop("cell")] |= {name: value for name, value in row.items() if value is not None}
        more = {name: _lacking(row, found[name], unexplained) for name, row in told.items()}
        more = {name: columns for name, columns in more.items() if columns}
        if not more:
            return 0
        caused = frozenset(name for name, columns in more.items() if "causes" in columns)
        if not batch or caused != written:  # of causes that another told first none of this batch may count
            batch, written = uuid.uuid4().hex, caused
            key = {name: {column: told[name][column] for column in _KEY} | {"batch": batch} for name in more}
            causes = [key[name] | row for name in sorted(caused) for row in found[name].others[CAUSES]]
            if causes:
                until_first(partial(archive.append, CAUSES, table_of(CAUSES, causes)))
        own = {"batch": batch, "added": now}
        rows = [{column: told[name][column] for column in _KEY} | own | more[name] for name in more]
        archive.append(COMPLETED, table_of(COMPLETED, rows), seen)
        return len(more)

    return until_first(once)


def _lacking(row: Mapping[str, Any], of: CellRows, unexplained: list[RtmeterError]) -> dict[str, Any]:
    """What the row of a cell does not tell and these rows do."""
    if row["causes"] is None and (error := of.explain()) is not None:
        unexplained.append(error)
    same = _same_verdict(row, of.cell)
    return {
        name: of.cell[name]
        for name in COMPLETABLE
        if row[name] is None and of.cell.get(name) is not None and (same or name not in VERDICT)
    }


def _same_verdict(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether both were required the same, and came to the same, in all that both tell."""
    if any(row[name] != other.get(name) for name in ("deadline_ns", "outcome")):
        return False
    both = ((row[name], other.get(name)) for name in VERDICT)
    return all(one == another for one, another in both if one is not None and another is not None)
