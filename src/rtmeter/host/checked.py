"""Files whose bytes are as they were written, or an error is raised.

Parquet's pages carry checksums, which take 0.1 % of a file and next to no time. Of a file without any, of
another tool or an older rtmeter, whatever can be decoded is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rtmeter.host.files import open_file

_BATCH_ROWS = 1 << 17

DAMAGED = (OSError, pa.ArrowException, ValueError, IndexError, OverflowError)
"""What reading a damaged file raises."""


def writer(out: Path | pa.BufferOutputStream, schema: pa.Schema, **more: Any) -> pq.ParquetWriter:
    """A file that is written piece by piece, compressed by zstd; ``more`` as pq.ParquetWriter takes it."""
    return pq.ParquetWriter(out, schema, compression="zstd", write_page_checksum=True, **more)


def write(table: pa.Table, out: Path) -> None:
    """Writes a whole file."""
    with writer(out, table.schema) as file:
        file.write_table(table)


def opened(source: Path | pa.BufferReader, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """A file to be read. Raises one of DAMAGED, as reading it does; no pipe is waited for."""
    if isinstance(source, Path):
        open_file(source).close()
    return pq.ParquetFile(source, metadata=metadata, page_checksum_verification=True)


def read(path: Path) -> pa.Table:
    """A whole file."""
    with opened(path) as file:
        return file.read()


def look_through(path: Path) -> None:
    """Looks at every page of a file. Raises one of DAMAGED."""
    with opened(path) as file:
        for _ in file.iter_batches(_BATCH_ROWS):
            pass


def read_where(path: Path, columns: Sequence[str], chosen: Any) -> pa.Table:
    """These columns of the rows that a filter lets through. It imports pandas, where that is installed."""
    return pq.read_table(
        path, columns=list(columns), filters=chosen, partitioning=None, page_checksum_verification=True
    )


def numbers(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """A column of numbers, shape (rows,), not to be written to; NaN where one is missing."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    # to_numpy() would import pandas, which takes longer than most commands
    return whole.to_numpy(zero_copy_only=False) if whole.null_count else np.from_dlpack(whole)


def crc32c_of(file: Path) -> int:
    """Of all its bytes. Raises OSError."""
    found = 0
    with open_file(file) as stream:
        while piece := stream.read(1 << 20):
            found = google_crc32c.extend(found, piece)
    return found
