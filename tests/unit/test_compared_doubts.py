"""What is doubted of a comparison by how many runs it has and what they are, and what a short run tells."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.judge.compared import Compared, _doubts, refusal_of
from rtmeter.judge.pairs import Pairing
from rtmeter.model import Doubt, GateFinding
from rtmeter.results.cells import StoredCell

ALONE = ["one_run_each"]
DRIFTS = GateFinding("drift", "", 1.0, "refuse", "it drifts")
LOST = GateFinding("lost", "", 1.0, "info", "1 was lost")


def cell(name: str, **about: Any) -> StoredCell:
    facts = {"started": "1", "grid": {}, "status": "complete", "verdict": None, "n_of": lambda _: 1_000}
    record: Any = SimpleNamespace(**facts | about)
    return StoredCell(Path(name), record)


def paired(count: int = 5, *, in_turn: bool = True, **of_a: Any) -> Pairing:
    later = {} if in_turn else {"started": "2"}
    pairs = tuple((cell(f"a{n}", **of_a), cell(f"b{n}", **later)) for n in range(1, count + 1))
    return Pairing("a", "b", pairs, ("a9 has no partner",))


def doubts(pairing: Pairing) -> dict[str, Doubt]:
    """By type, but for the repeat that was left out."""
    return {one.type: one for one in _doubts(pairing, ()) if one.type != "left_out"}


@pytest.mark.parametrize(
    ("pairing", "types"),
    [
        (paired(1), ALONE),
        (paired(1, in_turn=False), ALONE),
        (paired(2, in_turn=False), ["not_interleaved", "few_pairs"]),
        (paired(4), ["few_pairs"]),
        (paired(5), []),
        (paired(5, in_turn=False), ["not_interleaved"]),
    ],
)
def test_few_runs_and_those_not_measured_in_turn_are_doubted(pairing: Pairing, types: list[str]) -> None:
    assert list(doubts(pairing)) == types


def test_what_helps_few_runs_is_to_repeat_them() -> None:
    found = doubts(paired(2, in_turn=False)) | doubts(paired(1))
    assert found["few_pairs"].hint == "repeat 5 times or more"
    assert {one.type for one in found.values() if "repeat" in one.hint} == {*found}


def test_without_a_pair_that_is_the_refusal_and_no_doubt() -> None:
    assert list(_doubts(paired(0), ())) == []
    assert refusal_of(paired(0), ()) == "a9 has no partner"
    assert refusal_of(Pairing("a", "b", (), ()), ()) == "there is nothing to compare"
    assert refusal_of(paired(1), ()) is None
    assert [one.message for one in _doubts(paired(1), ()) if one.type == "left_out"] == ["a9 has no partner"]


def test_what_refused_a_bound_when_it_was_judged_is_told_once_with_those_that_have_it() -> None:
    support = SimpleNamespace(findings=[DRIFTS, LOST])
    found = doubts(paired(5, verdict=SimpleNamespace(support=support)))
    assert {name: one.message for name, one in found.items()} == {"drift": "a1, a2, a3 and 2 more: it drifts"}
    assert doubts(paired(5, verdict=SimpleNamespace(support=None))) == {}


@pytest.mark.parametrize(("status", "message"), [("interrupted", "a1 was interrupted"), ("complete", None)])
def test_a_run_that_was_interrupted_is_named(status: str, message: str | None) -> None:
    found = doubts(paired(1, status=status)).get("interrupted")
    assert (found and found.message) == message


@pytest.mark.parametrize(
    ("quantity", "fewest"), [("p50", 2), ("p99", 100), ("p99.9", 1_000), ("miss_ratio", 0)]
)
def test_the_shortest_run_says_which_quantiles_are_told(quantity: str, fewest: int) -> None:
    def allows(n: int) -> bool:
        pairing = Pairing("a", "b", ((cell("a"), cell("b", n_of=lambda _: n)),), ())
        return Compared(pairing, "latency", None, None, (), (), ()).allows(quantity)

    assert allows(fewest) and (not fewest or not allows(fewest - 1))
