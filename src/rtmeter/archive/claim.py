"""Who tidies an archive: one at a time. Of two that joined the same files at once both would commit, and each
of their rows be there twice: the library that joins them does not look what became of them meanwhile."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from rtmeter.archive.schema import described
from rtmeter.archive.tables import Archive, MovedError
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.threads import read_task

if TYPE_CHECKING:
    from deltalake import DeltaTable

CLAIM = "tidying"
"""A table of one row, who tidies and until when, or of none."""

_HOLDS = timedelta(hours=6)
"""A claim that is older is of one who was killed; it is made anew before each table. Of one who was killed on
this machine it ends at once."""

_SCHEMA = pa.schema([("holder", pa.string()), ("until", pa.timestamp("us", "UTC"))])


@contextmanager
def alone(archive: Archive, now: datetime | None = None) -> Iterator[Callable[[], None]]:
    """Claims the archive for tidying; what it yields makes the claim anew. Raises RtmeterError while another
    has it, or if another took it meanwhile."""
    own = " ".join([uuid.uuid4().hex, _numbers(), str(os.getpid()), str(_start(os.getpid()))])

    def claim() -> None:
        time = now or datetime.now(UTC)
        table = _table(archive)
        for row in table.to_pyarrow_table().to_pylist():
            if row["holder"] != own and row["until"] > time and not _is_gone(row["holder"]):
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


def _numbers() -> str:
    """Where a process number means the same: until this machine boots, in this namespace."""
    boot = Root().read("/proc/sys/kernel/random/boot_id") or "unknown"
    return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"


def _start(pid: int) -> int | None:
    """When the process began, in ticks since boot; None where it has ended, or is hidden."""
    task = read_task(Root(), pid)
    return None if task is None else task.start


def _is_gone(holder: str) -> bool:
    """Whether its process is known to have ended; of another machine's that is never known."""
    _, *rest = holder.split()
    if len(rest) != 3 or rest[0] != _numbers() or rest[0].startswith("unknown"):
        return False
    pid, began = int(rest[1]), rest[2]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return _start(pid) is not None and str(_start(pid)) != began


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
    remedy = "wait until it has ended; if it was killed on another machine, its claim ends at that time"
    message = f"another tidies it, until {until:%Y-%m-%d %H:%M} UTC at the latest"
    return RtmeterError(message, field="archive", value=archive.url, remedy=remedy)
