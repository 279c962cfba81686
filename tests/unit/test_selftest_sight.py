"""What a measurement is said to have seen of a disturbance, on made-up wake-ups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from rtmeter.model import SERVED, SKIPPED, WARM_UP_FLAG
from rtmeter.selftest.sight import Planted, sights

MS = 1_000_000
PLANTED = Planted(
    "task_above", "", 160 * MS, "task_at_or_above", was_named=True, windows=((300 * MS, 500 * MS),)
)


def _stalled(at_ms: int, for_ms: int) -> dict[str, NDArray[np.int64]]:
    """A thousand releases of 1 ms, 100 us late each, with one stall that is caught up with."""
    release_ns = np.arange(1000, dtype=np.int64) * MS
    wake_ns = release_ns + 100_000
    stalled = (release_ns >= at_ms * MS) & (release_ns < (at_ms + for_ms) * MS)
    wake_ns[stalled] = (at_ms + for_ms) * MS
    return {"release_ns": release_ns, "wake_ns": wake_ns, "status": np.full(1000, SERVED, np.int64)}


def test_a_stall_where_it_was_planted_is_seen() -> None:
    (sight,) = sights(_stalled(300, 200), MS, [PLANTED])
    assert (sight.outcome, sight.late_ns, sight.elsewhere_ns) == ("seen", 200 * MS, 100_000)


def test_one_that_nothing_named_is_not_enough() -> None:
    (sight,) = sights(_stalled(300, 200), MS, [replace(PLANTED, was_named=False)])
    assert sight.outcome == "not named"


@pytest.mark.parametrize(("at_ms", "for_ms"), [(300, 100), (600, 200), (0, 0)])
def test_a_short_stall_one_elsewhere_or_none_is_not_seen(at_ms: int, for_ms: int) -> None:
    (sight,) = sights(_stalled(at_ms, for_ms), MS, [PLANTED])
    assert sight.outcome == "not seen"


def test_warm_up_and_skipped_releases_show_nothing() -> None:
    columns = _stalled(300, 200)
    columns["status"][250:400] |= WARM_UP_FLAG
    columns["status"][400:] = SKIPPED
    (sight,) = sights(columns, MS, [PLANTED])
    assert (sight.outcome, sight.late_ns, sight.elsewhere_ns) == ("not seen", None, 100_000)


def test_a_window_of_one_does_not_count_as_elsewhere_of_another() -> None:
    other = replace(PLANTED, windows=((700 * MS, 900 * MS),))
    first, second = sights(_stalled(300, 200), MS, [PLANTED, other])
    assert (first.outcome, second.outcome) == ("seen", "not seen")
    assert first.elsewhere_ns == second.elsewhere_ns == 100_000


def test_what_could_not_be_planted_is_neither_seen_nor_missed() -> None:
    (sight,) = sights(_stalled(300, 200), MS, [replace(PLANTED, windows=(), problem="no permission")])
    assert sight.outcome == "not planted"
