"""What several repeats of a condition show is told once, with how many of them do."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rtmeter.judge.joint import _findings, _more_runs, judge_joint
from rtmeter.judge.verdict import Misses, judge_misses
from rtmeter.model import GateFinding, Requirement, Verdict
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
    verdict = _more_runs(empty("inconclusive", "undecided"), found, asked)
    runs = int(verdict.reason.split(" further run")[0].split()[-1])
    assert runs >= 1 and verdict.more_samples == 10_000 * runs
    assert runs_needed(found, 1e-3, 0.95) == 3 + runs
    more = replace(found, runs=2 + runs, n=10_000 * (2 + runs), misses=2 * (2 + runs))
    assert runs_needed(more, 1e-3, 0.95) == 3 + runs


def test_each_miss_of_all_runs_is_counted_once_by_its_kind() -> None:
    one = judge_misses(Misses("latency", 5_000, 3, 2, 1), Requirement(deadline_ns=1))
    all_of = judge_joint([("r1", one), ("r2", one)])
    assert (all_of.n, all_of.misses) == (10_000, 12)
    assert (all_of.late, all_of.skipped, all_of.lost) == (6, 4, 2)
