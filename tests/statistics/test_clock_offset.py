"""Clock offsets planted in simulated exchanges are found within the error that is stated."""

from __future__ import annotations

import numpy as np
import pytest

from rtmeter.model import ABSENT
from rtmeter.statistics.clock_offset import ClockOffset, Exchanges

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


def test_clocks_that_run_at_different_rates_are_not_believed() -> None:
    assert exchange(0, 0.01)[0].offset() is None


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
