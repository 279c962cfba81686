"""Sample logs become samples.parquet as spec/results.md says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_logs import FILE_HEAD, Piece, headers, joined, json_frame, row_frame, wakeup_log, wakeup_rows

from memory import PEAK_KIB
from rtmeter.errors import RtmeterError
from rtmeter.model import ABSENT, STATUS_NAMES
from rtmeter.samples import join, parquet, write_parquet

GOLDEN = Path(__file__).parents[2] / "spec" / "golden"
MEASUREMENTS = ["wakeup", "one-shot", "periodic", "client", "server", "cycle", "extremes", "torn", "flipped"]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "samples.parquet"


def log_file(tmp_path: Path, pieces: list[Piece], name: str = "probe.rtlog") -> Path:
    path = tmp_path / name
    path.write_bytes(joined(pieces))
    return path


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_golden_logs(name: str, out: Path) -> None:
    expected = json.loads((GOLDEN / f"{name}.json").read_text())
    recovery = write_parquet(GOLDEN / f"{name}.rtlog", out)
    assert recovery.rows == len(expected["k"])
    assert recovery.missing == expected["missing"]
    assert recovery.meta == expected["meta"]
    table = pq.read_table(out)
    columns = table.to_pydict()
    assert columns.pop("k") == expected["k"]
    status = expected["columns"].pop("status")
    assert columns.pop("status") == [STATUS_NAMES[code & 15] for code in status]
    assert columns.pop("warm_up") == [code >= 128 for code in status]
    if name == "client":
        empty = [None] * len(status)
        expected["columns"] |= {"server_received_ns": empty, "server_sent_ns": empty}
    assert columns == expected["columns"]
    assert table.schema.names == ["k", *expected["columns"], "status", "warm_up"]
    for field in table.schema:
        kinds = {"status": pa.dictionary(pa.int32(), pa.string()), "warm_up": pa.bool_()}
        assert field.type in (kinds.get(field.name, pa.int64()), pa.dictionary(pa.int8(), pa.string())), field
    meta = expected["meta"]
    assert json.loads(table.schema.metadata[b"rtmeter"]) == {
        "format": "rtmeter-samples",
        "version": 1,
        "measurement": meta["measurement"],
        "mode": meta["mode"],
        "period_ns": meta["period_ns"],
        "warm_up": meta["warm_up"],
    }


def test_joins_the_servers_stamps_by_sequence(out: Path) -> None:
    recovery = write_parquet(GOLDEN / "client.rtlog", out, GOLDEN / "server.rtlog")
    server = json.loads((GOLDEN / "server.json").read_text())["columns"]
    received, sent = server["server_received_ns"], server["server_sent_ns"]
    table = pq.read_table(out).to_pydict()
    assert server["sequence"] == [1, 0, 4, 4, 9]
    assert table["server_received_ns"] == [received[1], received[0], None, None, received[2]]
    assert table["server_sent_ns"] == [sent[1], sent[0], None, None, sent[2]]
    assert recovery.problems == ["server's log: 1 rows belong to no row of the client's log"]


SERVER_COLUMNS = [{"name": name} for name in ("sequence", "server_received_ns", "server_sent_ns", "status")]


def server_log(tmp_path: Path, sequences: list[list[int]], **changes: Any) -> Path:
    """A server's log with one frame for each list; the stamps tell the row."""
    pieces = headers(**{"measurement": "roundtrip", "role": "server", "columns": SERVER_COLUMNS} | changes)
    row = 0
    for sequence in sequences:
        received = np.arange(row, row + len(sequence)) * 10
        pieces.append(row_frame(row, np.stack((sequence, received, received + 1, np.ones_like(received)))))
        row += len(sequence)
    return log_file(tmp_path, [*pieces, json_frame(b"E", row, {})], "server.rtlog")


CLIENT = headers(measurement="roundtrip", role="client")


def client_log(tmp_path: Path, counts: list[int]) -> Path:
    pieces, row = list(CLIENT), 0
    for count in counts:
        pieces.append(row_frame(row, wakeup_rows(row, count)))
        row += count
    return log_file(tmp_path, [*pieces, json_frame(b"E", row, {})])


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=6),
    st.lists(st.lists(st.integers(-1, 45), min_size=1, max_size=10), max_size=6),
    st.integers(1, 12),
)
def test_joins_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], sequences: list[list[int]], group: int
) -> None:
    tmp_path = tmp_path_factory.mktemp("join")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROW_GROUP_ROWS", group)
        recovery = write_parquet(
            client_log(tmp_path, counts), tmp_path / "out", server_log(tmp_path, sequences)
        )
    first_received: dict[int, int] = {}
    for row, sequence in enumerate(s for frame in sequences for s in frame):
        first_received.setdefault(sequence, 10 * row)
    rows = sum(counts)
    table = pq.read_table(tmp_path / "out").to_pydict()
    assert table["k"] == list(range(rows))
    assert table["server_received_ns"] == [first_received.get(k) for k in range(rows)]
    assert table["server_sent_ns"] == [
        None if (at := first_received.get(k)) is None else at + 1 for k in range(rows)
    ]
    unmatched = sum(not 0 <= s < rows for frame in sequences for s in frame)
    assert recovery.problems == (
        [f"server's log: {unmatched} rows belong to no row of the client's log"] if unmatched else []
    )


def test_bounds_how_far_a_servers_log_may_be_out_of_order(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join, "MAX_PENDING_ROWS", 3)
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 1)
    ordered = server_log(tmp_path, [[0, 1, 2], [3, 4, 5], [6, 7]])
    assert write_parquet(client_log(tmp_path, [4, 4]), out, ordered).problems == []
    disordered = server_log(tmp_path, [[5, 6, 7], [1, 2, 3], [0, 4]])
    out.unlink()
    with pytest.raises(RtmeterError, match="out of order"):
        write_parquet(client_log(tmp_path, [4, 4]), out, disordered)
    assert not out.exists()


def test_tells_what_the_servers_log_lost(tmp_path: Path, out: Path) -> None:
    path = server_log(tmp_path, [[0, 1], [2, 3]])
    path.write_bytes(path.read_bytes()[:-40])
    problems = write_parquet(client_log(tmp_path, [4]), out, path).problems
    assert problems and all(problem.startswith("server's log: ") for problem in problems)
    assert problems[-1] == "server's log: rows from 2 on are missing"
    assert pq.read_table(out)["server_received_ns"].to_pylist() == [0, 10, None, None]


def test_refuses_a_server_log_that_is_none(tmp_path: Path, out: Path) -> None:
    client = client_log(tmp_path, [4])
    for path in (client, server_log(tmp_path, [[0]], role="client")):
        with pytest.raises(RtmeterError, match="not the log of a server"):
            write_parquet(client, out, path)
    assert not out.exists()


def test_leaves_an_unknown_status_empty_and_says_so(tmp_path: Path, out: Path) -> None:
    rows = wakeup_rows(0, 5)
    rows[3] = [1, 4, 1 + 64, 128 + 3, ABSENT]
    recovery = write_parquet(
        log_file(tmp_path, [*headers(), row_frame(0, rows), json_frame(b"E", 5, {})]), out
    )
    table = pq.read_table(out).to_pydict()
    assert table["status"] == ["served", None, None, "lost", None]
    assert table["warm_up"] == [False, False, False, True, False]
    assert len(recovery.problems) == 1 and recovery.problems[0].startswith("3 rows have a status")


def test_rows_that_damage_took_are_absent_and_k_tells_which(tmp_path: Path, out: Path) -> None:
    log = wakeup_log([10, 10, 10])
    rows = [number for number, piece in enumerate(log) if piece.values is not None]
    del log[rows[1]]
    recovery = write_parquet(log_file(tmp_path, log), out)
    assert pq.read_table(out)["k"].to_pylist() == [*range(10), *range(20, 30)]
    assert recovery.missing == [[10, 19]]


def test_a_log_without_rows_makes_an_empty_table(tmp_path: Path, out: Path) -> None:
    recovery = write_parquet(log_file(tmp_path, [*headers(), json_frame(b"E", 0, {})]), out)
    assert (recovery.rows, recovery.missing) == (0, [])
    assert pq.read_table(out).num_rows == 0


def test_replaces_the_file_whole_or_not_at_all(tmp_path: Path, out: Path) -> None:
    log = log_file(tmp_path, wakeup_log([10]))
    nowhere = tmp_path / "no" / "directory.parquet"
    with pytest.raises(RtmeterError, match="cannot be written") as caught:
        write_parquet(log, nowhere)
    assert caught.value.where == str(nowhere)
    out.write_bytes(b"old")
    write_parquet(log, out)
    assert pq.read_table(out).num_rows == 10
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(RtmeterError, match="cannot be written"):
        write_parquet(log, folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "probe.rtlog", "samples.parquet"]


def test_keeps_what_is_whole(out: Path) -> None:
    recovery = write_parquet(GOLDEN / "torn.rtlog", out)
    expected = json.loads((GOLDEN / "torn.json").read_text())
    assert (recovery.rows, recovery.missing, recovery.meta) == (7, [[7, None]], expected["meta"])
    assert recovery.problems[-1] == "no end frame: the log is cut after row 6"
    assert pq.read_table(out)["k"].to_pylist() == list(range(7))


def test_a_log_of_a_later_version_is_refused(out: Path) -> None:
    with pytest.raises(RtmeterError, match="version 2"):
        write_parquet(GOLDEN / "future.rtlog", out)


def test_takes_the_same_memory_for_a_long_log(tmp_path: Path, sized: Callable[..., int]) -> None:
    """A log of half-second frames: the memory is that of a row group, not of the log."""
    frames = sized("frames of half a second at 1 kHz", reduced=10_000, full=172_800)
    with (tmp_path / "long.rtlog").open("wb") as file:
        file.write(FILE_HEAD + b"".join(piece.data for piece in headers()))
        for number in range(frames):
            file.write(row_frame(500 * number, wakeup_rows(500 * number, 500)).data)
        file.write(json_frame(b"E", 500 * frames, {}).data)
    code = f"""
import sys
from rtmeter.samples import write_parquet
{PEAK_KIB}
recovery = write_parquet(sys.argv[1], sys.argv[2])
print(recovery.rows, recovery.missing, peak_kib())
"""
    command = [sys.executable, "-c", code, tmp_path / "long.rtlog", tmp_path / "out"]
    rows, missing, peak_kib = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.split()
    assert (int(rows), missing) == (500 * frames, "[]")
    assert int(peak_kib) < 512 << 10
