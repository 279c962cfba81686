"""What the middleware's threads run as: every combination that can be had is read back, the others are
refused, and a result says where the measured thread comes second."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import ros_runs
from dds_runs import threads_of
from probe_runs import Config, measure, needs_fifo, refusal

from front import rtmeter
from rtmeter.measure.probe.probes import find_probes
from stored import cell_json

needs_rcl = pytest.mark.skipif("rcl" not in find_probes(), reason="the adapter rcl is not built here")

CPUS = sorted(os.sched_getaffinity(0))
MEASURED, OTHER = CPUS[-1], CPUS[0]


def elsewhere(*values: Any) -> Any:
    """Parameters that need another CPU than the measured one."""
    return pytest.param(*values, marks=pytest.mark.skipif(OTHER == MEASURED, reason="there is one CPU"))


NODE: Config = ros_runs.of("rcl", ros_runs.MS) | {
    "measurement": "wakeup",
    "before": "init_and_node",
    "scheduling": {"policy": "rr", "priority": 20},
    "cpus": [MEASURED],
}
LOWER = [{"policy": "rr", "priority": 10}, {"policy": "fifo", "priority": 10}]
SAME = [{"policy": "rr", "priority": 20}, {"policy": "fifo", "priority": 20}]


def run_as(config: Config, folder: Path) -> set[tuple[str, int, tuple[int, ...]]]:
    """Policy, priority and CPUs of the middleware's threads; the measured thread's are as they were asked."""
    meta = measure(folder, config)[0].meta
    [measured] = threads_of(meta, "measured").values()
    assert (measured["policy"], measured["priority"], measured["cpus"]) == ("rr", 20, [MEASURED])
    threads = threads_of(meta).values()
    assert len(threads) >= int(meta["adapter"]["threads"]["count"]) > 0
    return {(t["policy"], t["priority"], tuple(t["cpus"])) for t in threads}


@needs_rcl
@needs_fifo
@pytest.mark.parametrize("apply", ["before_init", "after_init"])
@pytest.mark.parametrize("child_threads", [{"policy": "other"}, *LOWER, *SAME])
@pytest.mark.parametrize("cpus", [[MEASURED], elsewhere([OTHER])], ids=str)
def test_every_combination_is_read_back(
    tmp_path: Path, apply: str, child_threads: dict[str, Any], cpus: list[int]
) -> None:
    config = NODE | {"apply": apply, "child_threads": child_threads, "child_cpus": cpus}
    expected = (child_threads["policy"], child_threads.get("priority", 0), tuple(cpus))
    assert run_as(config | {"samples": 20, "warm_up": 0}, tmp_path) == {expected}


@needs_rcl
@needs_fifo
@pytest.mark.parametrize(("apply", "policy"), [("before_init", "rr"), elsewhere("after_init", "other")])
def test_what_a_node_brings_inherits_what_it_meets(tmp_path: Path, apply: str, policy: str) -> None:
    """Threads that a tracer started when the libraries were loaded inherit nothing."""
    meta = measure(tmp_path, NODE | {"apply": apply})[0].meta
    found = [t for t in threads_of(meta).values() if t["policy"] == policy and t["cpus"] == [MEASURED]]
    assert len(found) == int(meta["adapter"]["threads"]["count"]) > 0


@needs_rcl
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"child_cpus": [9999]}, "child_cpus"),
        ({"child_cpus": []}, "child_cpus"),
        ({"child_threads": {"policy": "rr", "priority": 100}}, "child_threads"),
        ({"child_threads": {"policy": "batch"}}, "child_threads"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, changes: Config, field: str) -> None:
    error = refusal(tmp_path, NODE | {"scheduling": {"policy": "other"}} | changes)
    assert error["field"] == field
    assert error["message"] and error["remedy"]


@pytest.mark.parametrize("asked", [{"child_threads": {"policy": "other"}}, {"child_cpus": [OTHER]}])
def test_threads_that_are_not_there_are_told(tmp_path: Path, asked: Config) -> None:
    reader, _ = measure(tmp_path, {"measurement": "wakeup"} | asked)
    assert [warning["type"] for warning in reader.meta["warnings"]] == ["no_child_threads"]


@needs_rcl
@needs_fifo
@pytest.mark.parametrize(
    ("options", "is_found"),
    [
        ([], True),
        (["--child-threads", "fifo:20"], True),
        (["--child-threads", "rr:19"], False),
        (["--apply", "after_init"], False),
        elsewhere(["--child-cpus", str(OTHER)], False),
    ],
)
def test_the_result_says_where_the_measured_thread_comes_second(
    tmp_path: Path, options: list[str], is_found: bool
) -> None:
    how = ["--adapter", "rcl", "--before", "init_and_node", "--scheduling", "rr:20", "--cpus", MEASURED]
    how += ["--samples", 50, "--warm-up", 0, "--out", tmp_path / "cell", "--wait"]
    done = rtmeter("measure", "wakeup", *how, *options)
    assert done.code == 0, done.err
    assert ("middleware_thread_at_or_above" in done.out) == is_found
    found = {finding["id"]: finding for finding in cell_json(tmp_path / "cell")["findings"]}
    assert ("middleware_thread_at_or_above" in found) == is_found
    if is_found:
        finding = found["middleware_thread_at_or_above"]
        assert finding["grade"] == "high"
        assert {item["priority"] for item in finding["items"]} == {20}
