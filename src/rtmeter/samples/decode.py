"""The payload of a row frame: zstd, byte planes, zig-zag coded deltas (spec/sample-log.md)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def decode_rows(payload: bytes, columns: int, rows: int) -> NDArray[np.int64] | None:
    """The values (columns x rows, int64) of a row frame's payload, or None if it holds anything else."""
    try:  # refuses a content that is shorter or longer than it should be
        raw = pa.decompress(payload, decompressed_size=columns * 8 * rows, codec="zstd")
    except (OSError, ValueError):
        return None
    planes = np.frombuffer(raw, np.uint8).reshape(columns, 8, rows)
    codes = np.ascontiguousarray(planes.transpose(0, 2, 1)).view("<u8")[:, :, 0]
    deltas = (codes >> 1).view(np.int64) ^ -(codes & 1).view(np.int64)
    return np.cumsum(deltas, axis=1, dtype=np.int64)
