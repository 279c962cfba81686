"""Who tidies an archive: one at a time. Of two that joined the same files at once both would commit, and each
of their rows be there twice: the library that joins them does not look what became of them meanwhile."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from rtmeter.archive.schema import described
from rtmeter.archive.tables import Archive, MovedError
from rtmeter.errors import RtmeterError

if TYPE_CHECKING:
    from deltalake import DeltaTable

CLAIM = "tidying"
"""A table of one row, who tidies and until when, or of none."""

_HOLDS = timedelta(hours=6)
"""A claim that is older is of one who was killed; it is made anew before each table."""

_SCHEMA = pa.schema([("holder", pa.string()), ("until", pa.timestamp("us", "UTC"))])


@contextmanager
def alone(archive: Archive, now: datetime | None = None) -> Iterator[Callable[[], None]]:
    """Claims the archive for tidying; what it yields makes the claim anew. Raises RtmeterError while another
    has it, or if another took it meanwhile."""
    own = uuid.uuid4().hex

    def claim() -> None:
        time = now or datetime.now(UTC)
        table = _table(archive)
        for row in table.to_pyarrow_table().to_pylist():
            if row["holder"] != own and row["until"] > time:
                raise _taken(archive, row["until"])
        try:
            _write(archive, table, [{"holder": own, "until": time + _HOLDS}])
        except MovedError:
            raise _taken(archive, time + _HOLDS) from None

    claim()
    try:
        yield claim
    finally:
        table = archive.table(CLAIM)
        if [row["holder"] for row in table.to_pyarrow_table().to_pylist()] == [own]:
            _write(archive, table, [])
            with archive.telling():
                table.vacuum(dry_run=False)


def _table(archive: Archive) -> DeltaTable:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    if not archive.has(CLAIM):
        with archive.telling():
            try:
                DeltaTable.create(archive.place(CLAIM), _SCHEMA, description=described(), name=CLAIM)
            except DeltaError:
                if not archive.has(CLAIM):  # else another made it
                    raise
    return archive.table(CLAIM)


def _write(archive: Archive, table: DeltaTable, rows: list[dict[str, object]]) -> None:
    """In the place of what was there. Raises MovedError if another was first."""
    from deltalake import CommitProperties, write_deltalake

    with archive.committing(CLAIM, table):
        write_deltalake(
            table,
            pa.Table.from_pylist(rows, _SCHEMA),
            mode="overwrite",
            commit_properties=CommitProperties(max_commit_retries=0),
        )


def _taken(archive: Archive, until: datetime) -> RtmeterError:
    remedy = "wait until it has ended; if it was killed, its claim ends at that time"
    message = f"another tidies it, until {until:%Y-%m-%d %H:%M} UTC at the latest"
    return RtmeterError(message, field="archive", value=archive.url, remedy=remedy)
