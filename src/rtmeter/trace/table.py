"""A trace on the disk: trace.parquet, with the columns that docs/explain.md lists."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rtmeter.errors import RtmeterError
from rtmeter.explain.events import COLUMNS, KINDS, NO_PRIORITY, NO_VALUE, NOBODY, STATES, Trace, joined
from rtmeter.host import checked
from rtmeter.values import from_json

FILE = "trace.parquet"
_ABSENT = {"tid": NOBODY, "target": NOBODY, "priority": NO_PRIORITY, "value": NO_VALUE}


_ABOUT = b"rtmeter"


def write_trace(
    parts: Iterable[Trace], path: Path, kept: Sequence[int] | None = None, *, by_time: bool = False
) -> None:
    """Writes the table of parts that follow one another. ``kept``: where only their surroundings were
    recorded, the releases: their k, or ``by_time`` their times."""
    writer: pq.ParquetWriter | None = None
    try:
        for part in parts:
            table = _table(part)
            writer = writer or checked.writer(path, table.schema)
            writer.write_table(table)
        if writer is not None and kept is not None:
            about = {"kept_ns" if by_time else "kept": list(kept)}
            writer.add_key_value_metadata({_ABOUT: json.dumps(about)})
    finally:
        if writer is not None:
            writer.close()


def _table(part: Trace) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name in COLUMNS:
        values = np.asarray(getattr(part, name))
        if name in ("event", "state", "name"):
            words = {"event": KINDS, "state": STATES, "name": part.names}[name]
            places = pa.array(
                values.astype(np.int32), mask=np.asarray([not w for w in words] or [False])[values]
            )
            columns[name] = pa.DictionaryArray.from_arrays(places, pa.array(words, pa.string()))
        else:
            columns[name] = pa.array(values, mask=values == _ABSENT[name] if name in _ABSENT else None)
    return pa.table(columns)


@dataclass(frozen=True)
class StoredTrace:
    """A table on the disk. ``kept``: the releases whose surroundings are there, by k or, where it is of
    several cells or of one whose k were not known yet, by their times (``kept_ns``); both None if all is.
    ``parts()`` reads it from the beginning, each time. Raises RtmeterError where it cannot be read."""

    path: Path
    kept: frozenset[int] | None
    kept_ns: frozenset[int] | None = None

    def within(self, start_ns: int, end_ns: int) -> Trace:
        """What happened in a span."""
        found = []
        for part in self.parts(start_ns, end_ns):
            first, last = np.searchsorted(np.asarray(part.time_ns), [start_ns, end_ns])
            found.append(part.taken(slice(int(first), int(last))))
        return joined(found)

    def parts(self, start_ns: int | None = None, end_ns: int | None = None) -> Iterator[Trace]:
        """Those that have something of a span."""
        names = Trace()
        with _reading(self.path):
            file = checked.opened(self.path)
            for group in range(file.num_row_groups):
                times = file.metadata.row_group(group).column(0).statistics
                if start_ns is not None and times is not None and times.has_min_max and times.max < start_ns:
                    continue
                if end_ns is not None and times is not None and times.has_min_max and times.min > end_ns:
                    continue
                yield _part(file.read_row_group(group), names.empty())


def open_trace(path: Path) -> StoredTrace:
    """Raises RtmeterError if it cannot be read."""
    with _reading(path):
        about = (checked.opened(path).metadata.metadata or {}).get(_ABOUT)
        if about is None:
            return StoredTrace(path, None)
        found = from_json(about)
        if "kept_ns" in found:
            return StoredTrace(path, None, frozenset(map(int, found["kept_ns"])))
        return StoredTrace(path, frozenset(map(int, found["kept"])))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (*checked.DAMAGED, KeyError, TypeError, AttributeError) as error:
        message = f"the trace cannot be read: {str(error).splitlines()[0]}"
        raise RtmeterError(message, where=str(path), remedy="measure the cell again with --explain") from None


def _part(table: pa.Table, part: Trace) -> Trace:
    for name in ("time_ns", "cpu", "tid", "target", "priority", "value"):
        column = pc.fill_null(table[name], _ABSENT.get(name, 0))
        _fill(part, name, column.to_numpy())
    for name, words in (("event", KINDS), ("state", STATES), ("name", None)):
        column = table[name].unify_dictionaries().combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # of a table without rows
            continue
        theirs = [*column.dictionary.to_pylist(), ""]
        ours = [part.place(word or "") if words is None else _at(words, word) for word in theirs]
        places = pc.fill_null(column.indices, len(theirs) - 1).to_numpy()
        _fill(part, name, np.asarray(ours)[places])
    return part


def _at(words: Sequence[str], word: str) -> int:
    return words.index(word) if word in words else 0


def _fill(trace: Trace, name: str, values: Any) -> None:
    typecode = getattr(trace, name).typecode
    kept = array(typecode)
    kept.frombytes(values.astype(np.dtype(typecode)).tobytes())
    setattr(trace, name, kept)
