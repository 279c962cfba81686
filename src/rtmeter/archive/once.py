"""Writing rows once, by however many writers at once, killed whenever (spec/archive.md, One batch)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from rtmeter.archive.schema import CELLS
from rtmeter.archive.tables import Archive, MovedError
from rtmeter.results.store import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.01, 1.0

Found = TypeVar("Found")
Done = TypeVar("Done")


def write_once(
    archive: Archive,
    name: str,
    found: Mapping[str, Found],
    times: Sequence[datetime | None],
    children: Callable[[Mapping[str, Found]], None],
    rows: Callable[[Mapping[str, Found]], pa.Table],
) -> int:
    """Adds to the table a row for each cell, by identity, that it has none of, once ``children`` has written
    what belongs to them; returns how many. ``times`` as in rows_there."""
    new, written = dict(found), False

    def once() -> int:
        nonlocal written
        seen = archive.table(name)
        for row in rows_there(archive, seen, name, times, ("cell",)):
            new.pop(row["cell"], None)
        if not new:
            return 0
        if not written:
            children(new)
            written = True
        archive.append(name, rows(new), seen)
        return len(new)

    return until_first(once)


def until_first(commit: Callable[[], Done]) -> Done:
    """What the commit returns, tried again each time that another writer was first."""
    limit_s = _SHORTEST_WAIT_S
    while True:
        try:
            return commit()
        except MovedError:
            limit_s = min(2 * limit_s, _LONGEST_WAIT_S)
            time.sleep(random.uniform(0, limit_s))


def change(archive: Archive, name: str, do: Callable[[DeltaTable], Done]) -> Done:
    """What a change of the table as it is returns, made anew each time that another writer was first."""

    def once() -> Done:
        table = archive.table(name)
        with archive.committing(name, table):
            return do(table)

    return until_first(once)


def rows_there(
    archive: Archive,
    table: DeltaTable,
    name: str,
    times: Sequence[datetime | None],
    columns: Sequence[str],
    cells: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """The rows of ``cells`` that started, or of another table that were measured, from the first to the last
    of these times, or at none that is told if one of these is None; ``cells``: of these identities alone."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    known = [time for time in times if time is not None]
    when = "started" if name == CELLS else "measured"
    wanted = [f"{when} IS NULL"] if len(known) < len(times) else []
    if known:
        wanted.append(f"{when} BETWEEN {literal(min(known))} AND {literal(max(known))}")
    query = f"SELECT {', '.join(columns)} FROM here WHERE ({' OR '.join(wanted) or 'false'})"
    if cells is not None:
        query += f" AND cell IN ({', '.join(map(quoted, cells))})" if cells else " AND false"
    with archive.telling():  # Arrow's own reader has threads that outlive Python, which then aborts at times
        answer = QueryBuilder().register("here", table).execute(query)
        found = pa.RecordBatchReader.from_stream(answer).read_all()  # pa.table() would import pandas
    return list(found.to_pylist())


def literal(time: datetime) -> str:
    """A time in SQL, as the tables have it: of itself it would be in ns, which end in 2262."""
    return f"arrow_cast('{time.isoformat()}', 'Timestamp(Microsecond, Some(\"UTC\"))')"
