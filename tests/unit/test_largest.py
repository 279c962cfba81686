"""When the runs at a value of a search tell, and when they are lost before all are measured."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rtmeter.judge.verdict import Misses, judge_misses, judge_run
from rtmeter.measure import largest
from rtmeter.measure.largest import SearchAsked
from rtmeter.measure.probe.supervise import Stop
from rtmeter.model import Requirement
from rtmeter.statistics.judged import JudgedRun

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


def test_further_runs_have_room_for_further_misses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each misses half of what is allowed: seven miss more than three may, and nine are enough to tell."""
    required = Requirement(1_000_000, 1e-3, horizon=1)
    values = np.random.default_rng(1).integers(1_000, 2_000, 10_000)
    values[1_000::2_000] = 2_000_000
    one = judge_run(JudgedRun("latency", values, None, None, 1_000_000, skips_miss=True), required, False)
    record = SimpleNamespace(verdict=one, status="complete", error=None, valid=True, effective={})
    asked: Any = SimpleNamespace(
        name="search",
        planned=lambda _: SimpleNamespace(outcome="can pass", releases=30_000),
        cells=lambda _, count: [SimpleNamespace(id=f"cell-r{run}") for run in range(1, count + 1)],
        repeat=3,
        most_repeats=30,
    )
    monkeypatch.setattr(largest, "_note", lambda *_: None)
    monkeypatch.setattr(largest, "Run", lambda *_: SimpleNamespace(measure=lambda *_: [""]))
    read = {"read_cell": lambda folder: SimpleNamespace(**vars(record), id=folder.name)}
    monkeypatch.setattr(largest, "store", SimpleNamespace(**read))
    tried = largest._try(asked, 1, tmp_path, Stop(), lambda _: None)  # type: ignore[arg-type,return-value]
    assert tried is not None and (tried.outcome, len(tried.cells)) == ("pass", 9)


DIED = {"error": SimpleNamespace(field="probe", as_error="died in mid-run"), "summary": object()}
AT_ONCE = DIED | {"summary": None}
REFUSED = {"error": SimpleNamespace(field="payload_bytes", as_error="is too large"), "summary": None}
UNANSWERED = {"error": SimpleNamespace(field="server", as_error="does not answer"), "summary": None}
OVERFLOW = {"valid": False}
MEANWHILE = {"error": SimpleNamespace(field="governor", as_error="was changed by another program")}
"""Something was measured until then."""


@pytest.mark.parametrize(
    ("broken", "outcome", "measured"),
    [
        ([DIED], "pass", 2),
        ([AT_ONCE], "pass", 2),
        ([UNANSWERED], "pass", 2),
        ([UNANSWERED, UNANSWERED], "inconclusive", 2),
        ([OVERFLOW], "pass", 2),
        ([MEANWHILE], "pass", 2),
        ([MEANWHILE, MEANWHILE], "inconclusive", 2),
        ([DIED, OVERFLOW], "inconclusive", 2),
        ([OVERFLOW, AT_ONCE], "inconclusive", 2),
        ([DIED, REFUSED], "error", 2),
        ([REFUSED], "error", 1),
    ],
)
def test_a_run_that_broke_is_measured_once_more_and_no_value_fails_by_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, broken: list[Any], outcome: str, measured: int
) -> None:
    (whole,) = runs(0)
    record = {"verdict": whole.verdict, "status": "complete", "error": None, "valid": True, "effective": {}}
    there = iter([record | {"summary": object()} | how for how in [*broken, {}]])
    asked: Any = SimpleNamespace(
        name="search",
        planned=lambda _: SimpleNamespace(outcome="can pass", releases=1_000),
        cells=lambda *_: [SimpleNamespace(id="cell")],
        repeat=1,
        most_repeats=1,
    )
    monkeypatch.setattr(largest, "_note", lambda *_: None)
    tries: list[object] = []
    monkeypatch.setattr(largest, "Run", lambda *_: SimpleNamespace(measure=lambda *_: [""]))
    read = {"read_cell": lambda _: SimpleNamespace(**next(there), id="cell")}
    monkeypatch.setattr(largest, "store", SimpleNamespace(**read))
    tried = largest._try(asked, 1, tmp_path, Stop(), tries.append)  # type: ignore[arg-type,return-value]
    assert tried is not None and (tried.outcome, len(tries)) == (outcome, measured)


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
