"""What the kernel does not tell of a thread: who woke it, or that it is another by now."""

from __future__ import annotations

from dataclasses import replace

import pytest
from programs import ENDED, Program, T

from rtmeter.attach.jobs import jobs_of
from rtmeter.attach.sleeps import sleeps_of
from rtmeter.host.threads import Task
from rtmeter.measure.programs.looking import ThreadSeen, words


@pytest.mark.parametrize("with_switch", [True, False])
def test_a_waking_that_is_not_told_was_the_timers_that_the_thread_had_armed(with_switch: bool) -> None:
    program = Program()
    program.arm(20, 30, "timerfd_tmrproc")  # was due long ago
    program.sleep(50, 1000, 1100)
    program.enter(1300, "clock_nanosleep")
    program.arm(1310, 2000)
    program.leave(1320)
    if with_switch:
        program.come(2090)
    program.back(2100)
    program.sleep(2300, 3000, 3100)
    told = sleeps_of(program.trace, T)
    assert [(job.kind, job.release_ns, job.wake_ns, job.known) for job in jobs_of(told.sleeps)] == [
        ("clock_nanosleep", 1000, 1100, True),
        ("clock_nanosleep", 2000, 2100, True),
    ]
    assert told.inferred == 1


def test_a_timer_that_was_due_when_the_sleep_armed_it_ended_it_too() -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.enter(3300, "clock_nanosleep")
    program.arm(3310, 2000)
    program.arm(3315, 3500, "dl_task_timer")  # the kernel's own, for others
    program.leave(3320)
    program.back(4100)
    program.sleep(4300, 5000, 5100)
    told = sleeps_of(program.trace, T)
    assert [(job.release_ns, job.wake_ns, job.known) for job in jobs_of(told.sleeps)] == [
        (1000, 1100, True),
        (2000, 4100, True),
    ]


def test_a_timer_that_the_woken_thread_arms_anew_is_not_what_woke_it() -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.enter(1300, "rt_sigtimedwait")
    program.arm(1310, 2000, "posix_timer_fn")
    program.leave(1320)
    program.arm(2090, 3000, "posix_timer_fn")  # neither its waking nor its coming on a CPU is told
    program.back(2100)
    program.sleep(2300, 4000, 4100)
    found = list(jobs_of(sleeps_of(program.trace, T).sleeps))
    assert [(job.release_ns, job.kind, job.known) for job in found][1:] == [(2000, "posix_timer", True)]


@pytest.mark.parametrize("due", [2089, 2090])
def test_a_timer_that_is_due_when_the_thread_acts_may_have_woken_it(due: int) -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.enter(1300, "clock_nanosleep")
    program.arm(1310, due)
    program.leave(1320)
    program.back(2090)
    program.sleep(2300, 3000, 3100)
    assert [(job.release_ns, job.known) for job in jobs_of(sleeps_of(program.trace, T).sleeps)] == [
        (1000, True),
        (due, True),
    ]


@pytest.mark.parametrize("armed", [[], [5000], [2000, 2050]])
def test_where_no_timer_or_more_than_one_could_have_ended_the_sleep_it_is_unknown(armed: list[int]) -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.enter(1300, "read")
    for due, function in zip(armed, ("timerfd_tmrproc", "posix_timer_fn"), strict=False):
        program.arm(1310, due, function)
    program.leave(1320)
    program.come(2090)
    program.back(2100)
    program.sleep(2300, 3000, 3100)
    told = sleeps_of(program.trace, T)
    assert [job.known for job in jobs_of(told.sleeps)] == [True, False]
    assert told.inferred == 0


def test_a_thread_that_is_seen_to_wake_once_did_no_whole_job_but_slept() -> None:
    once = Program(1010)
    once.wake(1000)
    once.leave(1100)
    told = sleeps_of(once.trace, T)
    assert (told.sleeps, told.switches, told.left) == ([], 1, 1)
    thread = Task(T, T, "loop", False, False, "S", "other", 0, 0, 1)
    seen = ThreadSeen(thread, (0,), None, 0, 0.0, None, told.left)
    assert (words(seen), words(replace(seen, left=0))) == ("did no whole job", "never woke")


def test_a_later_thread_of_the_same_id_is_another() -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.sleep(1300, 2000, 2100)
    program.leave(2200, ENDED)
    program.come(5000)
    program.sleep(5100, 6000, 6100)
    program.sleep(6300, 7000, 7100)
    told = sleeps_of(program.trace, T)
    assert told.ended
    assert [job.release_ns for job in jobs_of(told.sleeps)] == [1000]


@pytest.mark.parametrize("result", [-512, -513, -514, -516])
def test_every_result_of_an_interrupted_call_leaves_the_sleep_open(result: int) -> None:
    program = Program()
    program.enter(50, "clock_nanosleep")
    program.arm(60, 9000)
    program.leave(70)
    program.wake(1000, by=77, cpu=1)
    program.come(1010)
    program.back(1020, "clock_nanosleep", result)
    program.enter(1030, "restart_syscall")
    program.arm(1040, 9000)
    program.leave(1050)
    program.fire(9005, 9000)
    program.wake(9010)
    program.come(9090)
    program.back(9100, "restart_syscall")
    program.sleep(9300, 10_000, 10_100)
    assert [(job.release_ns, job.wake_ns) for job in jobs_of(sleeps_of(program.trace, T).sleeps)] == [
        (9000, 9100)
    ]
