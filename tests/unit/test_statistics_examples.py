"""Summaries worked out by hand, and what makes a cell invalid."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest

from rtmeter.model import ABSENT, IN_FLIGHT, LOST, SERVED, SKIPPED, WARM_UP_FLAG
from rtmeter.statistics.corrected import describe_corrected
from rtmeter.statistics.order import NARROW, QUANTILES, Values, describe, moments, partition
from rtmeter.statistics.ranks import quantile_index
from rtmeter.statistics.summary import summarise
from rtmeter.statistics.views import LATER

A = ABSENT
WAKEUP = {"measurement": "wakeup", "mode": None, "period_ns": 10, "warm_up": 1, "deadline_ns": None}
ROUNDTRIP = {
    "measurement": "roundtrip",
    "mode": None,
    "period_ns": 100,
    "warm_up": 0,
    "deadline_ns": None,
    "in_flight": "one",
    "counters": {"late_after_lost": 1, "duplicate": 0, "out_of_order": 0, "corrupted": 2},
}
CYCLE = {**WAKEUP, "measurement": "cycle", "warm_up": 0}


def source(**columns: list[int]) -> Callable[[], list[dict[str, np.ndarray]]]:
    """One chunk with these columns; k counts from 0 unless given."""
    columns.setdefault("k", list(range(len(columns["status"]))))
    chunk = {name: np.array(column, dtype=np.int64) for name, column in columns.items()}
    return lambda: [chunk]


def test_wakeup_with_a_skipped_release() -> None:
    rows = source(
        release_ns=[0, 10, 20, 30, 40],
        wake_ns=[9, 12, A, 45, 46],
        free_ns=[A, A, 45, A, A],
        status=[SERVED | WARM_UP_FLAG, SERVED, SKIPPED, SERVED, SERVED],
    )
    got = summarise(WAKEUP, rows)
    assert got["counts"] == {"released": 4, "served": 3, "skipped": 1, "warm_up": 1}
    assert got["identity"] == "released = served + skipped: 4 = 3 + 1"
    assert got["problems"] == []
    latency = got["quantities"]["latency"]
    # per release 2, 45 - 20 = 25, 15, 6; as served without the 25
    assert latency["per_release"] | {"stddev_ns": None} == {
        "n": 4,
        "min_ns": 2,
        "mean_ns": 12.0,
        "stddev_ns": None,
        "p50_ns": 6,
        "p90_ns": 25,
        "p99_ns": 25,
        "p99_9_ns": 25,
        "p99_99_ns": 25,
        "p99_999_ns": 25,
        "max_ns": 25,
        "max_at_k": 2,
    }
    assert latency["per_release"]["stddev_ns"] == pytest.approx(sqrt((100 + 169 + 9 + 36) / 3))
    assert latency["as_served"]["n"] == 3
    assert (latency["as_served"]["p50_ns"], latency["as_served"]["max_at_k"]) == (6, 3)
    assert latency["corrected"] is None


def test_round_trip_with_skipped_and_lost_pings() -> None:
    rows = source(
        release_ns=[0, 100, 200, 300, 400, 500, 600],
        sent_ns=[0, A, A, 310, A, 510, A],
        received_ns=[305, A, A, 350, A, A, A],
        free_ns=[A, 305, 305, A, 505, A, 1010],
        status=[SERVED, SKIPPED, SKIPPED, SERVED, SKIPPED, LOST, SKIPPED],
    )
    got = summarise(ROUNDTRIP, rows)
    assert got["counts"] == {
        "released": 7,
        "served": 2,
        "skipped": 4,
        "replied_in_time": 1,
        "missed": 1,
        "missed_response": 6,
        "lost": 1,
        "late_after_lost": 1,
        "duplicate": 0,
        "out_of_order": 0,
        "corrupted": 2,
        "in_flight": 0,
        "warm_up": 0,
    }
    assert got["identity"] == (
        "released = replied_in_time + missed + lost + skipped + in_flight: 7 = 1 + 1 + 1 + 4 + 0; "
        "served = replied_in_time + missed: 2 = 1 + 1"
    )
    response = got["quantities"]["response"]["per_release"]
    # 305, 250 and 150 with the ping of k = 3, 50, then lost, lost and without a later ping
    assert (response["n"], response["min_ns"], response["p50_ns"]) == (7, 50, 305)
    assert (response["p90_ns"], response["max_ns"], response["max_at_k"]) == ("lost", "lost", 4)
    assert response["mean_ns"] is response["stddev_ns"] is None
    trip = got["quantities"]["round_trip"]
    assert trip["per_release"] is None
    assert (trip["as_served"]["n"], trip["as_served"]["max_ns"]) == (2, 305)
    # corrected: 305, 205, 105 and 40
    assert (trip["corrected"]["n"], trip["corrected"]["p50_ns"]) == (4, 105)
    assert trip["corrected"]["mean_ns"] == pytest.approx((305 + 205 + 105 + 40) / 4)


def test_a_skipped_release_waits_like_the_ping_in_flight() -> None:
    rows = source(
        release_ns=[0, 100, 200],
        sent_ns=[0, A, 210],
        received_ns=[10, A, A],
        free_ns=[A, 205, A],
        status=[SERVED, SKIPPED, IN_FLIGHT],
    )
    got = summarise(ROUNDTRIP, rows)
    assert got["problems"] == []
    assert got["quantities"]["response"]["per_release"]["n"] == 1
    assert got["counts"]["missed_response"] == 0


def test_open_round_trips_are_not_corrected() -> None:
    rows = source(release_ns=[0], sent_ns=[0], received_ns=[900], free_ns=[A], status=[SERVED])
    got = summarise(ROUNDTRIP | {"in_flight": "open"}, rows)
    assert got["quantities"]["round_trip"]["corrected"] is None


def test_cycle_states_tau_min_and_loses_the_whole_cycle() -> None:
    rows = source(
        release_ns=[0, 10, 20],
        start_ns=[3, 12, 25],
        request_sent_ns=[3, 12, 25],
        request_received_ns=[4, 13, 29],
        response_sent_ns=[4, A, 29],
        response_received_ns=[6, A, 30],
        free_ns=[A, A, A],
        status=[SERVED, LOST, SERVED],
    )
    got = summarise(CYCLE, rows)
    quantities = got["quantities"]
    assert quantities["cycle_delay"]["per_release"]["max_ns"] == "lost"
    assert quantities["cycle_delay"]["as_served"]["n"] == quantities["request"]["as_served"]["n"] == 2
    assert got["tau_min_ns"] == 3
    normalised = quantities["cycle_delay_normalised"]["as_served"]
    assert (normalised["min_ns"], normalised["mean_ns"], normalised["max_ns"], normalised["max_at_k"]) == (
        0,
        1,
        2,
        2,
    )


def test_differences_of_a_one_shot_timer() -> None:
    meta = {"measurement": "timer", "mode": "one_shot", "period_ns": None, "timeout_ns": 100, "warm_up": 0}
    rows = source(
        armed_before_ns=[0, 200],
        armed_after_ns=[5, 203],
        callback_ns=[130, 290],
        reported_expected_ns=[101, 305],
        reported_actual_ns=[121, 296],
        status=[SERVED, SERVED],
    )
    quantities = summarise(meta, rows)["quantities"]
    values = {name: views["as_served"] for name, views in quantities.items()}
    wanted = {  # (first, second)
        "measured": (30, -10),
        "measured_after": (25, -13),
        "reported": (20, -9),
        "difference": (-10, 1),
        "difference_after": (-5, 4),
        "dispatch": (9, -6),
    }
    assert {name: (view["min_ns"], view["max_ns"]) for name, view in values.items()} == {
        name: (min(pair), max(pair)) for name, pair in wanted.items()
    }


def test_nothing_measured() -> None:
    got = summarise(WAKEUP | {"warm_up": 0}, source(release_ns=[], wake_ns=[], free_ns=[], status=[]))
    latency = got["quantities"]["latency"]["per_release"]
    assert latency.pop("n") == 0
    assert set(latency.values()) == {None}
    assert got["counts"]["released"] == 0


def wakeups(k: list[int], status: list[int], **columns: list[int]) -> dict[str, Any]:
    n = len(k)
    rows = {
        "release_ns": [10 * i for i in k],
        "wake_ns": [10 * i + 1 for i in k],
        "free_ns": [A] * n,
    } | columns
    return summarise(WAKEUP | {"warm_up": 0}, source(k=k, status=status, **rows))


@pytest.mark.parametrize(
    ("k", "status", "columns", "problem"),
    [
        ([0, 1, 3], [1, 1, 1], {}, "row k = 2 is missing"),
        ([2, 3], [1, 1], {}, "rows k = 0 to 1 are missing"),
        ([0, 1, 1], [1, 1, 1], {}, "row k = 1 comes after row k = 1"),
        ([0, 1], [1, LOST], {}, "identity violated: released = served + skipped, but 2 ≠ 1 + 0"),
        ([0, 1], [1, 7], {}, "identity violated: released = served + skipped, but 2 ≠ 1 + 0"),
        ([0, 1], [1, 1], {"wake_ns": [1, A]}, "latency: 1 of 2 settled releases lack a stamp"),
        ([0, 1], [1, SKIPPED], {}, "latency: 1 of 2 settled releases lack a stamp"),
        ([0, 1], [1 | WARM_UP_FLAG, 1], {}, "1 rows are marked as warm-up, 0 were planned"),
    ],
)
def test_problems(k: list[int], status: list[int], columns: dict[str, list[int]], problem: str) -> None:
    assert wakeups(k, status, **columns)["problems"] == [problem]


def test_a_reply_without_its_stamp_violates_the_identity() -> None:
    rows = source(
        release_ns=[0, 100], sent_ns=[0, 100], received_ns=[9, A], free_ns=[A, A], status=[SERVED, SERVED]
    )
    problems = summarise(ROUNDTRIP, rows)["problems"]
    assert "identity violated: served = replied_in_time + missed, but 2 ≠ 1 + 0" in problems


@pytest.mark.parametrize("n", [1, 2, 9, 10, 11, 99_999, 100_000, 100_001, 86_400_000])
def test_quantile_index_is_the_smallest_with_the_share(n: int) -> None:
    for _, share in QUANTILES:
        index = quantile_index(n, share)
        assert Fraction(index + 1, n) >= share
        assert index == 0 or Fraction(index, n) < share


def test_quantiles_do_not_interpolate() -> None:
    view = describe(np.arange(1_000_000, 0, -1), 0)
    assert [view[name] for name, _ in QUANTILES] == [500_000, 900_000, 990_000, 999_000, 999_900, 999_990]


def test_lost_releases_take_the_tail() -> None:
    values = np.concatenate((np.full(10, LATER), np.arange(990)))
    view = describe(values, 7)
    assert (view["p99_ns"], view["p99_9_ns"], view["max_ns"]) == (989, "lost", "lost")


def test_sums_are_exact_beyond_64_bits() -> None:
    large = 2**62
    mean, stddev = moments(np.array([large, large - 2, large - 1]))
    assert (mean, stddev) == (float(large - 1), 1.0)
    mean, stddev = moments(np.array([-5, -5, -5]))
    assert (mean, stddev) == (-5.0, 0.0)


def test_deviation_of_a_small_spread_on_a_large_level() -> None:
    values = np.tile(np.array([10**12, 10**12 + 2]), 50_000)
    mean, stddev = moments(values)
    assert mean == 10**12 + 1
    assert stddev == pytest.approx(sqrt(100_000 / 99_999), rel=1e-13)


def test_values_grow_in_place() -> None:
    values = Values()
    for start in range(0, 50_000, 777):
        values.append(np.arange(start, start + 777))
    assert np.array_equal(values.array, np.arange(len(values)))


def test_an_hours_stall_is_corrected_without_making_its_billions_of_values() -> None:
    hour, interval = 3_600_000_000_000, 1_000
    n = hour // interval  # the stall, less 1, 2, … intervals: 1,000 to hour in steps of 1,000
    view = describe_corrected(np.array([hour]), interval, 3)
    assert (view["n"], view["min_ns"], view["max_ns"], view["max_at_k"]) == (n, interval, hour, 3)
    for name, share in QUANTILES:
        assert view[name] == interval * (quantile_index(n, share) + 1)
    assert view["mean_ns"] == pytest.approx(interval * (n + 1) / 2, rel=1e-12)
    assert view["stddev_ns"] == pytest.approx(interval * sqrt(n * (n + 1) / 12), rel=1e-12)


@pytest.mark.parametrize(
    ("second", "problems"),
    [([2, 3], []), ([3], ["row k = 2 is missing"]), ([1], ["row k = 1 comes after row k = 1"])],
)
def test_rows_are_followed_from_chunk_to_chunk(second: list[int], problems: list[str]) -> None:
    parts = [
        {
            "k": np.array(k, dtype=np.int64),
            "release_ns": 10 * np.array(k, dtype=np.int64),
            "wake_ns": 10 * np.array(k, dtype=np.int64) + 1,
            "free_ns": np.full(len(k), A),
            "status": np.full(len(k), SERVED),
        }
        for k in ([0, 1], [], second)
    ]
    assert summarise(WAKEUP | {"warm_up": 0}, lambda: parts)["problems"] == problems


def test_values_are_held_narrow_until_one_is_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtmeter.statistics.order._PIECE", 7)  # widened in many pieces
    generator = np.random.default_rng(3)
    parts = [generator.integers(-NARROW, NARROW + 1, 777) for _ in range(5)]
    for far in ([LATER], [NARROW + 1], [-NARROW - 1], []):
        values = Values(narrow=True)
        for part in parts:
            values.append(part)
        assert values.array.dtype == np.int32
        values.append(np.array(far, dtype=np.int64))
        values.append(parts[0])
        assert values.array.dtype == (np.int64 if far else np.int32)
        expected = np.concatenate([*parts, np.array(far, dtype=np.int64), parts[0]])
        assert np.array_equal(values.finish(), expected)


def test_sums_and_differences_of_narrow_values_are_what_they_are() -> None:
    values = Values(narrow=True)
    values.append(np.array([-NARROW, -NARROW, NARROW, NARROW]))
    assert values.array.dtype == np.int32
    assert np.diff(values.array).tolist() == [0, 2 * NARROW, 0]
    assert (values.array[1:] + values.array[:-1]).tolist() == [-2 * NARROW, 0, 2 * NARROW]


@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_order_statistics_and_moments_are_the_same_at_either_width(width: type) -> None:
    generator = np.random.default_rng(4)
    for n in (1, 2, 9, 100, 5_000):
        values = generator.integers(-NARROW, NARROW + 1, n) // generator.choice([1, 10**8])
        ordered, found = np.sort(values), describe(values.astype(width), 0)
        for name, share in QUANTILES:
            assert found[name] == ordered[quantile_index(n, share)]
        assert (found["min_ns"], found["max_ns"]) == (ordered[0], ordered[-1])
        assert found["mean_ns"] == sum(map(int, values)) / n
        if n > 1:
            assert found["stddev_ns"] == pytest.approx(float(np.std(values, ddof=1)), rel=1e-12)


@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_each_place_has_its_order_statistic(width: type) -> None:
    """Also the first of them when the later ones are put in theirs."""
    generator = np.random.default_rng(5)
    for n in range(1, 400):
        values = generator.integers(0, max(2, n // 2), n).astype(width)
        places = np.unique(generator.integers(0, n, 4))
        ordered = np.sort(values)
        partition(values, places.tolist())
        assert np.array_equal(values[places], ordered[places])
        assert np.array_equal(np.sort(values), ordered)


@pytest.mark.parametrize("status", [SERVED, SERVED | WARM_UP_FLAG, LOST])
def test_one_status_for_all_rows_says_the_same_as_one_each(status: int) -> None:
    """As samples are read where a file tells that a group of rows has one."""
    k = np.arange(6)
    columns = {"k": k, "release_ns": 10 * k, "wake_ns": 10 * k + k % 3, "free_ns": np.full(6, A)}
    each, one = np.full(6, status), np.broadcast_to(np.int64(status), 6)
    meta = WAKEUP | {"measurement": "own_loop", "warm_up": 6 if status & WARM_UP_FLAG else 0}
    meta |= {"judge": "latency"}
    columns["done_ns"] = columns["wake_ns"]
    found = [summarise(meta, lambda s=s: [columns | {"status": s}]) for s in (each, one)]  # type: ignore[misc]
    assert found[0] == found[1] and found[0]["counts"]["released"] == (6 if status < WARM_UP_FLAG else 0)
    assert found[0]["problems"] == []


def test_rows_that_repeat_or_go_back_within_a_chunk_are_told_apart() -> None:
    for k, problem in (([0, 1, 1, 3], "k = 1"), ([0, 2, 1, 3], "k = 1 is missing"), ([0, 1, 2, 3], "")):
        at = np.array(k)
        columns = {"k": at, "release_ns": 10 * at, "wake_ns": 10 * at + 1, "status": np.full(4, SERVED)}
        problems = summarise(WAKEUP | {"warm_up": 0}, lambda c=columns: [c])["problems"]  # type: ignore[misc]
        assert any(problem in one for one in problems) if problem else not problems
