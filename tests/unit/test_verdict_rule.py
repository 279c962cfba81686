"""The rule of verdicts: docs/judge.md has the code's table, and each row decides where it is planted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rtmeter import cli
from rtmeter.judge.next_step import next_step
from rtmeter.judge.rule import ROWS, RuleRow
from rtmeter.judge.verdict import Misses, judge_run, misses, row_of
from rtmeter.model import Requirement, Verdict
from rtmeter.results.cells import StoredCell
from rtmeter.results.store import read_cell
from rtmeter.statistics.judged import JudgedRun
from rtmeter.statistics.support import support_of
from synthetic import Made, write_cell
from wakeups import write_wakeups

PAGE = Path(__file__).resolve().parents[2] / "docs" / "judge.md"
MS = 1_000_000
LATE = 2 * MS


def even(n: int, late: int = 0) -> np.ndarray:
    """n releases in time, the late ones spread evenly among them."""
    values = np.random.default_rng(7).exponential(20_000, n).astype(np.int64)
    values[np.linspace(0, n - 1, late).astype(np.int64)] = LATE
    return values


def burst(n: int, late: int) -> np.ndarray:
    values = even(n)
    values[n // 2 : n // 2 + late] = LATE
    return values


def run_of(values: np.ndarray) -> JudgedRun:
    return JudgedRun("latency", values, None, None, MS, True, own_grid=True)


def climbing(n: int) -> np.ndarray:
    return even(n) + np.arange(n, dtype=np.int64) * 5


PLANTED: dict[str, tuple[Callable[[], np.ndarray], Requirement]] = {
    "nothing_measured": (lambda: even(0), Requirement(MS, 0.01)),
    "none_allowed": (lambda: even(5_000, 1), Requirement(MS)),
    "no_level": (lambda: even(1_500), Requirement(MS, criticality="hard")),
    "level_too_high": (lambda: even(60_000), Requirement(int(even(60_000).max()) + 1, criticality="hard")),
    "misses_too_often": (lambda: even(5_000, 88), Requirement(MS, 0.01, horizon=100)),
    "beyond_the_horizon": (lambda: burst(5_000, 88), Requirement(MS, 0.001)),
    "too_few": (lambda: even(999), Requirement(MS, 0.01)),
    "refused": (lambda: climbing(20_000), Requirement(MS, 0.01)),
    "meets": (lambda: even(5_000), Requirement(MS, 0.001)),
    "more_missed": (lambda: even(5_000, 6), Requirement(MS, 0.001)),
    "undecided": (lambda: even(5_000, 5), Requirement(MS, 0.001)),
}


def judged(key: str) -> tuple[RuleRow, Verdict]:
    make, required = PLANTED[key]
    run = run_of(make())
    found, verdict = misses(run, required.deadline_ns), judge_run(run, required, False)
    support = support_of(run, run.examine(required.deadline_ns), required) if found.n else None
    return row_of(found, required, support), verdict


def test_the_table_of_the_page_is_the_rule() -> None:
    section = PAGE.read_text().split("## The rule\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.*) \|$", section, re.M)[1:]  # without the head
    assert rows == [" | ".join((row.seen, row.outcome, row.said, row.do)) for row in ROWS]
    assert {row.key for row in ROWS} == {*PLANTED, "not_judged"}


@pytest.mark.parametrize("key", PLANTED)
def test_each_row_decides_where_it_is_planted(key: str) -> None:
    row, verdict = judged(key)
    assert row.key == key, verdict.reason
    assert verdict.outcome == row.outcome
    assert row.said in verdict.reason


def failed(folder: Path) -> Path:
    error = {"message": "the middleware ended", "field": None, "value": None, "remedy": None, "where": None}
    return write_cell(folder, Made(samples=100, changes={"status": "failed", "error": error}))


CODES = {"pass": 0, "error": 1, "fail": 2, "inconclusive": 3}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_the_command_says_each_row_as_the_page_has_it(
    row: RuleRow, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stored, and read again: the outcome, its words below, and the exit code."""
    cell = tmp_path / "cell"
    if row.key == "not_judged":
        failed(cell)
        asked = ["--deadline", "1ms"]
    else:
        make, required = PLANTED[row.key]
        write_wakeups(cell, make(), requirement=required)
        asked = []
    assert cli.invoke(["verdict", str(cell), *asked]) == CODES[row.outcome]
    said = capsys.readouterr().out
    assert said.splitlines()[0].partition(": ")[2].startswith(f"{row.outcome}: ")
    assert row.said in said


def test_the_horizon_needs_no_bound() -> None:
    """300 of a run that drifts, in one burst: gates refuse a bound, common sense does not."""
    values = climbing(20_000)
    values[9_000:9_300] = LATE
    verdict = judge_run(run_of(values), Requirement(MS, 0.001), False)
    assert verdict.support is not None and verdict.support.upper is None
    assert (verdict.outcome, "without a further miss that is 0.15 %" in verdict.reason) == ("fail", True)
    assert judge_run(run_of(values), Requirement(MS, 0.001, horizon=16), False).outcome == "inconclusive"


@pytest.mark.parametrize(("horizon", "outcome"), [(17.5, "fail"), (17.6, "inconclusive")])
def test_the_horizon_is_so_many_times_the_run(horizon: float, outcome: str) -> None:
    """88 of 5,000, one in a thousand allowed: as many as 88,000 releases may have."""
    required = Requirement(MS, 0.001, horizon=horizon)
    assert judge_run(run_of(burst(5_000, 88)), required, False).outcome == outcome


def test_more_missed_than_is_allowed_asks_for_a_cause_however_few_releases_there_are() -> None:
    """Beside as many as allowed; with a gate that refuses the bound that one is to be mended first."""
    for n, late, key in ((5_000, 6, "more_missed"), (5_000, 5, "undecided"), (900, 1, "more_missed")):
        run, required = run_of(even(n, late)), Requirement(MS, 0.001)
        support = support_of(run, run.examine(MS), required)
        assert row_of(misses(run, MS), required, support).key == key
    run, required = run_of(climbing(20_000)), Requirement(int(climbing(20_000).max()) - 1, 1e-5)
    support = support_of(run, run.examine(required.deadline_ns), required)
    assert row_of(misses(run, required.deadline_ns), required, support).key == "refused"


def test_a_level_at_the_deadline_itself_is_in_time() -> None:
    """A release at its deadline is no miss, and so is one that is extrapolated to."""
    run = run_of(even(60_000))
    level = support_of(run, run.examine(MS), Requirement(MS, criticality="hard")).return_level
    assert level is not None and level.upper_ns is not None
    for deadline_ns, key in ((level.upper_ns, "meets"), (level.upper_ns * (1 - 1e-12), "level_too_high")):
        asked = Requirement(deadline_ns, criticality="hard")  # type: ignore[arg-type]
        support = replace(support_of(run, run.examine(MS), Requirement(MS)), return_level=level)
        assert row_of(Misses("latency", 60_000, 0, 0, 0), asked, support).key == key


@pytest.mark.parametrize("miss_ratio", [None, 0.01, 0.001])
def test_too_few_pass_nothing_and_say_how_many_more(miss_ratio: float | None) -> None:
    required = Requirement(MS, miss_ratio)
    few = judge_run(run_of(even(999)), required, False)
    assert few.outcome == "inconclusive" and few.more_samples is not None
    assert few.more_samples == (1 if miss_ratio != 0.001 else 1_996)
    assert "it takes 1,000" in few.reason
    enough = judge_run(run_of(even(999 + few.more_samples)), required, False)
    assert enough.support is not None and enough.support.design_effect == 1.0
    assert enough.outcome == "pass"


@pytest.mark.parametrize(
    ("late", "lost", "unserved", "said"),
    [
        (1, 4, 4, "see what kept the thread from being free at its releases"),
        (1, 5, 1, "find where messages are dropped"),
        (5, 5, 4, "look at when the late ones came"),
    ],
)
def test_what_was_skipped_at_the_end_was_dropped_nowhere(
    tmp_path: Path, late: int, lost: int, unserved: int, said: str
) -> None:
    """It is lost for want of a later ping to serve it: no delivery mends that."""
    write_wakeups(tmp_path / "cell", even(5_000), requirement=Requirement(MS, 1e-3))
    record = read_cell(tmp_path / "cell").changed(clock={"id": "scripted"})
    assert record.verdict is not None
    missed = {"misses": late + lost, "late": late, "lost": lost, "unserved": unserved}
    verdict = replace(record.verdict, outcome="fail", **missed)
    step = next_step(verdict, [StoredCell(tmp_path / "cell", record)])
    assert step is not None and step.startswith(said)


@pytest.mark.parametrize(("late", "said"), [(5, "measure "), (6, "look at when the late ones came")])
def test_as_many_missed_as_are_allowed_ask_for_more_releases_and_more_for_a_cause(
    tmp_path: Path, late: int, said: str
) -> None:
    required = Requirement(MS, 0.001)
    write_wakeups(tmp_path / "cell", even(5_000, late), requirement=required)
    record = read_cell(tmp_path / "cell").changed(clock={"id": "scripted"})
    verdict = judge_run(run_of(even(5_000, late)), required, False)
    step = next_step(verdict, [StoredCell(tmp_path / "cell", record)])
    assert verdict.outcome == "inconclusive" and step is not None and step.startswith(said)
