"""What several repeats of a condition show is told once, with how many of them do."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rtmeter.judge.joint import _findings, judge_joint
from rtmeter.judge.verdict import Misses, judge_misses
from rtmeter.model import GateFinding, Requirement, Verdict


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
    joint = judge_joint(runs)
    assert (joint.outcome, joint.reason) == ("error", "2 of 3 runs could not be judged: r2: died")
    joint = judge_joint(runs[:1] * 2)
    assert (joint.outcome, joint.reason) == ("inconclusive", "2 of 2 runs could not be judged: r1: empty")
