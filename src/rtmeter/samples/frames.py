"""Frames of a sample log (spec/sample-log.md): finds every whole one, whatever lies between them."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import google_crc32c

MAGIC = b"\x89RTM\r\n\x1a\n"
VERSION = 1
FILE_HEAD_BYTES = 12
SYNC = b"RBF\x01"
HEAD_BYTES = 32
MAX_PAYLOAD_BYTES = 16 << 20
MAX_ROW_COUNT = 65_536

_HEAD = struct.Struct("<4sc3sQIII")  # without its own checksum, which follows
_CHECKSUM = struct.Struct("<I")
_FIRST_CHUNK_BYTES, _LAST_CHUNK_BYTES = 4 << 10, 1 << 20

_RESCAN_LIMIT = 8
"""Payloads whose checksum fails are searched for frames; at most so many times the file's size, which
real damage never needs, so that no file takes more than linear time."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame whose head can be trusted; ``at`` is its offset in the file."""

    at: int
    kind: str
    first_row: int
    row_count: int
    payload_bytes: int
    payload_crc32c: int

    @property
    def end(self) -> int:
        """Offset of what follows the frame."""
        return self.at + HEAD_BYTES + self.payload_bytes


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes ``at`` to ``end`` of the file (exclusive) that are no whole frame."""

    at: int
    end: int


def read_at(file: BinaryIO, at: int, size: int) -> bytes:
    """Up to ``size`` bytes from offset ``at``."""
    file.seek(at)
    return file.read(size)


def read_payload(file: BinaryIO, frame: Frame) -> bytes | None:
    """The frame's payload, or None if its checksum does not hold or the file ends before it does."""
    payload = read_at(file, frame.at + HEAD_BYTES, frame.payload_bytes)
    whole = len(payload) == frame.payload_bytes and google_crc32c.value(payload) == frame.payload_crc32c
    return payload if whole else None


def parse_head(head: bytes, at: int) -> Frame | None:
    """The frame that these 32 bytes from offset ``at`` begin, if they can be trusted."""
    if len(head) < HEAD_BYTES or not head.startswith(SYNC):
        return None
    if google_crc32c.value(head[: _HEAD.size]) != _CHECKSUM.unpack_from(head, _HEAD.size)[0]:
        return None
    _, kind, _, first_row, row_count, payload_bytes, payload_crc32c = _HEAD.unpack_from(head)
    possible = (
        kind in (b"H", b"R", b"J", b"E")
        and (row_count > 0) == (kind == b"R")
        and row_count <= MAX_ROW_COUNT
        and payload_bytes <= MAX_PAYLOAD_BYTES
        and first_row + row_count < 2**63
    )
    if not possible:
        return None
    return Frame(at, kind.decode(), first_row, row_count, payload_bytes, payload_crc32c)


def next_head(file: BinaryIO, at: int, size: int) -> int:
    """Offset of the first trustworthy head at or after ``at``, or ``size``."""
    chunk_bytes = _FIRST_CHUNK_BYTES
    while (at := _data_from(file, at, size)) + HEAD_BYTES <= size:
        chunk = read_at(file, at, min(chunk_bytes, size - at))
        found = chunk.find(SYNC)
        while 0 <= found <= len(chunk) - HEAD_BYTES:
            if parse_head(chunk[found : found + HEAD_BYTES], at + found):
                return at + found
            found = chunk.find(SYNC, found + 1)
        if len(chunk) < HEAD_BYTES:  # the file became shorter meanwhile
            break
        at += len(chunk) - HEAD_BYTES + 1
        chunk_bytes = min(2 * chunk_bytes, _LAST_CHUNK_BYTES)
    return size


def _data_from(file: BinaryIO, at: int, size: int) -> int:
    """The first offset from ``at`` on that is in no hole of the file, or ``size``: a hole reads as zeros, of
    which no head begins."""
    try:
        return file.seek(at, os.SEEK_DATA)
    except ValueError:  # it is in memory
        return at
    except OSError as error:
        return size if error.errno == errno.ENXIO else at


def scan(file: BinaryIO, start: int, size: int) -> Iterator[tuple[Frame, bytes] | Damage]:
    """Every whole frame with its payload, and the damaged bytes between them, in the file's order."""
    at = start
    rescan_bytes = _RESCAN_LIMIT * size
    while at < size:
        frame = parse_head(read_at(file, at, HEAD_BYTES), at)
        payload = read_payload(file, frame) if frame and frame.end <= size else None
        if frame and payload is not None:
            yield frame, payload
            at = frame.end
            continue
        resume = at + 1
        if frame and frame.end <= size:
            rescan_bytes -= frame.payload_bytes
            resume = resume if rescan_bytes > 0 else frame.end
        end = next_head(file, resume, size)
        yield Damage(at, end)
        at = end
