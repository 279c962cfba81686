"""What several repeats of a condition show is told once, with how many of them do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rtmeter.judge.joint import _findings
from rtmeter.model import GateFinding


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
