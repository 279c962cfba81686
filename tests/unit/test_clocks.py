"""The clocks of two logs: the same one, another by an offset, or one that cannot be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_frames import header
from numpy.typing import NDArray
from sample_logs import joined, json_frame, row_frame

from rtmeter.measure.clocks import compare
from rtmeter.model import ABSENT

Ints = NDArray[np.int64]
MS = 1_000_000
CLIENT = ("release_ns", "sent_ns", "received_ns", "late_ns", "status")
SERVER = ("sequence", "server_received_ns", "server_sent_ns", "status")
HERE = {"boot_id": "here", "time_namespace": "1"}
THERE = {"boot_id": "there", "time_namespace": "1"}


def log(path: Path, role: str, names: tuple[str, ...], values: Ints, machine: dict[str, str]) -> Path:
    """A round trip's log; ``values``: shape (columns, rows)."""
    columns = [{"name": name, "unit": "ns"} for name in names]
    about: dict[str, Any] = {"measurement": "roundtrip", "role": role, "columns": columns, "warm_up": 0}
    start = [json_frame(b"H", 0, header(**about, machine=machine))] * 2
    end = json_frame(b"E", values.shape[1], {"outcome": "complete"})
    path.write_bytes(joined([*start, row_frame(0, values), end]))
    return path


def logs(folder: Path, ahead_ns: Ints, there: dict[str, str]) -> tuple[Path, Path]:
    """200 round trips of 100 us, the server's clock ahead by that much at each."""
    k = np.arange(200)
    sent = 10**12 + k * 10 * MS
    zero = np.zeros_like(k)
    client = np.stack((sent, sent, sent + 100_000, zero + ABSENT, zero + 1))
    server = np.stack((k, sent + 40_000 + ahead_ns, sent + 60_000 + ahead_ns, zero + 1))
    return (
        log(folder / "client.rtlog", "client", CLIENT, client, HERE),
        log(folder / "server.rtlog", "server", SERVER, server, there),
    )


def test_one_machine_has_one_clock(tmp_path: Path) -> None:
    clocks = compare(*logs(tmp_path, np.zeros(200, np.int64), HERE))
    assert clocks.same
    assert clocks.doubts() == []


def test_a_steady_offset_is_told_with_its_error(tmp_path: Path) -> None:
    clocks = compare(*logs(tmp_path, np.full(200, 7 * MS), THERE))
    assert clocks.offset is not None
    assert abs(clocks.offset.offset_ns - 7 * MS) <= clocks.offset.error_ns < 41_000
    assert [doubt.type for doubt in clocks.doubts()] == ["clock_offset"]


@pytest.mark.parametrize("step_ns", [-5 * MS, 5 * MS])
def test_a_clock_that_was_stepped_has_its_one_way_legs_refused(tmp_path: Path, step_ns: int) -> None:
    ahead = 7 * MS + step_ns * (np.arange(200) >= 100)
    clocks = compare(*logs(tmp_path, ahead, THERE))
    assert clocks.facts() == {"same_clock": False}
    assert [doubt.type for doubt in clocks.doubts()] == ["one_way_refused"]
    assert np.array_equal(clocks.to_client(np.arange(3)), [ABSENT] * 3)
