"""The payload of a row frame: zstd, byte planes, zig-zag coded deltas (spec/sample-log.md)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def decode_rows(payload: bytes, columns: int, rows: int) -> NDArray[np.int64] | None:
    """The values (columns x rows, int64) of a row frame's payload, or None if it holds anything else."""
    size = columns * 8 * rows
    if _content_bytes(payload) != size:
        return None
    try:
        raw = pa.decompress(payload, decompressed_size=size, codec="zstd")
    except (OSError, ValueError):
        return None
    planes = np.frombuffer(raw, np.uint8).reshape(columns, 8, rows)
    codes = np.ascontiguousarray(planes.transpose(0, 2, 1)).view("<u8")[:, :, 0]
    deltas = (codes >> 1).view(np.int64) ^ -(codes & 1).view(np.int64)
    return np.cumsum(deltas, axis=1, dtype=np.int64)


def _content_bytes(payload: bytes) -> int | None:
    """How long a zstd frame says that its content is (RFC 8878, 3.1.1.1); None if it does not."""
    if len(payload) < 6 or not payload.startswith(_ZSTD_MAGIC):
        return None
    descriptor = payload[4]
    single_segment = descriptor >> 5 & 1
    at = 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3]
    length = (single_segment, 2, 4, 8)[descriptor >> 6]
    field = payload[at : at + length]
    if length == 0 or len(field) < length:
        return None
    return int.from_bytes(field, "little") + (256 if length == 2 else 0)
