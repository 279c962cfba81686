"""What an exit code says: of a cell, of a condition, of several, and of what a self-test planted."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.cli import exit_codes
from rtmeter.cli.exit_codes import ERROR, FAIL, INCONCLUSIVE, PASS
from rtmeter.cli.factor_tables import code_of

OF_OUTCOME = {"pass": PASS, "fail": FAIL, "inconclusive": INCONCLUSIVE, "error": ERROR, None: PASS}


def judged(outcome: str | None) -> Any:
    return None if outcome is None else SimpleNamespace(outcome=outcome)


def test_the_codes_are_those_that_scripts_know() -> None:
    assert (PASS, ERROR, FAIL, INCONCLUSIVE) == (0, 1, 2, 3)


@pytest.mark.parametrize(("outcome", "code"), OF_OUTCOME.items())
def test_what_was_measured_has_the_code_of_its_verdict_if_it_is_whole(outcome: str | None, code: int) -> None:
    verdict = judged(outcome)

    def of(status: str, *, valid: bool = True) -> int:
        record: Any = SimpleNamespace(status=status, valid=valid, verdict=verdict)
        return exit_codes.of_cell(record)

    assert of("complete") == code
    assert of("skipped") == of("skipped", valid=False) == INCONCLUSIVE
    assert {of("failed"), of("interrupted"), of("complete", valid=False)} == {ERROR}
    rows: Any = [
        SimpleNamespace(state=state, verdict=verdict) for state in ("complete", "skipped", "invalid")
    ]
    assert [exit_codes.of_row(row) for row in rows] == [code, INCONCLUSIVE, ERROR]


def test_the_worst_of_several_is_told_in_whatever_order_they_come() -> None:
    worst_first = [ERROR, FAIL, INCONCLUSIVE, PASS]
    for left_out in range(4):
        codes = worst_first[left_out:]
        assert {exit_codes.worst(order) for order in permutations(codes)} == {codes[0]}
    assert exit_codes.worst([]) == PASS


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["seen", "named", "not blamed"], PASS),
        (["seen", "not planted"], INCONCLUSIVE),
        (["not planted", "not seen"], FAIL),
        (["not planted", "not named"], FAIL),
        (["named", "blamed"], FAIL),
    ],
)
def test_a_self_test_fails_before_it_is_inconclusive(outcomes: list[str], code: int) -> None:
    assert exit_codes.of_self_test(outcomes) == code


def test_of_a_factors_levels_the_worst_counts_wherever_it_stands() -> None:
    def levels(*said: str) -> Any:
        return SimpleNamespace(levels=[SimpleNamespace(said=one) for one in said])

    assert code_of(levels("better", "not told", "worse")) == FAIL
    assert code_of(levels("no difference", "not told")) == INCONCLUSIVE
    assert code_of(levels("better", "no difference")) == PASS
