"""Cells as one JSON document (docs/import.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from rtmeter import store, version
from rtmeter.errors import RtmeterError
from rtmeter.exports.distribution import name_of

FORMAT, VERSION = "rtmeter-export", 1
_BATCH_ROWS = 1 << 16


def write(path: Path, out: Path) -> list[str]:
    """Writes every cell's record, and its rows in the order of its table."""
    head = {"format": FORMAT, "version": VERSION, "rtmeter": version()}
    with out.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "cells": [')
        for number, folder in enumerate(store.find_cells(path)):
            file.write(",\n" if number else "\n")
            _write_cell(file, folder, path)
        file.write("\n]}\n")
    return []


def _write_cell(file: TextIO, folder: Path, path: Path) -> None:
    record = store.load_cell(folder)
    kind = next((kind for kind in store.DATA if (folder / kind).is_file()), None)
    rows = _rows(folder / kind) if kind else iter([[]])
    about: dict[str, Any] = {"cell": name_of(folder, path, record), "record": record}
    about["data"] = Path(kind).stem if kind else None
    about["columns"] = next(rows)
    file.write(json.dumps(about)[:-1] + ', "rows": [')
    for number, row in enumerate(rows):
        file.write((",\n" if number else "\n") + json.dumps(row))
    file.write("]}")


def _rows(path: Path) -> Iterator[list[Any]]:
    """The names of the columns, then each row; null where there is no value."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path)
        yield table.schema_arrow.names
        for batch in table.iter_batches(_BATCH_ROWS):
            yield from map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))
    except pa.ArrowException as error:
        message = f"cannot be read: {str(error).splitlines()[0]}"
        raise RtmeterError(message, where=str(path), remedy="measure or import the cell again") from error
