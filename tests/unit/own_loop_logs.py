"""Scripted logs of programs that record their own loops with librtmeter, and the lock that such a program
holds."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from log_frames import header
from numpy.typing import NDArray
from sample_logs import Piece, joined, json_frame, row_frame

from rtmeter.measure import own_loop

NAMES = ("release_ns", "wake_ns", "done_ns", "free_ns", "status")
T, WARM_UP, ABSENT = 1_000_000, 10, -(2**63)


def rows(first: int, count: int) -> NDArray[np.int64]:
    """Each release done some 100 us after it; number 500 of each thousand misses 1 ms, by 500 us and k ns."""
    k = np.arange(first, first + count)
    done = np.where(k % 1000 == 500, 1_500_000 + k, 100_000 + k * 7919 % 977)
    status = np.where(k < WARM_UP, 129, 1)
    return np.stack((k * T, k * T + 40_000, k * T + done, np.full(count, ABSENT), status))


def log_of(first: int, *frames: NDArray[np.int64], ended: bool = True, **more: Any) -> bytes:
    config = {"loop": "arm", "period_ns": T, "deadline_ns": T, "miss_ratio": 0.01, "warm_up": WARM_UP}
    about = header(
        measurement="own_loop",
        columns=[{"name": name, "unit": "ns"} for name in NAMES],
        warm_up=WARM_UP,
        config=config,
        adapter={"name": "own"},
        clock={"id": "CLOCK_MONOTONIC", "anchors": {"realtime_ns": 1_700_000_000_000_000_000}},
        first_row=first,
        **more,
    )
    pieces = [json_frame(b"H", first, about)] * 2
    at = first
    for values in frames:
        k = int(values[0][0]) // T
        pieces.append(row_frame(k, values))
        at = k + values.shape[1]
    if ended:
        pieces.append(json_frame(b"E", at, {"outcome": "complete", "counters": {"overflow": 0}}))
    return joined([Piece(piece.data) for piece in pieces])


def start(folder: Path, *logs: tuple[int, bytes], name: str = "20261101T000000Z") -> Path:
    loop = folder / "arm" / f"{name}.loop"
    loop.mkdir(parents=True)
    for first, content in logs:
        (loop / f"whole-{first:015}.rtlog").write_bytes(content)
    return loop


def locked(loop: Path) -> int:
    """The lock of a program that records into the folder."""
    lock = os.open(loop.parent / own_loop.LOCK, os.O_RDWR | os.O_CREAT)
    os.write(lock, loop.name.encode())
    fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return lock
