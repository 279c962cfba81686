"""A trace on the disk: trace.parquet, with the columns that docs/explain.md lists."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rtmeter.errors import RtmeterError
from rtmeter.explain.events import KINDS, NO_PRIORITY, NO_VALUE, NOBODY, STATES, Trace

FILE = "trace.parquet"
_ABSENT = {"tid": NOBODY, "target": NOBODY, "priority": NO_PRIORITY, "value": NO_VALUE}


def write_trace(trace: Trace, path: Path) -> None:
    """Writes the table."""
    columns: dict[str, pa.Array] = {}
    for name in ("time_ns", "cpu", "event", "tid", "target", "state", "priority", "name", "value"):
        values = np.asarray(getattr(trace, name))
        if name in ("event", "state", "name"):
            words = {"event": KINDS, "state": STATES, "name": trace.names}[name]
            places = pa.array(
                values.astype(np.int32), mask=np.asarray([not w for w in words] or [False])[values]
            )
            columns[name] = pa.DictionaryArray.from_arrays(places, pa.array(words, pa.string()))
        else:
            columns[name] = pa.array(values, mask=values == _ABSENT[name] if name in _ABSENT else None)
    pq.write_table(pa.table(columns), path, compression="zstd")


def read_trace(path: Path) -> Trace:
    """The table again. Raises RtmeterError if it cannot be read."""
    try:
        return _trace(pq.ParquetFile(path))
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        message = f"the trace cannot be read: {str(error).splitlines()[0]}"
        raise RtmeterError(message, where=str(path), remedy="measure the cell again with --explain") from None


def _trace(file: pq.ParquetFile) -> Trace:
    """Column by column: a long trace is hundreds of megabytes."""
    trace = Trace()
    for name in ("time_ns", "cpu", "tid", "target", "priority", "value"):
        column = pc.fill_null(file.read([name])[name], _ABSENT.get(name, 0))
        _fill(trace, name, column.to_numpy())
    for name, words in (("event", KINDS), ("state", STATES), ("name", None)):
        column = file.read([name])[name].unify_dictionaries().combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # of a table without rows
            continue
        theirs = [*column.dictionary.to_pylist(), ""]
        ours = [trace.place(word) if words is None else _place(words, word) for word in theirs]
        places = pc.fill_null(column.indices, len(theirs) - 1).to_numpy()
        _fill(trace, name, np.asarray(ours)[places])
    return trace


def _place(words: Sequence[str], word: str) -> int:
    return words.index(word) if word in words else 0


def _fill(trace: Trace, name: str, values: Any) -> None:
    typecode = getattr(trace, name).typecode
    kept = array(typecode)
    kept.frombytes(values.astype(np.dtype(typecode)).tobytes())
    setattr(trace, name, kept)
