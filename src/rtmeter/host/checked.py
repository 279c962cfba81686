"""Files whose bytes are as they were written, or an error is raised.

Parquet's pages carry checksums, which take 0.1 % of a file and next to no time. Of a file without any, of
another tool or an older rtmeter, whatever can be decoded is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as pq

from rtmeter.host.files import open_file

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
    """A file to be read. Raises one of DAMAGED, as reading it does."""
    return pq.ParquetFile(source, metadata=metadata, page_checksum_verification=True)


def read(path: Path, columns: Sequence[str] | None = None, filters: Any = None) -> pa.Table:
    """A whole file, or these columns of the rows that the filter lets through."""
    names = None if columns is None else list(columns)
    return pq.read_table(
        path, columns=names, filters=filters, partitioning=None, page_checksum_verification=True
    )


def crc32c_of(file: Path) -> int:
    """Of all its bytes. Raises OSError."""
    found = 0
    with open_file(file) as stream:
        while piece := stream.read(1 << 20):
            found = google_crc32c.extend(found, piece)
    return found
