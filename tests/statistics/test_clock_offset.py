"""Clock offsets planted in simulated exchanges are found within the error that is stated."""

from __future__ import annotations

import numpy as np
import pytest

from rtmeter.model import ABSENT
from rtmeter.statistics.clock_offset import ClockOffset, Exchanges
from rtmeter.statistics.shared_clock import Readings, SharedClock

MS, S = 10**6, 10**9


def exchange(
    offset_ns: int, drift: float, n: int = 5000, step_at: float = 2.0, seed: int = 1
) -> tuple[Exchanges, dict[str, np.ndarray]]:
    """n pings a millisecond apart over ways of unequal delay; the clock is stepped by 1 s at a share of the
    run (beyond 1: never)."""
    rng = np.random.default_rng(seed)
    sent = 7 * S + np.arange(n) * MS
    ours = {"sent": sent, "there": sent + 20_000 + rng.exponential(30_000, n).astype(np.int64)}
    ours["back"] = ours["there"] + 5_000
    ours["received"] = ours["back"] + 60_000 + rng.exponential(90_000, n).astype(np.int64)

    def theirs(at: np.ndarray) -> np.ndarray:
        stepped = np.where(np.arange(n) >= step_at * n, S, 0)
        return at + offset_ns + np.rint((at - sent[0]) * drift).astype(np.int64) + stepped

    found = Exchanges()
    for part in np.array_split(np.arange(n), 7):
        found.add(sent[part], theirs(ours["there"])[part], theirs(ours["back"])[part], ours["received"][part])
    return found, ours | {"their_there": theirs(ours["there"])}


@pytest.mark.parametrize("offset_ns", [0, 12_345, -40 * S, 10**15 + 1])
@pytest.mark.parametrize("drift", [0.0, 5e-5, -2e-4])
def test_a_planted_offset_lies_within_the_error(offset_ns: int, drift: float) -> None:
    for seed in range(10):
        exchanges, stamps = exchange(offset_ns, drift, seed=seed)
        offset = exchanges.offset()
        assert offset is not None
        assert offset.exchanges == 5000
        assert 0 < offset.error_ns < 60_000  # half of what the shortest way to and fro takes is 42.5 us
        wrong_ns = offset.to_ours(stamps["their_there"]) - stamps["there"]
        assert np.abs(wrong_ns).max() <= offset.error_ns + 1


@pytest.mark.parametrize("drift", [1e-4, -5e-4])
def test_it_holds_hours_later_too(drift: float) -> None:
    found = Exchanges()
    at = np.arange(6 * 3600) * S
    theirs = at + 7 * S + np.rint(at * drift).astype(np.int64)
    found.add(at, theirs + 1000, theirs + 1000, at + 2000)
    offset = found.offset()
    assert offset is not None and offset.error_ns < 1100
    assert np.abs(offset.to_ours(theirs) - at).max() <= offset.error_ns + 1


def test_one_way_that_takes_no_time_bounds_from_both_sides() -> None:
    found = Exchanges()
    at = np.arange(10) * S
    found.add(at, at + 5000, at + 5000, at)
    offset = found.offset()
    assert offset is not None
    assert (offset.offset_ns, offset.error_ns) == (5000, pytest.approx(1, abs=0.1))


def test_a_clock_that_was_stepped_has_no_offset() -> None:
    assert exchange(0, 0.0, step_at=0.5)[0].offset() is None


@pytest.mark.parametrize("drift", [0.01, 2e-3, -2e-3])
def test_clocks_that_run_at_different_rates_are_not_believed(drift: float) -> None:
    assert exchange(0, drift)[0].offset() is None


@pytest.mark.parametrize("loose", [0, 2])
@pytest.mark.parametrize("ways", [(1_500, 30_000), (30_000, 1_500)])
def test_the_error_is_that_where_least_is_known_and_on_that_side(loose: int, ways: tuple[int, int]) -> None:
    """Elsewhere each way takes 1 us: the line may turn by 2 us in half a second, or three at the far end."""
    there, back = (np.full(3, 1_000) for _ in range(2))
    there[loose], back[loose] = ways
    at = np.array([0, S // 2, S])
    found = Exchanges()
    found.add(at, at + there, at + there, at + there + back)
    offset = found.offset()
    assert offset is not None and offset.offset_ns == pytest.approx(0, abs=1)
    assert offset.error_ns == pytest.approx(3_001, abs=2)


def test_readings_tell_how_far_a_stamp_may_be_off_between_them() -> None:
    found = Readings.of([[0, 0, 40], [S, S + 100, 20], [2 * S, 2 * S, 30]])
    assert found is not None and found.error_ns == 40 / 2 + 2 * 100
    at = np.array([-1, 0, S // 2, 2 * S, 2 * S + 1, ABSENT])
    assert found.to_other(at).tolist() == [ABSENT, 0, S // 2 + 50, 2 * S, ABSENT, ABSENT]


@pytest.mark.parametrize(
    ("second", "steady"),
    [
        ([MS, MS + 1_060, 20], True),  # by a thousandth, and by what two readings took
        ([MS, MS + 1_061, 20], False),
        ([MS, MS - 1_061, 20], False),
        ([0, 0, 20], False),
    ],
)
def test_readings_of_a_clock_that_was_set_or_of_no_time_are_none(second: list[int], steady: bool) -> None:
    assert (Readings.of([[0, 0, 40], second]) is not None) == steady
    assert Readings.of([[0, 0, 40]]) is None


def test_a_shared_clock_tells_the_one_by_the_other_with_the_errors_of_both() -> None:
    client, server = (
        Readings.of([[0, 0, 10], [S, S, 10]]),
        Readings.of([[7_000, 0, 20], [S + 107_000, S, 20]]),
    )
    assert client is not None and server is not None
    clock = SharedClock("CLOCK_TAI", client, server)
    assert clock.error_ns == 5 + 10 + 1
    assert clock.to_client(np.array([7_000, S // 2 + 57_000, 6_999])).tolist() == [0, S // 2, ABSENT]
    assert clock.line() == (0, 7_000, pytest.approx(1e-4))


def test_without_an_exchange_there_is_no_offset() -> None:
    found = Exchanges()
    found.add(*(np.empty(0, np.int64) for _ in range(4)))
    assert found.offset() is None


def test_a_single_exchange_bounds_by_half_its_delay() -> None:
    found = Exchanges()
    found.add(*(np.array([value]) for value in (100, 1_150, 1_250, 300)))
    offset = found.offset()
    assert offset is not None  # between 950 and 1050
    assert (offset.offset_ns, offset.error_ns, offset.exchanges) == (1000, pytest.approx(51, abs=0.5), 1)


def test_absent_stays_absent() -> None:
    offset = ClockOffset(0, 1000, 0.0, 1.0, 1)
    assert offset.to_ours(np.array([ABSENT, 5000])).tolist() == [ABSENT, 4000]
    late = 2**60 + 1  # a nanosecond there is less than floats tell
    ours = ClockOffset(2**60, 0, 1e-3, 1.0, 1).to_ours(np.array([late, late + 1000]))
    assert ours.dtype == np.int64 and ours.tolist() == [late, late + 999]
