"""Cells as one table, by DuckDB: CSV and Parquet."""

from __future__ import annotations

from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.exports.distribution import name_of
from rtmeter.results import store
from rtmeter.results.data import data_of, view_samples


def csv(path: Path, out: Path) -> list[str]:
    """Writes CSV with a header; empty where there is no value."""
    return _copy(path, out, "FORMAT csv, HEADER")


def parquet(path: Path, out: Path) -> list[str]:
    """Writes Parquet."""
    return _copy(path, out, "FORMAT parquet, COMPRESSION zstd")


def _copy(path: Path, out: Path, settings: str) -> list[str]:
    import duckdb

    folders = store.cell_folders(path)
    files: dict[Path, str] = {}
    for folder in folders:
        record = store.read_cell(folder)
        if (data := data_of(folder, record)) is not None:
            files[data] = name_of(folder, path, record)
    kinds = [kind for kind in store.DATA if any(file.name == kind for file in files)]
    if not files:
        raise RtmeterError("holds no samples", field="path", value=str(path), remedy="measure again")
    if len(kinds) > 1:
        held = " and with ".join(Path(kind).stem for kind in kinds)
        message = f"holds cells with {held}, which make no one table"
        raise RtmeterError(message, field="path", value=str(path), remedy="export them apart, or as json")
    columns = "* EXCLUDE (cell)" if store.is_cell(path) else "*"
    try:
        with duckdb.connect() as connection:
            view_samples(connection, files)
            target = store.quoted(str(out))
            connection.execute(f"COPY (SELECT {columns} FROM samples) TO {target} ({settings})")
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        remedy = "if the samples are damaged measure the cell again; else see to the space there"
        raise RtmeterError(reason, where=str(path), remedy=remedy) from None
    return []
