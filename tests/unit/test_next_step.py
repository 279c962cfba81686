"""The one step after a verdict: what is to be mended, where to look, or how much more to measure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_joint_support import PLAIN, run

from rtmeter.judge.next_step import SLOPE, next_step
from rtmeter.judge.rule import LEVEL_TOO_HIGH, NO_LEVEL
from rtmeter.model import GateFinding, Requirement, ReturnLevel, Verdict
from rtmeter.results.cells import StoredCell

PASSES = ": if none of them misses, it passes"
HARD = Requirement(1_000, criticality="hard")
LEVEL = ReturnLevel(1.0, 900.0, 800.0, 1_000.0, 0.0, None, ())


def cell(**about: Any) -> StoredCell:
    facts: dict[str, Any] = {"error": None, "measurement": "wakeup", "imported": False, "clock": {}}
    facts |= {"tick_ns": None, "requirement": None, "endured": {}, "n_of": lambda _: 5_000}
    record: Any = SimpleNamespace(**facts | about)
    return StoredCell(Path("cell"), record)


def step(outcome: str = "inconclusive", *runs: StoredCell, **about: Any) -> str:
    """After a verdict on 5,000 releases of which one in twenty may miss; empty if there is none."""
    verdict: Verdict = replace(run(0), **{"outcome": outcome, "more_samples": None} | about)
    return next_step(verdict, runs or [cell()]) or ""


def refused(*found: tuple[str, str, float | None]) -> Any:
    findings = (GateFinding(kind, statistic, value, "refuse", "seen") for kind, statistic, value in found)
    return replace(PLAIN, findings=tuple(findings))


@pytest.mark.parametrize(
    ("about", "begins"),
    [
        ({}, "allow more misses"),
        ({"misses": 250, "more_samples": 9}, "measure 9 more releases"),
        ({"misses": 251, "late": 251, "more_samples": 9}, "measure again with --explain"),
        ({"misses": 10, "misses_between": (0, 10), "more_samples": 9}, "ask for a deadline between two bins"),
        ({"misses": 10, "late": 10}, "measure again with --explain"),
    ],
)
def test_where_too_few_releases_tell_more_are_measured_unless_that_cannot_help(
    about: dict[str, Any], begins: str
) -> None:
    assert step(**about).startswith(begins)


@pytest.mark.parametrize(
    ("found", "begins"),
    [
        ([("skips_unseen", "releases", 9.0)], "import the file again with --period"),
        ([("dropped", "last bin in ns", 9.0)], "measure again with a histogram that reaches further"),
        ([("unlike", "settings", 1.0)], "give all repeats the same settings"),
        ([("drift", SLOPE, 2.0)], "find out why the delay grows"),
        ([("stationarity", SLOPE, 2.0)], "find out why the delay grows"),
        ([("drift", SLOPE, -2.0)], "give it a longer warm-up"),
        ([("overload", SLOPE, -2.0)], "give the loop less to do"),
        ([("stationarity", "KPSS", 2.0)], "find out what the machine did"),
        ([("change_point", "change points", 1.0), ("drift", SLOPE, -2.0)], "give it a longer warm-up"),
        ([("too_few", "releases", 900.0)], "allow more misses"),
    ],
)
def test_what_refuses_the_bound_is_mended_first(found: list[tuple[str, str, float]], begins: str) -> None:
    assert step(support=refused(*found)).startswith(begins)
    told = tuple(replace(one, consequence="info") for one in refused(*found).findings)
    assert step(support=replace(PLAIN, findings=told)).startswith("allow more misses")


def test_a_delay_that_falls_all_along_is_of_a_clocks_rate_which_no_warm_up_ends() -> None:
    assert "where it falls all along, mend the rate" in step(support=refused(("drift", SLOPE, -2.0)))


@pytest.mark.parametrize(
    ("kinds", "n", "said"),
    [
        (["within_the_run"], 20_000, "ask for a longer time"),
        (["outlier"], 20_000, "look at the latest releases: they have a cause of their own"),
        (["mixture"], 20_000, "look at the latest releases: they have a cause of their own"),
        (["too_few_maxima"], 2_499, "measure 1 more releases at least"),
        (["too_few_maxima"], 2_500, NO_LEVEL.do),
        (["too_few_maxima", "outlier"], 2_499, "look at the latest releases"),
        ([], 20_000, NO_LEVEL.do),
    ],
)
def test_what_a_hard_deadlines_level_lacks_is_the_step(kinds: list[str], n: int, said: str) -> None:
    findings = refused(*((kind, "", 1.0) for kind in kinds)).findings
    level = replace(LEVEL, upper_ns=None, findings=findings)
    found = step(requirement=HARD, support=replace(PLAIN, return_level=level), n=n)
    assert found.startswith(said)


def test_a_level_at_the_deadline_asks_for_nothing_and_one_beyond_it_for_a_cause() -> None:
    for upper_ns, said in ((1_000.0, "allow more misses"), (1_001.0, LEVEL_TOO_HIGH.do)):
        level = replace(LEVEL, upper_ns=upper_ns)
        assert step(requirement=HARD, support=replace(PLAIN, return_level=level)).startswith(said)
    assert step(requirement=HARD) == step(requirement=HARD, support=None) == NO_LEVEL.do


@pytest.mark.parametrize(
    ("about", "of", "begins"),
    [
        ({"late": 3, "skipped": 2}, {}, "measure again with --explain"),
        ({"late": 2, "skipped": 3}, {"imported": True}, "see what kept the thread from being free"),
        ({"late": 3, "lost": 2}, {"imported": True}, "look at when the late ones came"),
        ({"late": 2, "lost": 3}, {}, "find where messages are dropped"),
        ({"late": 2, "lost": 3}, {"measurement": "timer"}, "find out why shots never fired"),
        ({"late": 3, "support": replace(PLAIN, growth="unknown")}, {}, "measure the same with rtmeter"),
        ({"late": 3, "support": refused(("overload", SLOPE, 1.0))}, {}, "give the loop less to do"),
        (
            {"late": 3, "support": refused(("overload", SLOPE, 1.0), ("drift", SLOPE, 1.0))},
            {},
            "find out why the delay grows",
        ),
        ({"late": 3, "support": refused(("drift", SLOPE, -1.0))}, {}, "measure again with --explain"),
    ],
)
def test_after_misses_it_is_said_where_to_look(
    about: dict[str, Any], of: dict[str, Any], begins: str
) -> None:
    assert step("fail", cell(**of), misses=5, **about).startswith(begins)


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"more_samples": 1}, "measure 1 more release (0.001 s): if all are in time, it passes"),
        ({"more_samples": 2_000}, "measure 2,000 more releases (2 s): if all are in time, it passes"),
        ({"more_samples": 5_000, "more_runs": 1}, f"measure 1 more run such as these (5 s){PASSES}"),
        ({"more_samples": 5_000, "more_runs": 2}, f"measure 2 more runs such as these (5 s){PASSES}"),
        (
            {"more_samples": 12_000, "more_runs": 2},
            f"measure 2 runs of 6,000 releases each (6 s) instead of 5,000{PASSES}",
        ),
    ],
)
def test_how_much_more_to_measure_is_told_in_releases_runs_and_time(about: dict[str, Any], said: str) -> None:
    assert step("inconclusive", cell(tick_ns=1_000_000), **about) == said


def test_runs_that_miss_pass_if_they_go_on_so_and_longer_ones_if_no_more_do() -> None:
    more = {"misses": 3, "late": 3, "more_runs": 2}
    assert step(more_samples=10_000, **more).endswith("such as these: if they miss as often, it passes")
    assert step(more_samples=12_000, **more).endswith("instead of 5,000: if no more of them miss, it passes")


def test_runs_that_are_too_short_by_themselves_are_measured_anew() -> None:
    for fewest, said in (
        (999, "measure 2 runs of 2,500 releases each instead of these"),
        (1_000, "measure 2 "),
    ):
        runs = cell(), cell(n_of=lambda _, fewest=fewest: fewest)
        found = step("inconclusive", *runs, more_samples=5_000, more_runs=2)
        assert found.startswith(said) and ("such as these" in found) == (fewest == 1_000)


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        ((1.0, 2.0), "; if they miss as often, 2 h more"),
        ((1.0, None), "; if they miss as often, no length passes"),
        ((None, 2.0), ""),
    ],
)
def test_of_a_run_that_missed_it_is_said_how_long_it_takes_if_that_goes_on(
    hours: tuple[float | None, float | None], said: str
) -> None:
    support = replace(PLAIN, more_hours=hours[0], expected_hours=hours[1])
    measure = "measure 9 more releases: if all are in time, it passes"
    assert step(misses=3, late=3, more_samples=9, support=support) == f"{measure}{said}"
    assert step(more_samples=9, support=support) == measure, "none missed"


@pytest.mark.parametrize(
    ("outcome", "remedies", "said"),
    [
        ("error", [], "measure the cell again"),
        ("inconclusive", [], "measure 60 more releases: if all are in time, it passes"),
        ("error", [None, "plug it in"], "plug it in"),
        ("inconclusive", ["build it"], "build it"),
    ],
)
def test_where_nothing_was_measured_what_the_error_says_is_done(
    outcome: str, remedies: list[str | None], said: str
) -> None:
    runs = [cell(error=SimpleNamespace(remedy=remedy)) for remedy in remedies]
    assert step(outcome, *runs, n=0, more_samples=60) == said


def test_after_a_pass_with_a_miss_there_is_no_step() -> None:
    assert step("pass", misses=1, late=1) == ""
    assert step("pass").startswith("nothing for this requirement. To show that fewer than 1 in ")
