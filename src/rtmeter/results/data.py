"""A cell's data: the one file that its record has a summary of, there or an error that names it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rtmeter.errors import RtmeterError
from rtmeter.host import checked
from rtmeter.model import TWO_ENDS
from rtmeter.results import counted, store
from rtmeter.results.record import CellRecord, Summary
from rtmeter.samples.rows import Samples
from rtmeter.statistics.counted_data import CountedData
from rtmeter.statistics.quantities import quantities

if TYPE_CHECKING:
    import duckdb


def data_of(folder: Path, record: CellRecord) -> Path | None:
    """The file of the cell in ``folder``, one of store.DATA; None of one that measured nothing.

    Raises RtmeterError if it is not there, or is damaged.
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
    _check_bytes(file, record)
    if file.name == store.SAMPLES:
        samples = Samples(file)
        data, n, what = None, samples.rows, "releases"
        if lacking := sorted(_columns(record, record.summary) - samples.columns):
            message = f"lacks columns that cell.json has a summary of: {', '.join(lacking)}"
            raise RtmeterError(message, where=str(file), remedy=_remedy(folder, record))
    else:
        data = counted.read(file)
        n, what = data.n, "values"
    if n != (known := _counted(record.summary.counts, n)):
        message = f"holds {n:,} {what}, and cell.json counts {known:,}"
        raise RtmeterError(message, where=str(file), remedy=_remedy(folder, record))
    return file, data


def _check_bytes(file: Path, record: CellRecord) -> None:
    """Raises RtmeterError unless they are those that were written, as far as the record tells, or else the
    pages, at which not all who read the file look (DuckDB)."""
    message = "is damaged: its bytes are not those that were written, by the checksum in cell.json"
    try:
        if record.data_crc32c is None:
            checked.look_through(file)
            return
        if checked.crc32c_of(file) == record.data_crc32c:
            return
    except checked.DAMAGED as error:
        message = f"cannot be read: {getattr(error, 'strerror', None) or str(error).partition(chr(10))[0]}"
    raise RtmeterError(message, where=str(file), remedy=_remedy(file.parent, record))


def _columns(record: CellRecord, summary: Summary) -> set[str]:
    """What the quantities of the summary are made of, as statistics.summary has them."""
    known = [quantity for quantity in quantities(record.meta) if quantity.name in summary.quantities]
    found = {column for quantity in known for column in quantity.columns}
    freed = summary.counts.get("skipped") and record.measurement not in TWO_ENDS
    return found | ({"release_ns", "free_ns"} if freed else set())


def _counted(counts: Mapping[str, int], otherwise: int) -> int:
    """The rows that a summary was made of, warm-up included: it counts each once. ``otherwise`` if it does
    not say it."""
    measured = counts.get("released", counts.get("armed"))
    return otherwise if measured is None or "warm_up" not in counts else measured + counts["warm_up"]


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
