"""An archive's Delta tables: made, opened, brought to this version, appended to.

A row of a child table (distributions, maxima, …) counts only if a row of ``cells`` names the same cell and
batch, one of ``samples`` only if one of ``sampled`` does. The children of a batch are written first, what
they belong to in one commit at the end: a writer that is killed leaves rows that nobody sees.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from rtmeter.archive.schema import (
    CELLS,
    CHILDREN,
    COMPLETED,
    OF_SAMPLES,
    SAMPLES,
    SCHEMAS,
    STAMPS,
    VERSION,
    described,
    version_of,
)
from rtmeter.errors import RtmeterError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable, WriterProperties

_ROWS_A_GROUP, _SAMPLES_A_GROUP = 16_384, 1 << 17
_FILE_URL = re.compile(r"file:(//(localhost)?)?(?=/)")
_LIKE_A_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_IN_NO_URL = re.compile(r"[\x00-\x1f\x7f\[\]\\^|]")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m|↳")


class MovedError(Exception):
    """Another writer has committed since the table was read: nothing of this commit is there."""


class Archive:
    """The tables at a place: a folder, or a URL of an object store."""

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def is_local(self) -> bool:
        """Whether its files are in a folder of this machine."""
        return "://" not in self.url

    def place(self, table: str) -> str:
        """Where a table is."""
        return f"{self.url.rstrip('/')}/{table}"

    def table(self, name: str) -> DeltaTable:
        """A table as it is now. Raises RtmeterError if it is not there, or not of a version that is known."""
        from deltalake import DeltaTable

        with self.telling():
            if not DeltaTable.is_deltatable(self.place(name)):
                what = "no archive is there" if name == CELLS else f"its table {name} is not there"
                remedy = "`rtmeter archive add RESULTS --to PLACE` makes one"
                remedy = (
                    remedy if name == CELLS else "put that folder back, or add the results to a new archive"
                )
                raise RtmeterError(what, field="archive", value=self.url, remedy=remedy)
            found = DeltaTable(self.place(name))
        version_of(found.metadata().description, self.place(name))
        return found

    def has(self, name: str) -> bool:
        """Whether the table is there."""
        from deltalake import DeltaTable

        with self.telling():
            return DeltaTable.is_deltatable(self.place(name))

    def open(self) -> Archive:
        """Itself, once it is known to be there. Raises RtmeterError if it is not."""
        self.table(CELLS)
        return self

    def ask(self) -> None:
        """Asks the store, and makes nothing. Raises RtmeterError if it refuses, or has an archive there that
        cannot be added to."""
        if self.has(CELLS):
            self.open()

    def make(self) -> None:
        """Makes what tables are missing, and brings older ones to this version."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        if self.is_local:
            self._make_folder()
        for name, schema in SCHEMAS.items():
            with self.telling():
                if not DeltaTable.is_deltatable(self.place(name)):
                    try:
                        DeltaTable.create(self.place(name), schema, description=described(), name=name)
                    except DeltaError:
                        if not DeltaTable.is_deltatable(self.place(name)):  # else another writer made it
                            raise
            self._migrate(name)

    def _make_folder(self) -> None:
        try:
            Path(self.url).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"cannot be made: {error.strerror}"
            raise RtmeterError(message, field="--to", value=self.url, remedy="choose another place") from None

    def _migrate(self, name: str) -> None:
        """Adds the columns that an older version has not; their values are null in its rows."""
        import pyarrow as pa
        from deltalake import Schema
        from deltalake.exceptions import DeltaError

        while True:
            table = self.table(name)
            there = set(pa.schema(table.schema().to_arrow()).names)
            missing = pa.schema([field for field in SCHEMAS[name] if field.name not in there])
            version = version_of(table.metadata().description, self.place(name))
            if version == VERSION and not missing.names:
                return
            try:
                with self.telling():
                    if missing.names:
                        table.alter.add_columns(Schema.from_arrow(missing).fields)
                    if version != VERSION:
                        table.alter.set_table_description(described())
            except RtmeterError as error:  # another writer does the same
                if (
                    not isinstance(error.__cause__, DeltaError)
                    or self.table(name).version() == table.version()
                ):
                    raise

    def append(self, name: str, rows: pa.Table | pa.RecordBatchReader, to: DeltaTable | None = None) -> None:
        """Adds the rows in one commit. Raises MovedError if ``to`` is no longer the newest version; without
        it, if another writer has meanwhile taken rows away."""
        from deltalake import CommitProperties, write_deltalake

        table = to if to is not None else self.table(name)
        with self.committing(name, table):
            write_deltalake(
                table,
                rows,
                mode="append",
                commit_properties=CommitProperties(max_commit_retries=0 if to is not None else 1000),
                writer_properties=written(name),
            )

    @contextmanager
    def committing(self, name: str, table: DeltaTable) -> Iterator[None]:
        """A commit to the table. Raises MovedError if it fails because another writer has committed."""
        from deltalake.exceptions import CommitFailedError

        seen = table.version()
        with self.telling():
            try:
                yield
            except CommitFailedError:
                if self.table(name).version() == seen:
                    raise
                raise MovedError from None

    def files(self, table: DeltaTable) -> list[str]:
        """The Parquet files of a table; of a folder as paths."""
        with self.telling():
            files = table.file_uris()
        return [unquote(uri.removeprefix("file://")) for uri in files] if self.is_local else files

    @contextmanager
    def telling(self) -> Iterator[None]:
        """What the store says, in our form."""
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError, ValueError) as error:
            said = " ".join(_COLOURS.sub("", str(error)).split()) or type(error).__name__
            remedy = (
                "is the place right, may it be written, and are the store's credentials in the environment? "
                "What was in the archive is whole"
            )
            raise RtmeterError(said[:400], field="archive", value=self.url, remedy=remedy) from error


def archive_at(place: str | Path) -> Archive:
    """The archive at a folder or URL, which may not be there yet. Raises RtmeterError for a place that can
    have none."""
    url = str(place)
    if is_file := _FILE_URL.match(url):
        url = unquote(url[is_file.end() :])
    if wrong := _wrong_with(url):
        what, remedy = wrong
        raise RtmeterError(what, field="archive", value=url, remedy=remedy)
    return Archive(url)


def _wrong_with(url: str) -> tuple[str, str] | None:
    """Why there can be no archive, and what helps. Delta tables are found by URL, a folder's too."""
    remedy = "give the folder of an archive, or a URL"
    if not url.strip():
        return "is no place", remedy
    if "://" in url:
        return None
    if _LIKE_A_URL.match(url):
        return "is neither a URL nor told from one", f"write ./{url} for a folder; URLs have a ://"
    folder = os.path.realpath(url)
    if unquote(folder) != folder:  # deltalake decodes it twice
        return f"has a % and two digits in its name ({folder}), which cannot be told from an escape", remedy
    if found := _IN_NO_URL.search(folder):
        return f"has {found[0]!r} in its name ({folder}), which a table's cannot have", remedy
    return None


def table_of(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as a table has them, of one rig together."""
    import pyarrow as pa

    ordered = sorted(rows, key=lambda row: (row["rig"], row["measured"], row["cell"]))
    return pa.Table.from_pylist(ordered, SCHEMAS[name])


def written(name: str) -> WriterProperties:
    """How the files of a table are written."""
    from deltalake import ColumnProperties, WriterProperties

    if name != SAMPLES:
        return WriterProperties(compression="ZSTD", max_row_group_size=_ROWS_A_GROUP)
    steady = ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED")
    return WriterProperties(
        compression="ZSTD",
        max_row_group_size=_SAMPLES_A_GROUP,
        column_properties=dict.fromkeys(("k", *STAMPS), steady),
    )


def snapshot(archive: Archive) -> dict[str, DeltaTable]:
    """All tables, in an order in which each is read after what names its rows: what was completed before the
    cells of which it tells, both before what belongs to a cell; so with what was sampled. An older archive
    may have nothing of what was completed or sampled."""
    first = (COMPLETED,) if archive.has(COMPLETED) else ()
    found = {name: archive.table(name) for name in (*first, CELLS, *CHILDREN)}
    if any(archive.has(name) for name in OF_SAMPLES):
        found |= {name: archive.table(name) for name in OF_SAMPLES}
    return found


def json_text(value: Any) -> str:
    """The one text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
