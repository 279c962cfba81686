"""The frames of sample logs, by the letter of spec/sample-log.md, in bytes."""

from __future__ import annotations

import json
import struct
from typing import Any

import google_crc32c

NAMES = ("release_ns", "wake_ns", "free_ns", "status")
HEAD_BYTES = 32


def head(kind: bytes, first: int, count: int, payload: bytes, payload_bytes: int | None = None) -> bytes:
    """A frame head with valid checksums, whatever it claims."""
    size = len(payload) if payload_bytes is None else payload_bytes
    body = struct.pack("<4sc3xQIII", b"RBF\x01", kind, first, count, size, google_crc32c.value(payload))
    return body + struct.pack("<I", google_crc32c.value(body))


def frame(kind: bytes, first: int, payload: bytes, count: int = 0) -> bytes:
    return head(kind, first, count, payload) + payload


def json_frame(kind: bytes, rows_before: int, content: object) -> bytes:
    return frame(kind, rows_before, json.dumps(content).encode())


def header(**changes: Any) -> dict[str, Any]:
    return {
        "format": "rtmeter-sample-log",
        "version": 1,
        "measurement": "wakeup",
        "mode": None,
        "role": "single",
        "columns": [{"name": name, "unit": "ns"} for name in NAMES],
        "warm_up": 3,
        "period_ns": 1_000_000,
    } | changes


def headers(**changes: Any) -> list[bytes]:
    return [json_frame(b"H", 0, header(**changes))] * 2
