"""Sleeps and work that a signal interrupts: a stop, or one that the program handles."""

from __future__ import annotations

import pytest
from programs import BLOCKED, RUNNABLE, Program, T, jobs

MS = 1_000_000


@pytest.mark.parametrize("result", [-512, -513, -514, -516])  # ERESTARTSYS and its kin
@pytest.mark.parametrize("again", ["clock_nanosleep", "restart_syscall"])
def test_a_sleep_that_a_stop_interrupts_goes_on_until_it_is_due(again: str, result: int) -> None:
    program = Program()
    program.enter(50, "clock_nanosleep")
    program.arm(60, 9000)
    program.leave(70)
    program.wake(1000, by=77, cpu=1)  # SIGSTOP
    program.come(1010)
    program.back(1020, "clock_nanosleep", result)
    program.leave(1030, BLOCKED)
    program.wake(20000, by=77, cpu=1)  # SIGCONT
    program.come(20010)
    program.enter(20020, again)
    program.arm(20030, 9000)
    program.fire(20032, 9000, on=T)
    program.wake(20035, by=T)
    program.back(20040, "clock_nanosleep")
    program.sleep(20100, 30000, 30100)
    [job] = jobs(program)
    assert (job.release_ns, job.wake_ns, job.free_ns, job.kind) == (9000, 20040, 20120, "clock_nanosleep")


def test_a_signal_that_the_program_handles_releases_a_job() -> None:
    program = Program()
    program.wait(50, 1000, 1100, "epoll_wait")
    program.enter(1200, "clock_nanosleep")
    program.arm(1210, 9000)
    program.leave(1220)
    program.wake(2000, by=77, cpu=1)
    program.come(2010)
    program.back(2020, "clock_nanosleep", -514)
    program.enter(2100, "rt_sigreturn")  # of its handler
    program.back(2110, "rt_sigreturn")
    program.sleep(2200, 9000, 9100)
    assert [(job.kind, job.release_ns, job.wake_ns, job.free_ns, job.busy_ns) for job in jobs(program)] == [
        ("message", 1000, 1100, 1220, 120),
        ("message", 2000, 2020, 2220, 200),
    ]


def test_a_stop_within_the_work_ends_no_job() -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.leave(1200, BLOCKED)
    program.wake(5000, by=77, cpu=1)
    program.come(5010)
    program.sleep(5100, 9000, 9100)
    [job] = jobs(program)
    assert (job.release_ns, job.free_ns, job.busy_ns) == (1000, 5120, 210)


def test_a_thread_that_the_kernel_holds_up_on_its_way_back_was_woken_by_its_timer() -> None:
    program = Program()
    program.enter(50, "clock_nanosleep")
    program.arm(60, MS)
    program.leave(70)
    program.fire(MS + 5, MS)
    program.wake(MS + 10)
    program.come(MS + 50)
    program.leave(MS + 60, BLOCKED)
    program.wake(MS + 200, by=77, cpu=1)
    program.come(MS + 300)
    program.back(MS + 310, "clock_nanosleep")
    program.sleep(3 * MS, 4 * MS, 4 * MS + 100)
    assert [(job.kind, job.release_ns, job.wake_ns) for job in jobs(program)] == [
        ("clock_nanosleep", MS, MS + 310)
    ]


def test_who_yields_and_has_no_budget_does_not_sleep() -> None:
    program = Program()
    program.sleep(50, MS, MS + 100)
    program.enter(2 * MS, "sched_yield")
    program.leave(2 * MS + 10, RUNNABLE)
    program.come(2 * MS + 500)
    program.back(2 * MS + 510, "sched_yield")
    program.sleep(3 * MS, 4 * MS, 4 * MS + 100)
    assert [(job.release_ns, job.free_ns) for job in jobs(program)] == [(MS, 3 * MS + 20)]
