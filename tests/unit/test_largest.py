"""When the runs at a value of a search tell, and when they are lost before all are measured."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.judge.verdict import Misses, judge_misses
from rtmeter.measure import largest
from rtmeter.measure.largest import SearchAsked
from rtmeter.model import Requirement

REQUIRED = Requirement(1_000_000, 0.01, horizon=10)


def runs(*late: int) -> list[Any]:
    """Of a thousand releases each, so many of them late."""
    return [
        SimpleNamespace(verdict=judge_misses(Misses("latency", 1_000, one, 0, 0), REQUIRED)) for one in late
    ]


@pytest.mark.parametrize(
    ("late", "planned", "lost"),
    [
        ((100,), 1_000, False),  # ten times as many releases without a further miss have just the ratio
        ((101,), 1_000, True),
        ((101,), 3_000, False),  # two more runs are to come
        ((100, 201), 3_000, True),
        ((150, 150), 3_000, False),
    ],
)
def test_runs_are_lost_where_not_even_the_horizon_of_all_of_them_has_room(
    late: tuple[int, ...], planned: int, lost: bool
) -> None:
    assert largest._lost_already(runs(*late), planned) == lost


@pytest.mark.parametrize(
    ("outcome", "more", "most", "wanted"),
    [
        ("inconclusive", 3_000, 5, 5),
        ("inconclusive", 3_000, 4, 2),  # not so many are allowed
        ("inconclusive", 2_001, 9, 5),
        ("inconclusive", None, 9, 2),
        ("pass", None, 9, 2),
        ("fail", 3_000, 9, 2),
    ],
)
def test_as_many_further_runs_are_measured_as_would_tell_if_so_many_are_allowed(
    outcome: str, more: int | None, most: int, wanted: int
) -> None:
    verdict: Any = SimpleNamespace(outcome=outcome, more_samples=more, n=2_000)
    asked = SearchAsked("payload", 1, 9, {}, repeat=2, most_repeats=most)
    assert largest._runs_that_tell(verdict, runs(0, 0), asked) == wanted
