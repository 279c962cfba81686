"""What the joint verdict of several runs rests on: sums, extremes, what refuses a bound in one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_verdict_counted import DATA, judged

from rtmeter.judge.joint import _longer_runs, _may_differ, _more_runs, judge_condition, judge_joint
from rtmeter.judge.verdict import Misses, judge_misses
from rtmeter.model import GateFinding, Requirement, ReturnLevel, Support, Verdict
from rtmeter.results.store import read_cell
from rtmeter.statistics.joint import RunMisses, joint, runs_needed
from wakeups import draw, write_wakeups

ASKED = Requirement(deadline_ns=1_000, miss_ratio=0.05)
PLAIN = Support(
    *(2, 1, None, None, None, 1.0, 5_000.0, 1e-4, 1e-3, 36.0, 360.0),
    *(None, None, "bounded", (), None, None, None, None, None, ()),
)
"""Of a run of ten releases a second."""


def run(misses: int = 3, asked: Requirement = ASKED, n: int = 5_000, **support: Any) -> Verdict:
    return judge_misses(Misses("latency", n, misses, 0, 0), asked, replace(PLAIN, **support))


def together(*runs: Verdict, known: tuple[GateFinding, ...] = ()) -> tuple[Verdict, Support]:
    verdict = judge_joint([(f"r{number}", one) for number, one in enumerate(runs, 1)], known)
    assert verdict.support is not None
    return verdict, verdict.support


def finding(kind: str, value: float, consequence: Any = "info", message: str = "seen") -> GateFinding:
    return GateFinding(kind, "", value, consequence, message)


def test_the_extremes_of_all_runs_are_those_of_the_run_that_has_them() -> None:
    first = run(clusters=2, longest_run=7, largest_lateness_ns=10.0, extremal_index=0.9, causes=("relative",))
    second = run(clusters=3, longest_run=4, largest_lateness_ns=80.0, extremal_index=0.4, causes=("other",))
    for found in (together(first, second)[1], together(second, first)[1]):
        assert (found.clusters, found.longest_run, found.largest_lateness_ns) == (5, 7, 80.0)
        assert (found.extremal_index, {*found.causes}) == (0.4, {"relative", "other"})
    assert together(first, run(clusters=None))[1].clusters is None


def test_the_slope_is_the_steepest_either_way_and_growth_is_told_of_any_run() -> None:
    flat, falling = run(slope_ns_per_s=2.0), run(slope_ns_per_s=-9.0, growth="drifting")
    for found in (together(flat, falling)[1], together(falling, flat)[1]):
        assert (found.slope_ns_per_s, found.growth) == (-9.0, "drifting")


def test_the_bounds_per_hour_are_those_of_the_ratio_times_the_releases_of_an_hour() -> None:
    found = together(run(), run())[1]
    assert found.lower is not None and found.upper is not None and found.lower < found.upper
    assert found.upper_per_hour == pytest.approx(360_000 * found.upper)
    assert found.lower_per_hour == pytest.approx(360_000 * found.lower)
    assert found.design_effect > 1 and found.effective_n == pytest.approx(10_000 / found.design_effect)


def test_what_refuses_the_bound_of_one_run_refuses_that_of_all() -> None:
    refusing = finding("drift", 1.0, "refuse", "it drifts")
    verdict, found = together(run(), run(findings=(refusing,)))
    assert (found.lower, found.upper, found.upper_per_hour) == (None, None, None)
    assert (verdict.outcome, "it drifts" in verdict.reason) == ("inconclusive", True)
    verdict, found = together(run(), run(), known=(finding("unlike", 1.0, "refuse", "they are two"),))
    assert found.upper is None and "they are two" in verdict.reason


def test_lost_releases_of_all_runs_are_summed() -> None:
    found = together(*(run(findings=(finding("lost", lost),)) for lost in (2.0, 3.0)))[1]
    (lost,) = (one for one in found.findings if one.type == "lost")
    assert lost.value == 5.0 and lost.message.startswith("5 of 10,000 releases were lost")


def test_of_runs_that_do_not_tell_how_many_releases_an_hour_has_no_bound_an_hour_is_stated() -> None:
    none = run(lower_per_hour=None, upper_per_hour=None)
    found = together(none, none)[1]
    assert found.upper is not None and (found.lower_per_hour, found.upper_per_hour) == (None, None)
    found = together(none, run())[1]
    assert found.upper is not None and found.upper_per_hour == pytest.approx(360_000 * found.upper)


def test_what_further_releases_one_run_asks_for_is_not_said_of_all() -> None:
    found = together(*(run(more_hours=1.0, expected_hours=2.0) for _ in range(2)))[1]
    assert (found.more_hours, found.expected_hours) == (None, None)


def test_by_how_much_half_of_the_late_ones_were_late_is_told_of_one_run_only() -> None:
    """The median of all is in none of them."""
    asked = replace(ASKED, criticality="soft")
    runs = [run(asked=asked, median_lateness_ns=5e3, largest_lateness_ns=most) for most in (9e3, 8e4)]
    assert "half of the late ones come within 5 us after the deadline, all within 9 us" in runs[0].reason
    verdict, found = together(*runs)
    assert found.median_lateness_ns is None
    assert "; the late ones come within 80 us after the deadline" in verdict.reason
    assert "half" not in verdict.reason


def test_what_more_missed_than_is_allowed_takes_no_further_releases() -> None:
    verdict, _ = together(*(run(251) for _ in range(2)))
    assert "more missed than is allowed" in verdict.reason
    assert (verdict.outcome, verdict.more_samples) == ("inconclusive", None)


def test_what_fails_whatever_else_is_measured_says_nothing_of_how_far_runs_lie_apart() -> None:
    asked = Requirement(deadline_ns=1_000, miss_ratio=0.008, horizon=2)
    verdict, _ = together(*(run(misses, asked) for misses in (0, 0, 300)))
    assert verdict.outcome == "fail" and "times as many releases" in verdict.reason
    assert "differ more than" not in verdict.reason
    verdict, _ = together(*(run(misses) for misses in (0, 0, 300)))
    assert "differ more than" in verdict.reason


@pytest.mark.parametrize(("misses", "apart"), [((0, 0, 30), True), ((10, 10, 10), False)])
def test_of_runs_that_pass_it_is_said_where_they_lie_apart(misses: tuple[int, ...], apart: bool) -> None:
    verdict, _ = together(*map(run, misses))
    assert (
        verdict.outcome == "pass"
        and (f"; the {len(misses)} runs differ more than" in verdict.reason) == apart
    )


@pytest.mark.parametrize(("highest_ns", "outcome"), [(1_000.0, "pass"), (1_001.0, "inconclusive")])
def test_a_hard_deadline_is_judged_by_the_run_with_the_highest_level(highest_ns: float, outcome: str) -> None:
    asked = Requirement(deadline_ns=1_000, criticality="hard")
    levels = [ReturnLevel(1.0, 500.0, 400.0, upper_ns, 0.0, None, ()) for upper_ns in (600.0, highest_ns)]
    verdict, found = together(*(run(0, asked, return_level=level) for level in levels))
    assert found.return_level is not None and found.return_level.upper_ns == highest_ns
    assert verdict.outcome == outcome and "in r2, the highest of 2 runs" in verdict.reason
    assert together(run(0, asked), run(0, asked, return_level=levels[0]))[0].outcome == "inconclusive"


def test_a_run_of_just_as_many_releases_as_are_looked_at_is_not_too_short() -> None:
    asked = Requirement(deadline_ns=1_000, miss_ratio=0.01)
    short, whole = (judge_misses(Misses("latency", n, 0, 0, 0), asked) for n in (999, 1_000))
    found = joint([RunMisses(999, 0, 1.0), RunMisses(1_000, 0, 1.0)], 0.95)
    assert "1 of 2 runs are too short" in _longer_runs(short, [short, whole], found).reason


def test_without_a_miss_as_many_runs_again_are_proposed_and_longer_ones_only_beyond() -> None:
    found = joint([RunMisses(420, 0, 1.0)] * 2, 0.95)
    seen = Misses("latency", 840, 0, 0, 0)
    for miss_ratio, needed in ((0.004, 4), (0.002, 5)):
        assert runs_needed(found, miss_ratio, 0.95) == needed
        verdict = judge_misses(seen, Requirement(1, miss_ratio), None, (0.0, found.upper))
        verdict = _more_runs(verdict, found)
        assert verdict.more_runs == 2 and verdict.more_samples is not None
        assert (verdict.more_samples == 840) == (needed == 4)


@pytest.mark.parametrize(("spread", "said"), [(0.96, "as much as the ratio itself"), (0.94, "94 % of the")])
def test_room_for_what_few_runs_do_not_show_is_told(spread: float, said: str) -> None:
    assert said in _may_differ(replace(joint([RunMisses(5_000, 3, 1.0)] * 2, 0.95), spread=spread))


def test_misses_that_are_certain_fail_and_possible_ones_alone_leave_it_open() -> None:
    one = judged(1_500, 1e-5, replace(DATA, dropped=True))
    all_of = judge_joint([("r1", one), ("r2", one)])
    assert (all_of.outcome, all_of.misses, all_of.misses_between) == ("fail", 20, (20, 2_000))
    one = judged(2_500, 0.05, DATA)
    all_of = judge_joint([("r1", one), ("r2", one)])
    assert (all_of.outcome, all_of.misses, all_of.misses_between) == ("pass", 20, (0, 20))
    one = judged(1_500, 0.05, DATA)
    all_of = judge_joint([("r1", one), ("r2", one)])
    assert all_of.outcome == "inconclusive"
    assert all_of.reason.endswith("of some releases it is not known whether they missed")


def test_runs_of_which_another_thing_was_in_effect_are_no_condition(tmp_path: Path) -> None:
    asked = Requirement(deadline_ns=1_000_000, miss_ratio=0.01)
    cells = [
        write_wakeups(tmp_path / f"c-r{n}", draw(n, 2_000), repeat=n, requirement=asked, changes=changes)
        for n, changes in ((1, {}), (2, {"effective": {"cpus": [0]}}))
    ]
    records = [read_cell(cell) for cell in cells]
    verdicts = [record.verdict for record in records if record.verdict is not None]
    verdict = judge_condition(records, verdicts)
    assert verdict.support is not None and verdict.support.upper is None
    assert "effective.cpus differs" in verdict.reason and "of c-r1" in verdict.reason
    assert judge_condition(records[:1] * 2, verdicts[:1] * 2).outcome == "pass"
