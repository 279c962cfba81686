"""Which timer woke whom, as the programs tell it: run event by event on a machine of ours."""

from __future__ import annotations

import pytest
from virtual_machine import Machine

from rtmeter.trace.ebpf.programs import BUDGET, FIRST, FUNCTION, KIND, SECOND, TARGET, WAKING

OURS, OTHER, SOFTIRQS, ABOVE = 8, 20, 5, 6
"""Threads: the one that is told of, another, one in which softirqs run, one that may pre-empt that."""

FUNCTION_AT, TICK_AT, BUDGET_AT = 0xFFFFFFFF_81000000, 0xFFFFFFFF_82000000, 0xFFFFFFFF_83000000


class Cpu:
    def __init__(self) -> None:
        self.machine = Machine((OURS,), BUDGET_AT, (TICK_AT,))
        self.machine.thread = SOFTIRQS
        base = self.machine.thing("hrtimer_clock_base", offset=400)
        self._base, self._tasks = base, {t: self.machine.thing("task_struct", pid=t) for t in (OURS, OTHER)}

    def timer(self, due_ns: int, *, soft: bool, function: int = FUNCTION_AT) -> int:
        about = {"function": function, "_softexpires": due_ns, "base": self._base, "is_soft": int(soft)}
        return self.machine.thing("hrtimer", **about)

    def fires(self, timer: int) -> None:
        self.machine.runs("hrtimer_expire_entry", timer, 0)

    def done(self, timer: int) -> None:
        self.machine.runs("hrtimer_expire_exit", timer)

    def wakes(self, target: int = OURS, by: int = SOFTIRQS) -> None:
        self.machine.thread = by
        self.machine.runs("sched_waking", self._tasks[target])
        self.machine.thread = SOFTIRQS

    def told(self) -> list[int | None]:
        """Of each waking that is told, when the timer was due; None: it came from none."""
        records = [record for record in self.machine.records() if record[KIND] & 0xFFFFFFFF == WAKING]
        assert {record[TARGET] for record in records} <= {OURS}
        assert {record[FUNCTION] for record in records} <= {0, FUNCTION_AT}
        return [record[FIRST] - record[SECOND] if record[FUNCTION] else None for record in records]


@pytest.mark.parametrize("soft", [False, True], ids=["interrupt", "softirq"])
def test_a_waking_is_the_timers_whose_function_runs_and_no_other(soft: bool) -> None:
    cpu = Cpu()
    timer, silent = cpu.timer(1400, soft=soft), cpu.timer(2400, soft=soft)
    cpu.wakes()
    cpu.fires(timer)
    cpu.wakes()
    cpu.wakes()
    cpu.done(timer)
    cpu.fires(silent)
    cpu.done(silent)
    cpu.wakes()
    assert cpu.told() == [None, 1000, None, None]


def test_an_interrupts_timer_that_has_woken_another_wakes_nobody_else() -> None:
    cpu = Cpu()
    cpu.fires(cpu.timer(1400, soft=False))
    cpu.wakes(OTHER)
    cpu.wakes()
    assert cpu.told() == [None]


@pytest.mark.parametrize("target", [OURS, OTHER])
def test_an_interrupts_timer_within_a_softirqs_wakes_its_own_and_leaves_that_its_own(target: int) -> None:
    cpu = Cpu()
    softirqs, interrupts = cpu.timer(1400, soft=True), cpu.timer(2400, soft=False)
    cpu.fires(softirqs)
    cpu.fires(interrupts)
    cpu.wakes(target)
    cpu.done(interrupts)
    cpu.wakes()
    cpu.done(softirqs)
    assert cpu.told() == ([2000, 1000] if target == OURS else [1000])


def test_an_interrupts_tick_and_whom_an_interrupt_wakes_leave_a_softirqs_timer_alone() -> None:
    cpu = Cpu()
    timer, tick = cpu.timer(1400, soft=True), cpu.timer(2400, soft=False, function=TICK_AT)
    cpu.fires(timer)
    cpu.fires(tick)
    cpu.done(tick)
    cpu.wakes(OTHER)
    cpu.wakes()
    assert cpu.told() == [1000]


def test_a_thread_that_preempts_a_softirq_wakes_by_itself_and_takes_nothing_from_its_timer() -> None:
    cpu = Cpu()
    timer = cpu.timer(1400, soft=True)
    cpu.fires(timer)
    cpu.wakes(by=ABOVE)
    cpu.wakes(OTHER, by=ABOVE)
    cpu.wakes()
    cpu.done(timer)
    assert cpu.told() == [None, 1000]


def test_a_budget_that_is_given_anew_is_told_at_once() -> None:
    cpu = Cpu()
    cpu.fires(cpu.timer(1400, soft=False, function=BUDGET_AT))
    [record] = cpu.machine.records()
    assert (record[KIND] & 0xFFFFFFFF, record[FUNCTION], record[FIRST]) == (BUDGET, BUDGET_AT, 1400)
