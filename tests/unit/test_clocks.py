"""The clocks of two logs: the same one, another by an offset, or one that cannot be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_frames import header
from numpy.typing import NDArray
from sample_logs import joined, json_frame, row_frame

from rtmeter.measure.probe.clocks import compare
from rtmeter.model import ABSENT
from rtmeter.samples.parquet import exchanges
from rtmeter.statistics.shared_clock import ConstantOffset

Ints = NDArray[np.int64]
MS = 1_000_000
CLIENT = ("release_ns", "sent_ns", "received_ns", "late_ns", "status")
SERVER = ("sequence", "server_received_ns", "server_sent_ns", "status")
HERE = {"boot_id": "here", "time_namespace": "1"}
THERE = {"boot_id": "there", "time_namespace": "1"}


Readings = list[list[int]]


def log(
    path: Path,
    role: str,
    names: tuple[str, ...],
    values: Ints,
    machine: dict[str, str],
    readings: Readings | None = None,
) -> Path:
    """A round trip's log; ``values``: shape (columns, rows); ``readings`` of a shared clock."""
    columns = [{"name": name, "unit": "ns"} for name in names]
    about: dict[str, Any] = {"measurement": "roundtrip", "role": role, "columns": columns, "warm_up": 0}
    start = [json_frame(b"H", 0, header(**about, machine=machine))] * 2
    shared = {"shared_clock": {"id": "CLOCK_TAI", "readings": readings}} if readings else {}
    end = json_frame(b"E", values.shape[1], {"outcome": "complete", **shared})
    path.write_bytes(joined([*start, row_frame(0, values), end]))
    return path


def logs(
    folder: Path,
    ahead_ns: Ints,
    there: dict[str, str],
    readings: tuple[Readings | None, Readings | None] = (None, None),
) -> tuple[Path, Path]:
    """200 round trips of 100 us, the server's clock ahead by that much at each."""
    k = np.arange(200)
    sent = 10**12 + k * 10 * MS
    zero = np.zeros_like(k)
    client = np.stack((sent, sent, sent + 100_000, zero + ABSENT, zero + 1))
    server = np.stack((k, sent + 40_000 + ahead_ns, sent + 60_000 + ahead_ns, zero + 1))
    return (
        log(folder / "client.rtlog", "client", CLIENT, client, HERE, readings[0]),
        log(folder / "server.rtlog", "server", SERVER, server, there, readings[1]),
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


FIRST, LAST = 10**12 - 100 * MS, 10**12 + 2_100 * MS
"""When the shared clock was read before and after the run, by the client's."""

TAI = 37 * 10**9 - 10**12
"""The shared clock less the client's."""


def read(*ahead_of_tai_ns: int, span_ns: int = 60) -> Readings:
    """A clock that was ahead of the client's by as much at each of readings that lie evenly over the run."""
    times = np.linspace(FIRST, LAST, len(ahead_of_tai_ns), dtype=np.int64)
    shown = zip(times.tolist(), ahead_of_tai_ns, strict=True)
    return [[at + ahead, at + TAI, span_ns] for at, ahead in shown]


def test_a_shared_clock_tells_the_legs_and_the_round_trips_bear_witness(tmp_path: Path) -> None:
    readings = read(0, 0, 0), read(7 * MS, 7 * MS, 7 * MS, span_ns=100)
    clocks = compare(*logs(tmp_path, np.full(200, 7 * MS), THERE, readings))
    facts = clocks.facts()
    witness = facts.pop("witness")
    assert facts == {"same_clock": False, "by": "CLOCK_TAI", "origin_ns": FIRST, "offset_ns": 7 * MS,
                     "drift": 0.0, "error_ns": 30 + 50 + 1, "exchanges": 200}  # fmt: skip
    assert witness["exchanges"] == 200
    assert witness["least_leg_ns"] == 40_000  # of ping and pong alike
    assert abs(witness["offset_ns"] - 7 * MS) <= witness["error_ns"]
    stamps = np.array([10**12 + 7 * MS, ABSENT, FIRST - 1 + 7 * MS, LAST + 1 + 7 * MS])
    assert clocks.to_client(stamps).tolist() == [10**12, ABSENT, ABSENT, ABSENT]
    assert [doubt.type for doubt in clocks.doubts()] == ["shared_clock"]


def test_between_two_readings_a_clock_is_taken_to_run_steadily(tmp_path: Path) -> None:
    ahead = [0, 100_000, 200_000, 306_000, 412_000]  # 182 ppm, then 193 ppm: it bends by 3 us
    k = np.arange(200)
    at = 10**12 + k * 10 * MS + 50_000
    truth = np.interp(at, np.linspace(FIRST, LAST, 5), ahead)
    readings = read(0, 0, span_ns=0), read(*ahead, span_ns=0)
    clocks = compare(*logs(tmp_path, np.rint(truth).astype(np.int64), THERE, readings))
    assert clocks.shared is not None
    assert clocks.shared.error_ns == pytest.approx(1 + 2 * 3_000, abs=2)
    back = clocks.to_client(at + np.rint(truth).astype(np.int64))
    assert np.abs(back - at).max() <= 1
    assert clocks.facts()["drift"] == pytest.approx(412_000 / (LAST - FIRST), rel=1e-3)


@pytest.mark.parametrize("wrong_by_ns", [-60_000, 60_000])
def test_a_shared_clock_that_the_messages_contradict_is_not_heeded(tmp_path: Path, wrong_by_ns: int) -> None:
    readings = read(0, 0), read(7 * MS + wrong_by_ns, 7 * MS + wrong_by_ns)
    clocks = compare(*logs(tmp_path, np.full(200, 7 * MS), THERE, readings))
    assert clocks.facts()["by"] == "round_trips"
    assert [doubt.type for doubt in clocks.doubts()] == ["shared_clock_contradicted", "clock_offset"]
    assert "a message came 20us before it was sent" in clocks.doubts()[0].message
    assert abs(int(clocks.to_client(np.array([10**12 + 7 * MS]))[0]) - 10**12) < 41_000


@pytest.mark.parametrize(("wrong_by_ns", "by"), [(40_061, "CLOCK_TAI"), (40_062, "round_trips")])
def test_a_message_that_came_too_early_within_the_error_contradicts_nothing(
    tmp_path: Path, wrong_by_ns: int, by: str
) -> None:
    """Each was read to within 30 ns, and the legs are whole nanoseconds."""
    readings = read(0, 0), read(7 * MS + wrong_by_ns, 7 * MS + wrong_by_ns)
    assert compare(*logs(tmp_path, np.full(200, 7 * MS), THERE, readings)).facts()["by"] == by


@pytest.mark.parametrize(
    ("here", "there", "whose"),
    [
        (read(0, 0), read(0), "CLOCK_TAI of the server"),  # killed before it could read it again
        (read(0, 0, 5 * MS, 5 * MS), read(0, 0), "CLOCK_TAI of the client"),  # it was set
    ],
)
def test_a_shared_clock_that_was_set_or_not_read_to_the_end(
    tmp_path: Path, here: Readings, there: Readings, whose: str
) -> None:
    clocks = compare(*logs(tmp_path, np.full(200, 7 * MS), THERE, (here, there)))
    assert clocks.facts()["by"] == "round_trips"
    first, second = clocks.doubts()
    assert (first.type, second.type) == ("shared_clock_refused", "clock_offset")
    assert first.message.startswith(whose)


def test_messages_that_one_end_lacks_are_no_exchanges(tmp_path: Path) -> None:
    """The server has nothing of the first, the client no answer to number 3."""
    k = np.arange(10)
    sent, zero = 10**12 + k * MS, np.zeros_like(k)
    came = k != 3
    client = np.stack((sent, sent, np.where(came, sent + 9, ABSENT), zero + ABSENT, np.where(came, 1, 3)))
    server = np.stack((k, sent + 4, sent + 5, zero + 1))[:, 1:]
    (four,) = exchanges(
        log(tmp_path / "client.rtlog", "client", CLIENT, client, HERE),
        log(tmp_path / "server.rtlog", "server", SERVER, server, THERE),
    )
    both = sent[came & (k > 0)]
    assert [stamps.tolist() for stamps in four] == [(both + after).tolist() for after in (0, 4, 5, 9)]


def test_one_machine_needs_no_shared_clock(tmp_path: Path) -> None:
    clocks = compare(*logs(tmp_path, np.zeros(200, np.int64), HERE, (read(0, 0), read(9, 9))))
    assert clocks.facts() == {"same_clock": True}
    assert clocks.doubts() == []


def test_readings_of_clocks_that_never_part_are_bounds_of_one_number() -> None:
    offset = ConstantOffset.of([[1_000, 5_030, 100], [2_000, 5_980, 80], [3_000, 7_020, 40]])
    assert offset is not None  # 3,980 to 4,080; 3,940 to 4,020; 4,000 to 4,040
    assert (offset.offset_ns, offset.error_ns) == (4_010, 11)
    assert offset.to_own(np.array([4_010, ABSENT])).tolist() == [0, ABSENT]
    assert ConstantOffset.of([[1_000, 5_030, 100], [2_000, 6_131, 100]]) is None  # by 101 ns: one was set
    assert ConstantOffset.of([]) is None
