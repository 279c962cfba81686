"""Cells as one JSON document (docs/import.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from rtmeter.errors import RtmeterError
from rtmeter.exports.distribution import name_of
from rtmeter.results import store
from rtmeter.results.data import data_of
from rtmeter.values import version

FORMAT, VERSION = "rtmeter-export", 1
_BATCH_ROWS = 1 << 16


def write(path: Path, out: Path) -> list[str]:
    """Writes every cell's record, and its rows in the order of its table."""
    head = {"format": FORMAT, "version": VERSION, "rtmeter": version()}
    with out.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "cells": [')
        for number, folder in enumerate(store.cell_folders(path)):
            file.write(",\n" if number else "\n")
            _write_cell(file, folder, path)
        file.write("\n]}\n")
    return []


def _write_cell(file: TextIO, folder: Path, path: Path) -> None:
    record = store.read_cell(folder)
    data = data_of(folder, record)
    columns, batches = _table(data) if data else ([], iter(()))
    about: dict[str, Any] = {"cell": name_of(folder, path, record), "record": record.model_dump(mode="json")}
    about |= {"data": data.stem if data else None, "columns": columns}
    file.write(json.dumps(about)[:-1] + ', "rows": [')
    for number, rows in enumerate(batches):
        file.write((",\n" if number else "\n") + json.dumps(rows)[1:-1])
    file.write("]}")


def _table(path: Path) -> tuple[list[str], Iterator[list[tuple[Any, ...]]]]:
    """The names of the columns, and batches of rows; null where there is no value."""
    from rtmeter.host import checked

    def batches() -> Iterator[list[tuple[Any, ...]]]:
        with _reading(path):
            for batch in table.iter_batches(_BATCH_ROWS):
                yield list(zip(*(column.to_pylist() for column in batch.columns), strict=True))

    with _reading(path):
        table = checked.opened(path)
        return table.schema_arrow.names, batches()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    from rtmeter.host import checked

    try:
        yield
    except checked.DAMAGED as error:
        message = f"cannot be read: {str(error).splitlines()[0]}"
        raise RtmeterError(message, where=str(path), remedy="measure or import the cell again") from error
