from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmeter import values
from rtmeter.statistics.words import about, in_one_unit


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1ns", 1),
        ("400us", 400_000),
        ("400µs", 400_000),
        ("10ms", 10_000_000),
        ("1.5s", 1_500_000_000),
        ("0.000000001s", 1),
        ("10min", 600_000_000_000),
        ("24h", 86_400_000_000_000),
        (" 3 ms ", 3_000_000),
        ("0", 0),
        (0, 0),
        ("0s", 0),
    ],
)
def test_durations_are_exact(text: object, ns: int) -> None:
    assert values.parse_duration_ns(text) == ns


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10", "no unit"),
        (10, "no unit"),
        ("10sec", "unknown unit 'sec'"),
        ("-1s", "is below zero"),
        ("1e3s", "not a number"),
        ("0.5ns", "not a whole number of ns"),
        ("", "not a number"),
        ("ms", "not a number"),
        (True, "neither"),
        (None, "neither"),
        ("10000h", "longer than a year"),
        ("9" * 5000 + "ns", "not a number"),
    ],
)
def test_what_is_no_duration_says_why_and_how_to_write_one(text: object, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        values.parse_duration_ns(text)
    assert len(caught.value.args) == 2


@pytest.mark.parametrize(("text", "period"), [("500Hz", "2ms"), ("1kHz", "1ms"), ("3 MHz", "333ns")])
def test_a_rate_where_a_time_belongs_is_told_its_period(text: str, period: str) -> None:
    with pytest.raises(ValueError, match="is a rate") as caught:
        values.parse_duration_ns(text)
    assert caught.value.args[1] == f"write its period, {period}"


@given(st.integers(min_value=0, max_value=366 * 24 * 3600 * 10**9))
def test_a_duration_is_read_back_as_it_was_written(ns: int) -> None:
    assert values.parse_duration_ns(values.format_duration(ns)) == ns


@pytest.mark.parametrize(
    ("ns", "text"),
    [(1_500_000, "1.5ms"), (10**10, "10s"), (6 * 10**11, "10min"), (7, "7ns"), (-1500, "-1.5us")],
)
def test_a_duration_is_written_short(ns: int, text: str) -> None:
    assert values.format_duration(ns) == text


@pytest.mark.parametrize(
    ("text", "size"), [("500", 500), (500, 500), ("1kB", 1000), ("128KiB", 131_072), ("1.5MiB", 1_572_864)]
)
def test_sizes(text: object, size: int) -> None:
    assert values.parse_size_bytes(text) == size


@pytest.mark.parametrize("text", ["1K", "-1", "0.5B", "2TiB", "9999GiB", [1]])
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(ValueError):
        values.parse_size_bytes(text)


@pytest.mark.parametrize(("text", "cpus"), [(1, (1,)), ("0,2-3", (0, 2, 3)), ("3-3,0,3", (0, 3))])
def test_cpus(text: object, cpus: tuple[int, ...]) -> None:
    assert values.parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["", "a", "-1", "3-1", "1,", True, "99999"])
def test_what_is_no_list_of_cpus(text: object) -> None:
    with pytest.raises(ValueError):
        values.parse_cpus(text)


@pytest.mark.parametrize(
    ("text", "probe"),
    [
        ("other", {"policy": "other"}),
        ("fifo:80", {"policy": "fifo", "priority": 80}),
        ("rr:1", {"policy": "rr", "priority": 1}),
        ("rr:99", {"policy": "rr", "priority": 99}),
        (
            "deadline:100us/1ms/1ms",
            {"policy": "deadline", "runtime_ns": 100_000, "deadline_ns": 1_000_000, "period_ns": 1_000_000},
        ),
    ],
)
def test_scheduling(text: str, probe: dict[str, object]) -> None:
    scheduling = values.parse_scheduling(text)
    assert scheduling.to_probe() == probe
    assert str(scheduling) == text


@pytest.mark.parametrize(
    "text",
    [
        *("fifo", "fifo:", "fifo:0", "fifo:100", "fifo:-1", "fifo:٣", "rr:x", "other:1", "batch", ""),
        "fifo:" + "9" * 5000,
        *("deadline:1ms/2ms", "deadline:2ms/1ms/1ms", "deadline:1ms", "deadline:", "deadline:0s/1ms/1ms"),
    ],
)
def test_what_is_no_scheduling(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        values.parse_scheduling(text)
    assert len(caught.value.args) == 2


def test_slugs_are_file_names() -> None:
    assert values.slug("fifo:80") == "fifo-80"
    assert values.slug("../a b/..") == "a-b"


def test_what_json_cannot_hold_is_null() -> None:
    held = values.as_json({"a": (1, float("inf"), [float("nan")]), "b": "inf", "c": 1.5})
    assert held == {"a": [1, None, [None]], "b": "inf", "c": 1.5}
    assert json.loads(json.dumps(held, allow_nan=False)) == held


@pytest.mark.parametrize(
    ("time_ns", "words"),
    [(999.4, "999 ns"), (999_830_000, "1 s"), (-999_900, "-1 ms"), (59.94e9, "59.9 s"), (59.99e9, "1 min")],
)
def test_a_rounded_time_is_told_in_the_unit_it_reaches(time_ns: float, words: str) -> None:
    assert about(time_ns) == words


@pytest.mark.parametrize(
    ("times_ns", "unit", "said"),
    [
        ([], "ns", []),
        ([0.0, 0.0], "ns", ["0", "0"]),
        ([0.0, 2_500.0, 1_000_000.0], "us", ["0", "2.5", "1,000"]),
        ([2e6, 3e9], "ms", ["2", "3,000"]),
        ([1_000.0, 12_340.0, 123_400.0], "us", ["1", "12.3", "123"]),
    ],
)
def test_times_of_a_column_have_the_unit_of_the_shortest_above_zero(
    times_ns: list[float], unit: str, said: list[str]
) -> None:
    assert in_one_unit(times_ns) == (unit, said)


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as here:
        here.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_tokyo")
@pytest.mark.parametrize(
    ("text", "hour"), [("2026-11-26", 0), ("2026-11-26T05:00", 5), ("2026-11-26T05:00+02:00", 3)]
)
def test_a_time_that_does_not_say_of_where_is_utc_wherever_it_is_read(text: str, hour: int) -> None:
    assert values.utc(text) == datetime(2026, 11, 26, hour, tzinfo=UTC)
    with pytest.raises(ValueError, match="out of range"):
        values.utc("0001-01-01T00:00+09:00")
