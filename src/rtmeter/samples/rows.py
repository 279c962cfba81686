"""samples.parquet as chunks of columns in the order of k, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rtmeter.errors import RtmeterError
from rtmeter.host import checked
from rtmeter.host.files import open_file
from rtmeter.model import ABSENT, STATUS_NAMES, WARM_UP_FLAG
from rtmeter.samples.arrow import check_columns
from rtmeter.statistics.quantities import Columns, Ints

_CHUNK_ROWS = 1 << 17
_MOST_GROUP_ROWS = 1 << 22
"""Row groups of more rows, which rtmeter does not write, are read in parts, with all their columns."""


class Samples:
    """A samples.parquet (spec/results.md). What cannot be read, as where a column is not of its type, raises
    RtmeterError naming the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _reading(self._path):
            open_file(path).close()
            self._file = checked.opened(path)
            self.rows: int = self._file.metadata.num_rows
            self.columns = frozenset(self._file.schema_arrow.names)
            _check_types(self._file.schema_arrow)

    def chunks(self, *columns: str) -> Iterator[Columns]:
        """All rows: ``k``, ``status`` (codes of the sample log, warm-up flag included) and those columns,
        int64 arrays, ABSENT where there is no value. A column is decoded when it is first asked for."""
        names = tuple(dict.fromkeys(("k", *columns, "status")))
        with _reading(self._path), ThreadPoolExecutor(1) as ahead:
            coming: Future[_Group] | None = None
            other = self._file  # a reader is one thread's
            if self._file.num_row_groups > 1:
                other = checked.opened(self._path, self._file.metadata)
            for number in range(self._file.num_row_groups):
                rows = self._file.metadata.row_group(number).num_rows
                if rows > _MOST_GROUP_ROWS:
                    yield from self._in_parts(number, names)
                    continue
                group = coming.result() if coming else _Group(self._path, self._file, number)
                group.file = self._file
                coming = None
                for first in range(0, rows, _CHUNK_ROWS):
                    yield _Chunk(group, names, slice(first, min(first + _CHUNK_ROWS, rows)))
                    if coming is None and number + 1 < self._file.num_row_groups:
                        wanted = tuple(group.decoded)
                        coming = ahead.submit(_Group, self._path, other, number + 1, wanted)

    def _in_parts(self, group: int, names: tuple[str, ...]) -> Iterator[Columns]:
        stored = [name for name in names if name != "status"]
        parts = self._file.iter_batches(
            _CHUNK_ROWS, columns=[*stored, "status", "warm_up"], row_groups=[group]
        )
        for batch in parts:
            chunk = {name: _int64s(batch.column(name)) for name in stored}
            yield chunk | {"status": _statuses(batch.column("status"), batch.column("warm_up"))}

    def k_range(self) -> tuple[int, int]:
        """First and last k of the file, which has at least one row."""
        with _reading(self._path):
            groups = (0, self._file.num_row_groups - 1)
            first, last = (self._file.read_row_group(group, ["k"]).column("k") for group in groups)
            ends = first[0].as_py(), last[-1].as_py()
            if None in ends:
                raise ValueError("a row has no k")
            return ends

    def at(self, k: Ints, column: str) -> Ints:
        """A column's values in the rows with those k (ascending, shape (n,)), ABSENT where there is none."""
        with _reading(self._path):
            chosen = pc.field("k").isin(k.tolist())  # in Arrow's memory: results/table.py
            rows = checked.read_where(self._path, ["k", column], chosen)
        values = np.full(len(k), ABSENT)
        values[np.searchsorted(k, _int64s(rows.column("k")))] = _int64s(rows.column(column))
        return values


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (*checked.DAMAGED, KeyError) as error:
        message = f"the samples cannot be read: {str(error).splitlines()[0]}"
        remedy = "convert the cell's probe.rtlog again (rtmeter recover), or measure or import the cell again"
        raise RtmeterError(message, where=str(path), remedy=remedy) from error


def _check_types(schema: pa.Schema) -> None:
    times = (name for name in schema.names if name.endswith("_ns"))
    check_columns(schema, dict.fromkeys(("k", *times), pa.int64()) | {"warm_up": pa.bool_()})
    place = schema.get_field_index("status")
    status = schema.field(place).type if place >= 0 else None
    values = status.value_type if isinstance(status, pa.DictionaryType) else status
    if values not in (pa.string(), pa.large_string()):
        check_columns(schema, {"status": pa.dictionary(pa.int8(), pa.string())})


class _Group:
    """The columns of a row group, decoded when they are first asked for, and not at all where the file's
    own statistics tell that all values are the same."""

    def __init__(self, path: Path, file: pq.ParquetFile, number: int, ahead: tuple[str, ...] = ()) -> None:
        """``ahead``: what is decoded at once."""
        self._path = path
        self.decoded: dict[str, Ints] = {}
        self.file, self._number = file, number
        about = file.metadata.row_group(number)
        self._rows = about.num_rows
        parts = (about.column(place) for place in range(about.num_columns))
        self._facts: dict[str, Any] = {part.path_in_schema: part.statistics for part in parts}
        if about.num_rows <= _MOST_GROUP_ROWS:
            for name in ahead:
                self.column(name)

    def column(self, name: str) -> Ints:
        """The column, shape (rows,), not to be written to."""
        if name not in self.decoded:
            with _reading(self._path):
                self.decoded[name] = self._status() if name == "status" else self._times(name)
        return self.decoded[name]

    def _times(self, name: str) -> Ints:
        facts: Any = self._facts.get(name)
        if facts is not None and facts.null_count == self._rows:
            return self._all(ABSENT)
        return _int64s(self._read(name))

    def _status(self) -> Ints:
        names, flags = self._only("status"), self._only("warm_up")
        if names in STATUS_NAMES and isinstance(flags, bool):
            return self._all(STATUS_NAMES.index(names) | (WARM_UP_FLAG if flags else 0))
        table = self._read("status", "warm_up").combine_chunks()
        return _statuses(_whole(table.column("status")), _whole(table.column("warm_up")))

    def _only(self, name: str) -> object:
        """The one value that the column has; None if there are several, or it is not known."""
        facts: Any = self._facts.get(name)
        known = facts is not None and facts.has_min_max and facts.has_null_count and facts.null_count == 0
        return facts.min if known and facts.min == facts.max else None

    def _all(self, value: int) -> Ints:
        same: Ints = np.broadcast_to(np.int64(value), self._rows)
        return same

    def _read(self, *names: str) -> pa.Table:
        table = self.file.read_row_group(self._number, list(names), use_threads=False)
        return table if len(names) > 1 else table.column(names[0])


class _Chunk(Mapping[str, Ints]):
    """Consecutive rows of a group."""

    def __init__(self, group: _Group, names: tuple[str, ...], rows: slice) -> None:
        self._group, self._names, self._slice = group, names, rows

    def __getitem__(self, name: str) -> Ints:
        column = self._group.column(name)  # an error that names the file, if it lacks the column
        if name not in self._names:
            raise KeyError(name)
        return column[self._slice]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.unify_dictionaries().chunks)


def _int64s(column: pa.Array | pa.ChunkedArray) -> Ints:
    filled = column.fill_null(ABSENT) if column.null_count else column
    return checked.numbers(filled).astype(np.int64, copy=False)


def _statuses(names: pa.Array, warm_up: pa.Array) -> Ints:
    if not isinstance(names, pa.DictionaryArray):
        names = names.dictionary_encode()
    if names.null_count or warm_up.null_count:
        raise ValueError("a row has no status")
    codes = np.array([STATUS_NAMES.index(name) for name in names.dictionary.to_pylist()], dtype=np.int64)
    statuses: Ints = codes[_int64s(names.indices)]
    flags = _int64s(warm_up.cast(pa.int8()))
    return statuses | flags * WARM_UP_FLAG if flags.any() else statuses
