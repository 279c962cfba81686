"""Real-time settings as options of the command line, in effect while the posix probe measures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cpus import takes_deadline
from front import rtmeter
from stored import cell_json

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root")
MEASURE = ["measure", "wakeup", "--adapter", "posix", "--samples", "20", "--warm-up", "0s"]


@pytest.mark.parametrize(
    ("asked", "policy"),
    [
        ("fifo:80", {"policy": "fifo", "priority": 80}),
        ("rr:7", {"policy": "rr", "priority": 7}),
        pytest.param(
            "deadline:500us/1ms/1ms",
            {"policy": "deadline", "runtime_ns": 500_000, "deadline_ns": 1_000_000, "period_ns": 1_000_000},
            marks=takes_deadline,
        ),
    ],
)
def test_the_policy_is_that_of_the_measured_thread(
    asked: str, policy: dict[str, object], tmp_path: Path
) -> None:
    done = rtmeter(*MEASURE, "--scheduling", asked, "--out", tmp_path / "cell")
    assert done.code == 0, done.err
    assert f"conditions: policy {asked}, " in done.out
    cell = cell_json(tmp_path / "cell")
    assert cell["effective"]["scheduling"] == policy
    threads = [thread for thread in cell["threads"]["client"] if thread["role"] == "measured"]
    assert [{key: thread[key] for key in policy} for thread in threads] == [policy]


def test_memory_cpu_and_idle_states(tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    asked = ["--lock-memory", "--prefault-stack", "512KiB", "--prefault-heap", "8MiB", "--cpus", cpu]
    done = rtmeter(*MEASURE, *asked, "--cpu-dma-latency", "--out", tmp_path / "cell")
    assert done.code == 0, done.err
    effective = cell_json(tmp_path / "cell")["effective"]
    assert effective["memory_locked"] is True
    assert (effective["cpu_dma_latency"], effective["cpus"]) == (0, [cpu])
    assert (effective["prefault_stack_bytes"], effective["prefault_heap_bytes"]) == (512 << 10, 8 << 20)
    assert f"CPUs {cpu}, memory locked, idle states held off" in done.out
