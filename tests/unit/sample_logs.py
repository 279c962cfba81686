"""Builds sample logs for the tests by the letter of spec/sample-log.md, whole or hostile."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import log_frames
import numpy as np
import pyarrow as pa
from log_frames import frame, header
from numpy.typing import NDArray

FILE_HEAD = b"\x89RTM\r\n\x1a\n" + struct.pack("<I", 1)


@dataclass(frozen=True)
class Piece:
    """A frame's bytes and the rows it holds (none unless it is a row frame)."""

    data: bytes
    first: int = 0
    values: NDArray[np.int64] | None = None  # columns x rows


def json_frame(kind: bytes, rows_before: int, content: object) -> Piece:
    return Piece(log_frames.json_frame(kind, rows_before, content))


def planes(values: NDArray[np.int64]) -> bytes:
    """The byte planes of values (columns x rows), not yet compressed."""
    deltas = np.diff(values, axis=1, prepend=0)
    codes = (deltas << 1) ^ (deltas >> 63)
    return np.ascontiguousarray(codes.view(np.uint8).reshape(*values.shape, 8).transpose(0, 2, 1)).tobytes()


def compress(raw: bytes) -> bytes:
    return pa.compress(raw, codec="zstd", asbytes=True)


def row_frame(first: int, values: NDArray[np.int64]) -> Piece:
    return Piece(frame(b"R", first, compress(planes(values)), values.shape[1]), first, values)


def headers(**changes: Any) -> list[Piece]:
    return [json_frame(b"H", 0, header(**changes))] * 2


def wakeup_rows(first: int, count: int, seed: int = 0) -> NDArray[np.int64]:
    """Plausible rows of a wakeup log that tell their k."""
    k = np.arange(first, first + count)
    late = np.random.default_rng((seed, first)).lognormal(11, 0.25, count).astype(np.int64)
    absent = np.full(count, -(2**63))
    status = np.where(k < 3, 129, 1)
    return np.stack((k * 1_000_000, k * 1_000_000 + late, absent, status))


def wakeup_log(counts: list[int], ended: bool = True) -> list[Piece]:
    """A whole log: headers, an update, row frames of the given counts, another update between, the end."""
    pieces = [*headers(), json_frame(b"J", 0, {"effective": {"policy": "fifo"}})]
    row = 0
    for number, count in enumerate(counts):
        pieces.append(row_frame(row, wakeup_rows(row, count)))
        row += count
        if number == len(counts) // 2:
            pieces.append(json_frame(b"J", row, {"counters": {"overflow": 0}}))
    if ended:
        pieces.append(json_frame(b"E", row, {"outcome": "complete"}))
    return pieces


def joined(pieces: list[Piece], start: bytes = FILE_HEAD) -> bytes:
    return start + b"".join(piece.data for piece in pieces)
