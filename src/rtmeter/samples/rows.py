"""samples.parquet as chunks of columns in the order of k, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rtmeter.errors import RtmeterError
from rtmeter.model import ABSENT, STATUS_NAMES, WARM_UP_FLAG
from rtmeter.statistics.quantities import Columns, Ints

_CHUNK_ROWS = 1 << 17


class Samples:
    """A samples.parquet (spec/results.md). What cannot be read raises RtmeterError naming the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._reading():
            self._file = pq.ParquetFile(path)
            self.rows: int = self._file.metadata.num_rows
            self.columns = frozenset(self._file.schema_arrow.names)

    def chunks(self, *columns: str) -> Iterator[Columns]:
        """All rows: ``k``, ``status`` (codes of the sample log, warm-up flag included) and those columns,
        int64 arrays, ABSENT where there is no value."""
        wanted = dict.fromkeys(("k", *columns))
        with self._reading():
            for batch in self._file.iter_batches(_CHUNK_ROWS, columns=[*wanted, "status", "warm_up"]):
                chunk = {name: _int64s(batch.column(name)) for name in wanted}
                chunk["status"] = _statuses(batch.column("status"), batch.column("warm_up"))
                yield chunk

    def k_range(self) -> tuple[int, int]:
        """First and last k of the file, which has at least one row."""
        with self._reading():
            groups = (0, self._file.num_row_groups - 1)
            first, last = (self._file.read_row_group(group, ["k"]).column("k") for group in groups)
            return first[0].as_py(), last[-1].as_py()

    def at(self, k: Ints, column: str) -> Ints:
        """A column's values in the rows with those k (ascending, shape (n,)), ABSENT where there is none."""
        with self._reading():
            chosen = pc.field("k").isin(k)
            rows = pq.read_table(self._path, columns=["k", column], filters=chosen, partitioning=None)
        values = np.full(len(k), ABSENT)
        values[np.searchsorted(k, _int64s(rows.column("k")))] = _int64s(rows.column(column))
        return values

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            message = f"the samples cannot be read: {str(error).splitlines()[0]}"
            remedy = "convert the cell's probe.rtlog again (rtmeter recover), or measure the cell again"
            raise RtmeterError(message, where=str(self._path), remedy=remedy) from error


def _int64s(array: pa.Array | pa.ChunkedArray) -> Ints:
    if array.null_count:
        array = array.fill_null(ABSENT)
    values: Ints = array.to_numpy().astype(np.int64, copy=False)
    return values


def _statuses(names: pa.Array, warm_up: pa.Array) -> Ints:
    if not isinstance(names, pa.DictionaryArray):
        names = names.dictionary_encode()
    codes = np.array([STATUS_NAMES.index(name) for name in names.dictionary.to_pylist()], dtype=np.int64)
    statuses: Ints = codes[names.indices.to_numpy(zero_copy_only=False)]
    flags = warm_up.to_numpy(zero_copy_only=False)
    return statuses | flags * np.int64(WARM_UP_FLAG) if flags.any() else statuses
