"""SQL over cells and samples: one SELECT, by DuckDB, that reads these and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rtmeter.errors import RtmeterError
from rtmeter.results.cell_table import cell_table
from rtmeter.results.cells import StoredCell
from rtmeter.results.data import samples_of, view_samples
from rtmeter.results.store import quoted

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_BATCH_ROWS = 1 << 16
_TABLES = "cells and samples"


@contextmanager
def answering(cells: Mapping[str, StoredCell], text: str) -> Iterator[pa.RecordBatchReader]:
    """The rows that the SELECT finds, batch by batch. Raises RtmeterError for SQL that is wrong, or that is
    more than one SELECT, and for samples that cannot be read."""
    import duckdb

    with in_our_form(text, _TABLES), duckdb.connect() as connection:
        check_select(text)
        if re.search(r"\bcells\b", text, re.IGNORECASE):
            connection.register("cells", cell_table(cells))
        files: dict[Path, str] = {}
        if re.search(r"\bsamples\b", text, re.IGNORECASE):
            found = {name: samples_of(cell.folder, cell.record) for name, cell in cells.items()}
            files = {file.resolve(): name for name, file in found.items() if file is not None}
        if files:
            view_samples(connection, files)
        lock(connection, list(map(str, files)))
        yield batches_of(connection, text)


def check_select(text: str) -> None:
    """Raises RtmeterError unless the text is one SELECT; EXPLAIN is none: with ANALYZE it runs what it
    explains, also what writes."""
    import duckdb

    statements = duckdb.extract_statements(text)
    kinds = [str(statement.type).rpartition(".")[2] for statement in statements]
    if len(kinds) != 1 or kinds[0] != "SELECT":
        message = f"is {kinds[0]}, and only SELECT is answered" if len(kinds) == 1 else "is not one statement"
        remedy = "write one SELECT; -o FILE writes what it finds"
        raise RtmeterError(message, field="SELECT", value=text, remedy=remedy)


def batches_of(connection: duckdb.DuckDBPyConnection, text: str) -> pa.RecordBatchReader:
    """The rows of one SELECT."""
    return connection.sql(text).to_arrow_reader(_BATCH_ROWS)


def lock(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> None:
    """From here on it reads these files, no other, and no network; nothing lifts that again."""
    connection.execute("SET python_enable_replacements = false")  # no variable of ours is a table
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")
    connection.execute(f"SET allowed_paths = [{', '.join(map(quoted, files))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


@contextmanager
def in_our_form(text: str, tables: str, command: str = "rtmeter sql") -> Iterator[None]:
    """What DuckDB says of the SELECT, with what helps."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        kind, _, message = str(error).partition(": ")
        remedy = f"the tables are {tables}: `{command} 'DESCRIBE cells'` lists columns"
        if "Permission" in kind:
            remedy = f"only the tables {tables} are read"
        said = " ".join(message.split("\n\nLINE")[0].split()) or kind
        if not said[:2].isupper():  # a word of SQL
            said = said[:1].lower() + said[1:]
        raise RtmeterError(said, field="SELECT", value=text, remedy=remedy) from None
