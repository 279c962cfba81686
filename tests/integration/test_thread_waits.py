"""The finding of the experiment of 2020, by who ran and not by how long it took: a measured thread waits for
threads of the middleware that have its policy, its priority and its CPU, and for no others."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable

import pytest

from kernel_trace import Trace, UnavailableError, Waits
from rtmeter.conditions.tracing import sweep
from rtmeter.host.root import Root
from rtmeter.measure.probe.probes import find_probes
from thread_waits import count, two_cpus, variants

ADAPTERS = [
    pytest.param("rcl", marks=pytest.mark.skipif("rcl" not in find_probes(), reason="rcl is not built here")),
    pytest.param(
        "ros2",
        marks=pytest.mark.skipif(
            "ros2" not in find_probes() or not os.environ.get("AMENT_PREFIX_PATH"),
            reason="no ROS 2 is sourced, or the adapter ros2 is not built with it",
        ),
    ),
]


def counted(adapter: str, policy: str, which: int, nodes: int) -> tuple[Waits, str]:
    """The counts of a variant of bench/thread_waits.py, and what to say where they are not as they should."""
    try:
        cpu, other = two_cpus()
        name, variant = list(variants(policy, cpu, other).items())[which]
        waits, threads = count(adapter, variant, other, nodes)
    except UnavailableError as missing:
        pytest.skip(str(missing))
    seen = [f"{t['name']} {t['policy']}:{t['priority']} on {t['cpus']}" for t in threads]
    return waits, f"middleware's threads {name}: {waits}; the threads: {', '.join(seen)}"


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("policy", ["rr", "fifo"])
def test_it_waits_for_threads_of_its_priority_on_its_cpu(
    adapter: str, policy: str, sized: Callable[..., int]
) -> None:
    waits, seen = counted(adapter, policy, 0, sized("nodes", reduced=8, full=60))
    assert waits.ran_on > 0, seen
    assert waits.preempted == 0, seen


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("which", [1, 2], ids=["below", "other"])
def test_it_pre_empts_threads_below_it(adapter: str, which: int, sized: Callable[..., int]) -> None:
    waits, seen = counted(adapter, "rr", which, sized("nodes", reduced=8, full=60))
    assert waits.preempted > 0, seen
    assert waits.ran_on == 0, seen


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_it_does_not_meet_threads_on_another_cpu(adapter: str, sized: Callable[..., int]) -> None:
    waits, seen = counted(adapter, "rr", 3, sized("nodes", reduced=8, full=60))
    assert waits.elsewhere > 0, seen
    assert waits.releases > 0, seen
    assert (waits.ran_on, waits.preempted, waits.slept) == (0, 0, 0), seen


def test_a_run_that_tidies_up_leaves_its_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID("99999999-aaaa-bbbb-cccc-dddddddddddd"))
    try:
        with Trace() as trace:
            sweep(Root())
            assert trace.events() == []
    except UnavailableError as missing:
        pytest.skip(str(missing))
