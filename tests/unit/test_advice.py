"""What the trace tells that mends a cause: the edges of who is moved, raised, or told to call less."""

from __future__ import annotations

from typing import Any

import pytest
from test_why import HOG, LOCKED, MOVE, NICE_0, RAISE, ranked

from rtmeter.explain.causes import Ranked
from rtmeter.explain.facts import CauseFacts
from rtmeter.explain.passed_over import Throttled
from rtmeter.judge.advice import advice

NORMAL = "give this thread a real-time priority"
BELOW = f"{NORMAL}: normal tasks share the CPU"
BEFORE = "before its loop, or another thread of less priority"
SLEEP = "let the program sleep until the release itself, an absolute time (TIMER_ABSTIME)"


def displaced(
    who: str | None, facts: CauseFacts = HOG, relation: str | None = "above", **told: Any
) -> Ranked:
    return ranked("displaced", who, relation, facts=facts, **told)


def throttled(by: Throttled) -> dict[str, Any]:
    return {"throttled_ns": 800_000, "throttled_as": by}


def called(name: str | None, **facts: Any) -> Ranked:
    """It waits in a system call, for the thread 88."""
    return ranked("blocked", "holder", facts=CauseFacts(88, call=name, **facts))


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (displaced("hog", **throttled(Throttled.NORMAL)), None),
        (displaced("hog", relation=None), None),
        (displaced("hog", CauseFacts(waiting=100), "below"), BELOW),
        (displaced("hog", CauseFacts(waiting=99), "below"), None),
        (displaced("hog", CauseFacts(), "below"), None),
        (
            displaced("hog", HOG._replace(priority=-1)),
            "move hog (thread 77, deadline) off CPU 1 (taskset -pc 0,2-3 77)",
        ),
        (displaced("hog", HOG._replace(priority=1)), f"{MOVE.replace('90', '98')}, {RAISE}"),
        (displaced("hog", CauseFacts(tid=77)), "move hog (thread 77) to another CPU (taskset -pc CPUS 77)"),
        (displaced("hog", CauseFacts(cpu=1)), "move hog off CPU 1"),
        (displaced("[kworker/1:0H-kblockd]", HOG._replace(priority=100)), NORMAL),
        (
            displaced("[kworker/u8:1]", CauseFacts(priority=NICE_0)),
            "move [kworker/u8:1] (nice 0) to another CPU "
            f"(echo MASK > /sys/devices/virtual/workqueue/cpumask), or {NORMAL}",
        ),
        (
            displaced("[irq/24-pcie/0]", CauseFacts(priority=49)),
            "move [irq/24-pcie/0] (real-time priority 50) to another CPU "
            f"(echo CPUS > /proc/irq/24/smp_affinity_list), {RAISE}",
        ),
        (ranked("own_kernel", "write"), f"let this thread call write {BEFORE}"),
        (ranked("own_kernel", "sendto"), None),
        (ranked("own_kernel", "recvmsg"), None),
        (ranked("own_kernel"), None),
        (ranked("own", faults=20, of="server"), LOCKED),
        (ranked("armed_later"), SLEEP),
        (ranked("armed_later", of="server"), None),
        (ranked("interrupt"), None),
        (ranked("interrupt", "thermal_apic"), None),
        (ranked("interrupt", "ipi"), None),
        (ranked("softirq", "BLOCK"), "let a thread of less priority read and write files"),
        (ranked("softirq", "TIMER"), None),
        (called("futex", asked=13), "let holder hold the lock for less long"),
        (called("ioctl"), f"let this thread call ioctl {BEFORE}"),
        (called(None), None),
        (ranked("blocked", "h", facts=CauseFacts(8, call="futex"), lenders=(("planner", 800_000),)), None),
    ],
)
def test_what_mends_a_cause_or_that_nothing_known_does(cause: Ranked, said: str | None) -> None:
    assert advice(cause, 4, virtual=False) == said


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (ranked("outside", faults=20), "look for firmware and hypervisors"),
        (ranked("softirq", "NET_RX"), "move off its CPU what packets come by"),
    ],
)
def test_what_takes_the_cpu_is_sought_where_it_comes_from(cause: Ranked, said: str) -> None:
    found = advice(cause, 4, virtual=False)
    assert found is not None and found.startswith(said)


def test_where_there_is_no_other_cpu_the_thread_that_waits_is_raised_and_nobody_moved() -> None:
    assert advice(displaced("hog"), 1, virtual=False) == RAISE.removeprefix("or ")
    assert advice(displaced("hog"), 2, virtual=False) == f"{MOVE.replace('0,2-3', '0')}, {RAISE}"
