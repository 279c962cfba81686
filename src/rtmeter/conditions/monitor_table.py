"""The rows of the monitor on their way to a Parquet file, in memory that does not grow while they come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rtmeter.host import checked
from rtmeter.samples.arrow import array

MonitorRow = dict[str, float | None]
"""Whole numbers under the names that end in _ns."""

ROWS_A_GROUP = 1000


class MonitorTable:
    """A Parquet file whose columns are those of the first row.

    A group of rows is kept, and the first row is a group of its own: what keeping and writing takes is taken
    as the run begins; Arrow's own import of pandas in mid-run is avoided (samples/arrow.py). What cannot be
    written (a full disk) is given up: ``broken`` then says why.
    """

    def __init__(self, path: Path) -> None:
        self.broken: str | None = None
        self.name, self._path = path.name, path
        self._columns: list[_Column] = []
        self._count = 0  # rows kept
        self._writer: pq.ParquetWriter | None = None

    def add(self, row: MonitorRow) -> None:
        """Keeps it, and writes the group if it is whole."""
        begins = not self._columns
        if begins:
            self._columns = [_Column(name) for name in row]
        for column in self._columns:
            column.put(self._count, row.get(column.name))
        self._count += 1
        if begins or self._count == ROWS_A_GROUP:
            self._flush()

    def close(self) -> None:
        """Writes what is kept, and the file's end."""
        self._flush()
        try:
            if self._writer is not None:
                self._writer.close()
        except OSError as error:
            self.broken = str(error)

    def _flush(self) -> None:
        count, self._count = self._count, 0
        if not count or self.broken is not None:
            return
        try:
            if self._writer is None:
                schema = pa.schema([(column.name, column.type) for column in self._columns])
                self._writer = checked.writer(self._path, schema)
            arrays = [column.array(count) for column in self._columns]
            self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._writer.schema))
        except OSError as error:
            self.broken = str(error)


class _Column:
    """Room for a group's values of one name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.type = pa.int64() if name.endswith("_ns") else pa.float64()
        self._values = np.ones(ROWS_A_GROUP, dtype=np.int64 if name.endswith("_ns") else np.float64)
        self._known = np.ones(ROWS_A_GROUP, dtype=np.bool_)

    def put(self, at: int, value: float | None) -> None:
        self._known[at] = value is not None
        self._values[at] = 0 if value is None else value

    def array(self, count: int) -> pa.Array:
        """The first of them; None is null."""
        return array(self.type, self._values[:count].copy(), ~self._known[:count])
