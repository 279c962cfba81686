"""Cells as one table, by DuckDB: CSV and Parquet."""

from __future__ import annotations

from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.results import store


def csv(path: Path, out: Path) -> list[str]:
    """Writes CSV with a header; empty where there is no value."""
    return _copy(path, out, "FORMAT csv, HEADER")


def parquet(path: Path, out: Path) -> list[str]:
    """Writes Parquet."""
    return _copy(path, out, "FORMAT parquet, COMPRESSION zstd")


def _copy(path: Path, out: Path, settings: str) -> list[str]:
    import duckdb

    folders = store.cell_folders(path)
    for folder in folders:
        store.read_cell(folder)  # a damaged one is none whose rows are to be taken
    kinds = [kind for kind in store.DATA if any((folder / kind).is_file() for folder in folders)]
    if len(kinds) > 1:
        held = " and with ".join(Path(kind).stem for kind in kinds)
        message = f"holds cells with {held}, which make no one table"
        raise RtmeterError(message, field="path", value=str(path), remedy="export them apart, or as json")
    columns = "* EXCLUDE (cell)" if store.is_cell(path) else "*"
    try:
        with store.connect(path, *kinds) as connection:
            target = store.quoted(str(out))
            connection.execute(f"COPY (SELECT {columns} FROM samples) TO {target} ({settings})")
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        remedy = "if the samples are damaged measure the cell again; else see to the space there"
        raise RtmeterError(reason, where=str(path), remedy=remedy) from None
    return []
