"""bench/kernel_trace.py: what is made of the scheduler's events, on lines as tracefs has them."""

from __future__ import annotations

import pytest

from kernel_trace import Waits, parsed, waits_in

MEASURED, CHILD, SECOND, STRANGER = 100, 101, 102, 7
GAP = "CPU:1 [LOST 57504 EVENTS]"


def woken(cpu: int = 1) -> str:
    return f"  <idle>-0   [00{cpu}] dNh3.  1964.10: sched_wakeup: comm=probe pid=100 prio=19 target_cpu=001"


def call(pid: int, cpu: int = 1) -> str:
    return (
        f" dds ev [1]-{pid}   [00{cpu}] .....  1964.101960: sys_enter: NR 202 (7f1c, 89, 0, 0, 0, ffffffff)"
    )


def switch(before: int, state: str, after: int, cpu: int = 1) -> str:
    return (
        f"     a-{before}     [00{cpu}] d..2.  1964.101969: sched_switch: prev_comm=a b prev_pid={before} "
        f"prev_prio=19 prev_state={state} ==> next_comm=probe next_pid={after} next_prio=19"
    )


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([woken(), switch(STRANGER, "R", MEASURED)], Waits(1)),
        ([woken(), switch(CHILD, "R+", MEASURED)], Waits(1, preempted=1)),
        ([woken(), call(CHILD), switch(CHILD, "R", MEASURED)], Waits(1, preempted=1)),
        ([woken(), switch(CHILD, "S", MEASURED)], Waits(1, slept=1)),
        ([woken(), call(CHILD), switch(CHILD, "S", MEASURED)], Waits(1, slept=1)),
        ([woken(), call(CHILD), call(CHILD), switch(CHILD, "S", MEASURED)], Waits(1, ran_on=1)),
        (
            [woken(), call(CHILD), switch(CHILD, "S", SECOND), call(SECOND), switch(SECOND, "S", MEASURED)],
            Waits(1, ran_on=1),
        ),
        ([woken(), call(CHILD), call(CHILD), switch(CHILD, "R+", MEASURED)], Waits(1, ran_on=1)),
        ([call(CHILD), call(CHILD), woken(), switch(CHILD, "R", MEASURED)], Waits(1, preempted=1)),
        ([switch(CHILD, "S", MEASURED)], Waits()),
        ([woken(), call(CHILD, 0), call(CHILD, 0), switch(STRANGER, "R", MEASURED)], Waits(1)),
        ([woken(0), switch(STRANGER, "R", MEASURED)], Waits()),
        ([switch(STRANGER, "S", CHILD, 0), switch(CHILD, "S", STRANGER, 0)], Waits(elsewhere=1)),
        (
            [
                *(woken(), switch(CHILD, "R", MEASURED), switch(MEASURED, "S", CHILD)),
                *(woken(), call(CHILD), call(CHILD), switch(CHILD, "S", MEASURED)),
            ],
            Waits(2, preempted=1, ran_on=1),
        ),
        ([woken(), GAP, call(CHILD), call(CHILD), switch(CHILD, "S", MEASURED)], Waits(gaps=1)),
        ([woken(), GAP.replace("CPU:1", "CPU:0"), switch(CHILD, "R", MEASURED)], Waits(1, preempted=1)),
    ],
)
def test_each_release_is_counted_by_what_gave_way(lines: list[str], expected: Waits) -> None:
    assert waits_in(parsed(lines), MEASURED, [CHILD, SECOND], cpu=1) == expected


def test_counts_add_up() -> None:
    assert Waits(1, ran_on=1, gaps=2) + Waits(2, slept=1, gaps=1) == Waits(3, slept=1, ran_on=1, gaps=3)


def test_other_lines_are_passed_over() -> None:
    lines = ["# tracer: nop", "", woken().replace("sched_wakeup", "sched_waking")]
    assert list(parsed(lines)) == []
