"""A cell's data: the one file that its record has a summary of, there or an error that names it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rtmeter.errors import RtmeterError
from rtmeter.results import counted, store
from rtmeter.results.record import CellRecord
from rtmeter.statistics.counted_data import CountedData

if TYPE_CHECKING:
    import duckdb


def data_of(folder: Path, record: CellRecord) -> Path | None:
    """The file of the cell in ``folder``, one of store.DATA; None of one that measured nothing.

    Raises RtmeterError if it is not there, or is damaged, as far as that is seen without reading samples.
    """
    return _looked_at(folder, record)[0]


def samples_of(folder: Path, record: CellRecord) -> Path | None:
    """The same where it holds samples, else None."""
    file, data = _looked_at(folder, record)
    return file if data is None else None


def counted_of(folder: Path, record: CellRecord) -> CountedData | None:
    """What the cell has in the place of samples: a histogram, or intervals; None if it has samples, or
    measured nothing. Raises RtmeterError as data_of()."""
    return _looked_at(folder, record)[1]


def _looked_at(folder: Path, record: CellRecord) -> tuple[Path | None, CountedData | None]:
    """The file, and what is in it, if it has no samples."""
    if record.summary is None:
        return None, None
    file = folder / (f"{record.imported.data}.parquet" if record.imported else store.SAMPLES)
    if not file.is_file():
        gone = "is not there, though cell.json has a summary of it"
        message = "is no file" if file.exists() else gone
        raise RtmeterError(message, where=str(file), remedy=_remedy(folder, record))
    if file.name == store.SAMPLES:
        return file, None
    data = counted.read(file)
    counts = record.summary.counts
    if data.n != counts.get("released", data.n):
        message = f"holds {data.n:,} values, and cell.json counts {counts['released']:,}"
        raise RtmeterError(message, where=str(file), remedy=_remedy(folder, record))
    return file, data


def view_samples(connection: duckdb.DuckDBPyConnection, files: Mapping[Path, str]) -> None:
    """Makes the view ``samples``: the rows of the files, read where they lie, with the name of each one's
    cell in the column ``cell``."""
    names = {store.quoted(str(file.resolve())): store.quoted(name) for file, name in files.items()}
    pairs = ", ".join(f"{file}: {name}" for file, name in names.items())
    connection.execute(
        f"CREATE VIEW samples AS SELECT (MAP {{{pairs}}})[filename] AS cell, * EXCLUDE (filename) "
        f"FROM read_parquet([{', '.join(names)}], union_by_name=true, filename=true, hive_partitioning=false)"
    )


def _remedy(folder: Path, record: CellRecord) -> str:
    if record.imported:
        return "import the tool's file again, or measure the cell again"
    if (folder / store.CLIENT_LOG).is_file():
        return f"convert the cell's {store.CLIENT_LOG} again (rtmeter recover), or measure the cell again"
    return "put it back from a copy, or measure the cell again"
