"""Logs that lie: every size is bounded before memory is taken, every search before time is."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import google_crc32c
import numpy as np
import pytest
from log_frames import frame, head, header
from sample_logs import (
    FILE_HEAD,
    Piece,
    compress,
    headers,
    joined,
    json_frame,
    planes,
    row_frame,
    wakeup_log,
    wakeup_rows,
)

from memory import PEAK_KIB
from rtmeter.errors import RtmeterError
from rtmeter.samples import LogReader, frames, read_log
from rtmeter.samples.frames import read_at

GOOD = row_frame(0, wakeup_rows(0, 10))


def reader_of(tmp_path: Path, data: bytes) -> LogReader:
    path = tmp_path / "log.rtlog"
    path.write_bytes(data)
    return LogReader(path)


def rows_read(reader: LogReader) -> list[int]:
    return [first + i for first, columns in reader.frames() for i in range(len(columns["status"]))]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\x89RTM", "no sample log"),
        (b"PAR1" + bytes(10_000), "no sample log"),
        (FILE_HEAD[:8] + struct.pack("<I", 2), "version 2"),
        (FILE_HEAD[:8] + bytes(4) + joined(wakeup_log([5]))[12:], "version 0"),
        (FILE_HEAD, "header"),
        (FILE_HEAD + GOOD.data, "header"),
    ],
)
def test_refuses_what_is_no_log(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(RtmeterError, match=message) as caught:
        reader_of(tmp_path, data)
    assert caught.value.where and caught.value.remedy


def test_refuses_what_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere.rtlog"):
        with pytest.raises(RtmeterError, match="cannot be read"):
            LogReader(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "something-else"},
        {"version": 2},
        {"columns": None},
        {"columns": []},
        {"columns": [{"name": "status"}] * 2},
        {"columns": [{"name": f"c{i}"} for i in range(64)] + [{"name": "status"}]},
        {"columns": [{"name": "wake_ns"}]},
        {"columns": [{"name": "k"}, {"name": "status"}]},
        {"columns": [{"name": "\ud800"}, {"name": "status"}]},
        {"columns": ["wake_ns", "status"]},
        {"columns": [{"name": 1}, {"name": "status"}]},
    ],
)
def test_refuses_a_header_that_rows_cannot_be_read_by(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(RtmeterError, match="header"):
        reader_of(tmp_path, joined([*headers(**changes), GOOD]))


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[]", b"\xff", b"[" * 1_000_000, b'{"a":' * 100_000, b"9" * 5000]
)
def test_reports_what_is_no_json_object(tmp_path: Path, payload: bytes) -> None:
    spoilt = [Piece(frame(b"H", 0, payload)), *headers()[:1], Piece(frame(b"J", 0, payload)), GOOD]
    reader = reader_of(tmp_path, joined([*spoilt, json_frame(b"E", 10, {})]))
    assert rows_read(reader) == list(range(10))
    assert [problem.split()[1] for problem in reader.problems] == ["'H'", "'J'"]
    with pytest.raises(RtmeterError, match="header"):
        reader_of(tmp_path, joined([Piece(frame(b"H", 0, payload)), GOOD]))


@pytest.mark.parametrize(
    "bad",
    [
        head(b"R", 10, 2**32 - 1, b""),
        head(b"R", 10, 65_537, b""),
        head(b"R", 10, 0, b""),
        head(b"J", 10, 1, b""),
        head(b"X", 10, 0, b""),
        head(b"R", 2**63 - 1, 1, b""),
        head(b"R", 2**64 - 1, 1, b""),
        head(b"R", 10, 5, b"", payload_bytes=2**32 - 1),
        head(b"R", 10, 5, b"", payload_bytes=16 << 20),
        head(b"R", 10, 5, b"x"),
    ],
)
def test_passes_over_a_head_that_claims_the_impossible(tmp_path: Path, bad: bytes) -> None:
    after = row_frame(15, wakeup_rows(15, 5))
    pieces = [*headers(), GOOD, Piece(bad), after, json_frame(b"E", 20, {})]
    reader = reader_of(tmp_path, joined(pieces))
    assert rows_read(reader) == [*range(10), *range(15, 20)]
    assert reader.missing == [[10, 14]]
    assert len(reader.problems) == 1 and "damaged" in reader.problems[0]


def lying(content: bytes, claimed: int) -> bytes:
    """A zstd frame that claims another content size (of four bytes) than it has."""
    payload = compress(content)
    assert payload[4] >> 6 == 2, "the content size has four bytes"
    at = 5 + (0 if payload[4] & 0x20 else 1)
    return payload[:at] + struct.pack("<I", claimed) + payload[at + 4 :]


ROWS = 65_536
ZEROS = bytes(256 << 20)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(lambda: compress(ZEROS), id="bomb that says its size"),
        pytest.param(lambda: lying(ZEROS, 4 * 8 * ROWS), id="bomb that does not"),
        pytest.param(lambda: lying(bytes(1 << 20), 4 * 8 * ROWS), id="less than it says"),
        pytest.param(lambda: compress(bytes(4 * 8 * ROWS - 1)), id="a byte too few"),
        pytest.param(lambda: compress(bytes(4 * 8 * ROWS))[:-1], id="cut"),
        pytest.param(lambda: compress(bytes(4 * 8 * ROWS)) + compress(b"more"), id="two frames"),
        pytest.param(lambda: bytes(4 * 8 * ROWS), id="not compressed"),
        pytest.param(lambda: b"", id="nothing"),
        pytest.param(lambda: b"\x28\xb5\x2f\xfd", id="magic only"),
        pytest.param(lambda: b"\x28\xb5\x2f\xfd\xe0\x00", id="cut in its head"),
        pytest.param(lambda: b"\x28\xb5\x2f\xfd\x00\x58\x01\x00\x00", id="no size"),
    ],
)
def test_reports_rows_whose_payload_lies(tmp_path: Path, payload: Callable[[], bytes]) -> None:
    bad = Piece(frame(b"R", 10, payload(), ROWS))
    after = row_frame(10 + ROWS, wakeup_rows(10 + ROWS, 5))
    reader = reader_of(tmp_path, joined([*headers(), GOOD, bad, after, json_frame(b"E", ROWS + 15, {})]))
    for _ in range(2):  # the same is told however often it is read
        assert rows_read(reader) == [*range(10), *range(10 + ROWS, 15 + ROWS)]
        assert reader.missing == [[10, 9 + ROWS]]
        assert reader.problems == [
            f"rows 10 to {9 + ROWS} at byte {len(joined([*headers(), GOOD]))} cannot be decoded"
        ]


def test_takes_little_memory_for_hostile_files(tmp_path: Path) -> None:
    many = [Piece(frame(b"R", 10 + i * ROWS, lying(ZEROS, 4 * 8 * ROWS), ROWS)) for i in range(20)]
    path = tmp_path / "hostile.rtlog"
    path.write_bytes(joined([*headers(), GOOD, *many, json_frame(b"E", 2**63 - 1, {})]))
    code = f"""
import sys
from rtmeter.samples import LogReader
{PEAK_KIB}
before = peak_kib()
reader = LogReader(sys.argv[1])
rows = sum(len(columns["status"]) for _, columns in reader.frames())
grown = peak_kib() - before
print(rows, reader.missing, grown)
"""
    said = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    ).stdout
    rows, missing, grown_kib = (
        said.split(maxsplit=1)[0],
        said[said.index("[") : said.rindex("]") + 1],
        said.split()[-1],
    )
    assert (int(rows), json.loads(missing)) == (10, [[10, 2**63 - 2]])
    assert int(grown_kib) < 64 << 10


def test_believes_no_count_enough_to_allocate_it(tmp_path: Path) -> None:
    far = row_frame(2**62, wakeup_rows(2**40, 3))
    reader = reader_of(tmp_path, joined([*headers(), GOOD, far, json_frame(b"E", 2**63 - 2, {})]))
    assert reader.rows == 13
    assert reader.missing == [[10, 2**62 - 1], [2**62 + 3, 2**63 - 3]]
    assert read_log(reader.path).k.tolist() == [*range(10), 2**62, 2**62 + 1, 2**62 + 2]


def test_checks_each_byte_a_bounded_number_of_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads within heads within payloads, each good, each payload bad: naively quadratic."""
    checked = 0
    checksum = google_crc32c.value

    def counting(data: bytes) -> int:
        nonlocal checked
        checked += len(data)
        return int(checksum(data))

    heads = 20_000
    nest = b"".join(head(b"R", i, 1, b"", payload_bytes=32 * (heads - i - 1) + 1) for i in range(heads))
    monkeypatch.setattr(google_crc32c, "value", counting)
    reader = reader_of(tmp_path, joined([*headers(), Piece(nest + b"x"), GOOD, json_frame(b"E", 10, {})]))
    assert checked < 20 * len(nest)
    assert rows_read(reader) == list(range(10))


def test_says_at_most_a_hundred_problems_and_counts_the_others(tmp_path: Path) -> None:
    pieces = headers()
    for k in range(150):
        pieces += [Piece(b"junk"), row_frame(k, wakeup_rows(k, 1))]
    reader = reader_of(tmp_path, joined([*pieces, json_frame(b"E", 150, {})]))
    assert rows_read(reader) == list(range(150))
    assert len(reader.problems) == 101
    assert reader.problems[-1] == "and 50 more"


@pytest.mark.parametrize("around", [4 << 10, 12 << 10, 1 << 20])
def test_finds_the_next_frame_at_any_distance(tmp_path: Path, around: int) -> None:
    """Also where the search goes from one stretch of the file to the next within a head."""
    after = row_frame(10, wakeup_rows(10, 3))
    for distance in range(around - 40, around + 3):
        spoilt = Piece(b"RBF\x01" + bytes(distance))
        reader = reader_of(tmp_path, joined([*headers(), GOOD, spoilt, after, json_frame(b"E", 13, {})]))
        assert rows_read(reader) == list(range(13))
        assert len(reader.problems) == 1


def test_reads_a_log_without_its_magic(tmp_path: Path) -> None:
    whole = joined(wakeup_log([10, 10]))
    for data in (bytes(12) + whole[12:], whole[5:], b"xyz" + whole):
        reader = reader_of(tmp_path, data)
        assert rows_read(reader) == list(range(20))
        assert len(reader.problems) == 1 and "bytes 0 to" in reader.problems[0]


def test_gives_a_row_once_and_the_first_of_two(tmp_path: Path) -> None:
    other = wakeup_rows(0, 30, seed=1)
    first, second = row_frame(5, wakeup_rows(5, 10)), row_frame(0, other)
    reader = reader_of(tmp_path, joined([*headers(), first, second, json_frame(b"E", 30, {})]))
    log = read_log(reader.path)
    assert log.k.tolist() == list(range(30))
    expected = other.copy()
    expected[:, 5:15] = wakeup_rows(5, 10)
    np.testing.assert_array_equal(np.stack(list(log.columns.values())), expected)
    assert len(log.problems) == 1
    assert log.problems[0].startswith(
        f"rows 0 to 29 at byte {len(joined([*headers(), first]))} were there before"
    )
    assert log.missing == []


def test_merges_updates_in_the_order_of_the_file(tmp_path: Path) -> None:
    updates = [json_frame(b"J", 0, {"a": {"x": 1}, "b": 1}), json_frame(b"J", 0, {"a": {"y": 2}})]
    reader = reader_of(
        tmp_path, joined([*headers(), *updates, GOOD, json_frame(b"E", 10, {"b": 3, "warm_up": 4})])
    )
    assert reader.header == header()
    assert reader.meta == header() | {"a": {"y": 2}, "b": 3, "warm_up": 4}
    assert reader.ended


def test_the_planes_are_those_of_the_specification() -> None:
    """Keeps the tests' own encoder honest: the specification's words, spelt out."""
    values = np.array([[5, 7], [1, -1]])
    assert planes(values) == b"\x0a\x04" + bytes(14) + b"\x02\x03" + bytes(14)


@pytest.mark.parametrize("after", [True, False])
def test_a_hole_of_a_terabyte_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    path, log, size = tmp_path / "log.rtlog", wakeup_log([10], ended=False), 1 << 40
    last = row_frame(30, wakeup_rows(30, 5))
    with path.open("wb") as file:
        file.write(FILE_HEAD + b"".join(piece.data for piece in log))
        hole = file.tell()
        try:
            file.truncate(size)
        except OSError:
            pytest.skip("no file of a terabyte here")
        if after:
            file.seek(size)
            file.write(last.data)
    with path.open("rb") as file:
        if file.seek(hole, os.SEEK_HOLE) >= size:
            pytest.skip("this file system tells of no holes")
    read_bytes = 0

    def counted(file: BinaryIO, at: int, size: int) -> bytes:
        nonlocal read_bytes
        found = read_at(file, at, size)
        read_bytes += len(found)
        assert read_bytes < 16 << 20, "it reads the hole"
        return found

    monkeypatch.setattr(frames, "read_at", counted)
    reader = LogReader(path)
    assert rows_read(reader) == [*range(10), *(range(30, 35) if after else ())]
    assert any(str(hole) in problem for problem in reader.problems), "it is told as damage"
