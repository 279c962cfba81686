"""What a search for the largest value announces, and what it says once it has ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.campaign.search import Search
from rtmeter.cli.find_max import _announce
from rtmeter.cli.find_max_tables import _answer
from rtmeter.measure.largest import Largest, SearchAsked, Tried
from rtmeter.model import Requirement

GIVEN = {"measurement": "roundtrip", "adapter": "null", "deadline": "1ms", "miss_ratio": "1e-2"}
REQUIRED: Any = SimpleNamespace(requirement=Requirement(1_000_000, 1e-2))


def ended(outcome: Any, search: Search, *tried: Tried) -> list[str]:
    asked = SearchAsked("rate", 10, 100, GIVEN, repeat=3, most_repeats=10)
    return _answer(asked, Largest(outcome, search, tried, Path("there")))


def test_the_way_that_takes_longest_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    """A thousand releases each at 100 Hz, 10 Hz, 3 Hz and 1 Hz, which passes, and 2 Hz, which does not."""
    given = GIVEN | {"samples": 1_000, "warm_up": "0s"}
    _announce(SearchAsked("rate", 1, 100, given, repeat=1, most_repeats=1))
    said = capsys.readouterr().err
    assert "the largest rate from 1 Hz to 100 Hz: at most 10 values, each 1,000 releases in 1 run: " in said
    assert "32.4 min of releases at most if none needs more" in said


def test_why_the_least_value_that_fails_does_is_said_and_not_why_another_did() -> None:
    tried = (
        Tried(100, ("a",), "fail", "too many at 100 Hz."),
        Tried(30, ("b",), "pass", "few enough", REQUIRED),
        Tried(31, ("c",), "fail", "too many at 31 Hz."),
    )
    said = ended("pass", Search(10, 100, 0.0, 30, 31), *tried)
    assert said[0] == "largest rate that passes: 30 Hz (deadline 1ms, at most 1 % missed, 95 % confidence)"
    assert said[1] == "31 Hz does not: too many at 31 Hz"


def test_a_search_of_other_runs_or_options_is_another_one() -> None:
    first = SearchAsked("rate", 10, 100, GIVEN, repeat=3, most_repeats=10)
    assert replace(first, low=20, high=50, most_repeats=5, within=0.1).name == first.name
    others = [replace(first, repeat=2), replace(first, given=GIVEN | {"deadline": "2ms"})]
    assert len({first.name, *(one.name for one in others)}) == 3


@pytest.mark.parametrize(
    ("cells", "more"),
    [(("a", "b"), "; --most-repeats allows more runs, --resume keeps what is there"), ((), "")],
)
def test_more_runs_are_proposed_where_runs_left_it_undecided(cells: tuple[str, ...], more: str) -> None:
    tried = Tried(100, cells, "inconclusive", "1,000 releases cannot pass, it takes 2,995")
    assert ended("inconclusive", Search(10, 100), tried) == [
        "inconclusive: 100 Hz: 1,000 releases cannot pass, it takes 2,995",
        f"nothing is known yet{more}",
        "stored in there",
    ]
