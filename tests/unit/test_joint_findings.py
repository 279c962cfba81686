"""What several repeats of a condition show is told once, with how many of them do."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from test_verdict_counted import DATA, judged

from rtmeter.judge.joint import _findings, _longer_runs, _more_runs, _worst_level, judge_joint
from rtmeter.judge.verdict import Misses, judge_misses
from rtmeter.model import GateFinding, Requirement, ReturnLevel, Verdict
from rtmeter.statistics.joint import RunMisses, joint, runs_needed


def of(*messages: str) -> Any:
    return SimpleNamespace(
        findings=[GateFinding("dependence", "", 1.0, "deflate", said) for said in messages]
    )


def test_a_run_with_two_findings_of_a_type_is_one_run() -> None:
    (finding,) = _findings([("a", of("x", "y")), ("b", of("x", "z")), ("c", of())])
    assert finding.message == "2 of 3 runs, as in a: x"
    (finding,) = _findings([("a", of("x", "y")), ("b", of())])
    assert finding.message == "a: x"


def test_what_all_runs_say_alike_names_none() -> None:
    (finding,) = _findings([("a", of("x")), ("b", of("x"))])
    assert finding.message == "x"


def test_what_each_run_says_of_itself_in_numbers_is_not_said_of_all() -> None:
    (finding,) = _findings([("a", of("2 releases were skipped")), ("b", of("2 releases were skipped"))])
    assert finding.message == "each run: 2 releases were skipped"


def test_what_some_runs_say_alike_names_one_and_how_many() -> None:
    (finding,) = _findings([("a", of("x")), ("b", of("x")), ("c", of())])
    assert finding.message == "2 of 3 runs, as in a: x"


def weighed(message: str, value: float | None, consequence: Any = "deflate") -> Any:
    return SimpleNamespace(findings=[GateFinding("dependence", "", value, consequence, message)])


def test_of_the_runs_that_have_a_finding_the_one_with_most_of_it_is_named() -> None:
    """A slope that falls as one that rises; None is infinite."""
    runs = [("a", weighed("x", 1.0)), ("b", weighed("y", -3.0)), ("c", weighed("z", 2.0))]
    assert [one.message for one in _findings(runs)] == ["3 of 3 runs, as in b: y"]
    runs.append(("d", weighed("w", None)))
    assert [one.message for one in _findings(runs)] == ["4 of 4 runs, as in d: w"]


def test_what_refuses_the_bound_of_one_run_is_not_lost_in_what_widens_that_of_another() -> None:
    found = _findings([("a", weighed("x", 9.0)), ("b", weighed("y", 2.0, "refuse"))])
    assert [(one.consequence, one.message) for one in found] == [("deflate", "a: x"), ("refuse", "b: y")]


def test_a_return_level_of_several_runs_names_the_run_that_it_is_of() -> None:
    """The highest of those that are stated; one that is not stated refuses it."""
    low, high = (ReturnLevel(1.0, 1.0, 1.0, upper, 0.0, None, ()) for upper in (2.0, 3.0))
    refused = GateFinding("lost", "releases lost", 1.0, "refuse", "1 of 5,000 releases were lost")
    runs: Any = [(name, SimpleNamespace(return_level=one)) for name, one in (("a", low), ("b", high))]
    level = _worst_level(runs)
    assert level is not None and level.upper_ns == 3.0
    assert [one.message for one in level.findings] == ["in b, the highest of 2 runs, each by itself"]
    none = replace(low, level_ns=None, lower_ns=None, upper_ns=None, findings=(refused,))
    level = _worst_level([*runs, ("c", SimpleNamespace(return_level=none))])
    assert level is not None and level.upper_ns is None
    assert [one.message for one in level.findings] == ["c: 1 of 5,000 releases were lost"]
    assert _worst_level([*runs, ("c", SimpleNamespace(return_level=None))]) is None  # type: ignore[arg-type]


def empty(outcome: Any, reason: str) -> Verdict:
    nothing = judge_misses(Misses("latency", 0, 0, 0, 0), Requirement(deadline_ns=1))
    return replace(nothing, outcome=outcome, reason=reason)


def test_a_run_that_failed_decides_before_one_that_is_empty() -> None:
    runs = [
        ("r1", empty("inconclusive", "empty")),
        ("r2", empty("error", "died")),
        ("r3", empty("error", "x")),
    ]
    all_of = judge_joint(runs)
    assert (all_of.outcome, all_of.reason) == ("error", "2 of 3 runs could not be judged: r2: died")
    all_of = judge_joint(runs[:1] * 2)
    assert (all_of.outcome, all_of.reason) == ("inconclusive", "2 of 2 runs could not be judged: r1: empty")


def test_the_further_samples_are_those_of_the_further_runs() -> None:
    asked = Requirement(deadline_ns=1, miss_ratio=1e-3)
    found = joint([RunMisses(10_000, 2, 1.0)] * 3, 0.95)
    seen = Misses("latency", 30_000, 6, 0, 0)
    verdict = _more_runs(judge_misses(seen, asked, None, (found.lower, found.upper)), found)
    runs = verdict.more_runs or 0
    assert runs >= 1 and verdict.more_samples == 10_000 * runs
    assert runs_needed(found, 1e-3, 0.95) == 3 + runs
    more = replace(found, runs=2 + runs, n=10_000 * (2 + runs), misses=2 * (2 + runs))
    assert runs_needed(more, 1e-3, 0.95) == 3 + runs


def test_each_miss_of_all_runs_is_counted_once_by_its_kind() -> None:
    one = judge_misses(Misses("latency", 5_000, 3, 2, 1), Requirement(deadline_ns=1))
    all_of = judge_joint([("r1", one), ("r2", one)])
    assert (all_of.n, all_of.misses) == (10_000, 12)
    assert (all_of.late, all_of.skipped, all_of.lost) == (6, 4, 2)


def test_what_was_skipped_with_no_later_ping_is_told_of_several_runs_as_of_one() -> None:
    one = judge_misses(Misses("response", 5_000, 0, 0, 1, 1), Requirement(deadline_ns=1))
    assert "(1 lost, skipped with no later ping to serve it)" in one.reason
    all_of = judge_joint([(name, one) for name in ("r1", "r2", "r3")])
    assert "(3 lost, all of them skipped with no later ping to serve them)" in all_of.reason
    assert (all_of.lost, all_of.unserved) == (3, 3)


def test_runs_too_short_by_themselves_are_told_how_long_each_has_to_be() -> None:
    """The releases that all need together, in equal shares that are not too short; 1,568 three times."""
    short = judge_misses(Misses("latency", 900, 1, 0, 0), Requirement(deadline_ns=1, miss_ratio=0.01))
    all_of = replace(short, n=2_700, misses=3, more_samples=2_003)
    found = joint([RunMisses(900, 1, 1.0)] * 3, 0.95)
    longer = _longer_runs(all_of, [short] * 3, found)
    assert (longer.more_samples, longer.more_runs) == (3 * 1_568, 3)
    assert _longer_runs(replace(all_of, more_samples=10), [short] * 3, found).more_samples == 3_000


def test_misses_that_are_possible_alone_fail_no_repeats() -> None:
    """Also where why one run would fail is told in two parts."""
    data = replace(DATA, dropped=True)
    one = judged(1_500, 1e-2, data)
    all_of = judge_joint([("r1", one), ("r2", one)])
    assert (all_of.outcome, all_of.misses_between) == ("inconclusive", (20, 2_000))
    assert all_of.reason == (
        "20 to 2,000 of 20,000 releases missed the deadline of 1.5 us on latency: whether the requirement is "
        "met is not known; of some releases it is not known whether they missed"
    )
