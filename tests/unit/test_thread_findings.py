"""What the audit of a probe's threads says of those of the middleware."""

from __future__ import annotations

from typing import Any

import pytest

from rtmeter import machine
from rtmeter.machine.middleware import BESIDE, check
from rtmeter.model import Measurement

Thread = dict[str, Any]


def _thread(role: str, scheduling: str, *cpus: int, tid: int = 1, name: str = "dds.ev") -> Thread:
    policy, _, priority = scheduling.partition(":")
    facts = {"policy": policy, "priority": int(priority or 0), "cpus": list(cpus)}
    return {"tid": tid, "name": name, "role": role, "timer_slack_ns": 50_000} | facts


@pytest.mark.parametrize(
    ("measured", "child", "is_before"),
    [
        (_thread("measured", "rr:98", 1), _thread("middleware", "rr:98", 1), True),
        (_thread("measured", "rr:98", 1), _thread("middleware", "fifo:98", 1), True),
        (_thread("measured", "fifo:80", 1), _thread("middleware", "rr:81", 0, 1), True),
        (_thread("measured", "fifo:80", 0, 1), _thread("middleware", "fifo:80", 1), True),
        (_thread("measured", "other", 1), _thread("middleware", "fifo:1", 1), True),
        (_thread("measured", "rr:98", 1), _thread("middleware", "rr:97", 1), False),
        (_thread("measured", "rr:98", 1), _thread("middleware", "other", 1), False),
        (_thread("measured", "rr:98", 1), _thread("middleware", "rr:99", 0), False),
        (_thread("measured", "other", 1), _thread("middleware", "other", 1), False),
        (_thread("measured", "deadline", 0, 1), _thread("middleware", "fifo:99", 1), False),
        (_thread("measured", "rr:98", 1), _thread("service", "rr:98", 1), False),
    ],
)
def test_a_thread_at_or_above_on_its_cpus_is_found(measured: Thread, child: Thread, is_before: bool) -> None:
    found = list(check("wakeup", [measured, child]))
    assert [finding.id for finding in found] == ([BESIDE.id] if is_before else [])


@pytest.mark.parametrize(
    ("measurement", "grade"),
    [("wakeup", "high"), ("timer", "medium"), ("roundtrip", "medium"), ("cycle", "medium")],
)
def test_only_beside_a_wake_up_nothing_can_need_it(measurement: Measurement, grade: str) -> None:
    audit = [_thread("measured", "rr:98", 1), _thread("middleware", "rr:98", 1)]
    assert [finding.grade for finding in check(measurement, audit)] == [grade]


def test_threads_are_named_and_all_of_them_listed() -> None:
    children = [_thread("middleware", "rr:98", 1, tid=tid, name=f"dds.{tid}") for tid in range(2, 9)]
    harmless = _thread("middleware", "other", 1, tid=9)
    [finding] = check("wakeup", [_thread("measured", "rr:98", 1), *children, harmless])
    names = ", ".join(f"dds.{tid} ({tid}, rr:98)" for tid in range(2, 7))
    assert finding.value == f"7 threads: {names}, 2 more"
    assert [item["tid"] for item in finding.items] == [*range(2, 9)]
    assert finding.fix


def test_any_of_several_measured_threads_counts() -> None:
    measured = [_thread("measured", "fifo:80", 0, tid=1), _thread("measured", "fifo:70", 1, tid=2)]
    child = _thread("middleware", "fifo:75", 0, 1, tid=3)
    assert list(check("cycle", [measured[0], child])) == []
    assert [finding.id for finding in check("cycle", [*measured, child])] == [BESIDE.id]


def test_it_stands_among_the_findings_of_the_machine() -> None:
    machines = [{"id": "fatal_one", "grade": "fatal"}, {"id": "info_one", "grade": "info"}]
    audit = [_thread("measured", "rr:98", 1), _thread("middleware", "rr:98", 1)]
    found = machine.with_threads(machines, "wakeup", audit)
    assert [finding["id"] for finding in found] == ["fatal_one", BESIDE.id, "info_one"]
    assert machine.with_threads(machines, "wakeup", audit[:1]) == machines
