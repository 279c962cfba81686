"""The kernel's stamps in the logs of a round trip: on the clock of all others afterwards, or not stated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from log_frames import header
from sample_logs import joined, json_frame, row_frame

from rtmeter.measure.probe.kernel_stamps import doubts, facts
from rtmeter.model import ABSENT
from rtmeter.samples import LogReader, write_parquet
from rtmeter.samples.meta import LogMeta

CLIENT = ("release_ns", "sent_ns", "received_ns", "free_ns")
CLIENT_STAMPS = ("kernel_sent_realtime_ns", "kernel_received_realtime_ns")
SERVER = ("sequence", "server_received_ns", "server_sent_ns")
SERVER_STAMPS = ("server_kernel_received_realtime_ns", "server_kernel_sent_realtime_ns")
AHEAD = 1_790_000_000 * 10**9
"""CLOCK_REALTIME less CLOCK_MONOTONIC."""


def log(path: Path, role: str, names: tuple[str, ...], rows: list[list[int]], stepped_ns: int = 0) -> Path:
    columns = [{"name": name, "unit": "ns"} for name in (*names, "status")]
    about = {"measurement": "roundtrip", "role": role, "columns": columns, "warm_up": 0}
    readings = [[1_000, 1_000 + AHEAD, 40], [9_000, 9_000 + AHEAD + stepped_ns, 60]]
    values = np.array([[*row, 1] for row in rows], dtype=np.int64).T.copy()
    clock = {"realtime_clock": {"id": "CLOCK_REALTIME", "readings": readings}}
    end = json_frame(b"E", len(rows), {"outcome": "complete", **clock})
    path.write_bytes(joined([json_frame(b"H", 0, header(**about))] * 2 + [row_frame(0, values), end]))
    return path


def logs(folder: Path, stepped_ns: int = 0) -> tuple[Path, Path]:
    """Two round trips; of the second the kernel did not tell when the ping was sent."""
    client = [
        [2_000, 2_010, 2_900, ABSENT, AHEAD + 2_020, AHEAD + 2_880],
        [4_000, 4_010, 4_900, ABSENT, ABSENT, AHEAD + 4_870],
    ]
    server = [
        [1, 4_400, 4_410, AHEAD + 4_300, AHEAD + 4_450],
        [0, 2_400, 2_410, AHEAD + 2_300, AHEAD + 2_450],
    ]
    return (
        log(folder / "client.rtlog", "client", CLIENT + CLIENT_STAMPS, client),
        log(folder / "server.rtlog", "server", SERVER + SERVER_STAMPS, server, stepped_ns),
    )


def stamps(path: Path) -> dict[str, list[int | None]]:
    table = pq.read_table(path).to_pydict()
    return {name: column for name, column in table.items() if "kernel" in name}


def test_both_ends_stamps_are_told_by_the_clock_of_the_others(tmp_path: Path) -> None:
    client, server = logs(tmp_path)
    write_parquet(
        client, tmp_path / "out", server, lambda stamps: np.where(stamps == ABSENT, ABSENT, stamps - 1)
    )
    assert stamps(tmp_path / "out") == {
        "kernel_sent_ns": [2_020, None],
        "kernel_received_ns": [2_880, 4_870],
        "server_kernel_sent_ns": [2_449, 4_449],  # of another host's clock: brought to the client's
        "server_kernel_received_ns": [2_299, 4_299],
    }
    found = facts(*(LogMeta.of(LogReader(log).meta, log) for log in (client, server)))
    assert found == {end: {"offset_ns": AHEAD, "error_ns": 21.0} for end in ("client", "server")}
    assert doubts(found) == []


def test_where_the_clock_was_set_no_stamp_of_that_end_is_stated(tmp_path: Path) -> None:
    client, server = logs(tmp_path, stepped_ns=1_000)
    write_parquet(client, tmp_path / "out", server)
    told = stamps(tmp_path / "out")
    assert told["kernel_received_ns"] == [2_880, 4_870]
    assert told["server_kernel_sent_ns"] == told["server_kernel_received_ns"] == [None, None]
    found = facts(*(LogMeta.of(LogReader(log).meta, log) for log in (client, server)))
    assert [(doubt.type, "of the server" in doubt.message) for doubt in doubts(found)] == [
        ("kernel_stamps_refused", True)
    ]


def test_without_the_servers_log_its_columns_are_empty(tmp_path: Path) -> None:
    client, _ = logs(tmp_path)
    write_parquet(client, tmp_path / "out")
    assert stamps(tmp_path / "out")["server_kernel_sent_ns"] == [None, None]
