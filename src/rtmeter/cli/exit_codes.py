"""What the exit code says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtmeter.cli.condition_rows import ConditionRow
    from rtmeter.results.record import CellRecord

PASS, ERROR, FAIL, INCONCLUSIVE = 0, 1, 2, 3
_WORST_FIRST = (ERROR, FAIL, INCONCLUSIVE, PASS)
_OF_OUTCOME = {"pass": PASS, "fail": FAIL, "inconclusive": INCONCLUSIVE, "error": ERROR, "unjudged": PASS}


def of_outcome(outcome: str) -> int:
    """The exit code of a verdict."""
    return _OF_OUTCOME[outcome]


def of_cell(record: CellRecord) -> int:
    """The exit code of a measured cell: an error unless it is complete and valid, else its verdict's. One
    that was skipped leaves its question open."""
    if record.status == "skipped":
        return INCONCLUSIVE
    if record.status != "complete" or not record.valid:
        return ERROR
    return of_outcome(record.verdict.outcome) if record.verdict else PASS


def of_row(row: ConditionRow) -> int:
    """The exit code of a condition: as that of a cell, by the verdict of all its repeats."""
    if row.state == "skipped":
        return INCONCLUSIVE
    if row.state != "complete":
        return ERROR
    return of_outcome(row.verdict.outcome) if row.verdict else PASS


def of_self_test(outcomes: Iterable[str]) -> int:
    """The exit code of a self-test: inconclusive if all is well but something could not be planted."""
    codes = {"not planted": INCONCLUSIVE} | dict.fromkeys(("seen", "named", "not blamed"), PASS)
    return worst(codes.get(outcome, FAIL) for outcome in outcomes)


def worst(codes: Iterable[int]) -> int:
    """The worst of several, in the order error, fail, inconclusive, pass."""
    return min(codes, key=_WORST_FIRST.index, default=PASS)
