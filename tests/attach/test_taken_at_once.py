"""Expiries that come while the thread does something else: they are taken without a sleep."""

from __future__ import annotations

import pytest
from programs import BLOCKED, RUNNABLE, Program, T

from rtmeter.attach.grid import loop_of
from rtmeter.attach.jobs import jobs_of
from rtmeter.attach.releases import columns_of
from rtmeter.attach.sleeps import sleeps_of
from rtmeter.model import SERVED, SKIPPED

MS = 1_000_000
TIMERS = [("timerfd_tmrproc", "read", "timerfd"), ("posix_timer_fn", "rt_sigtimedwait", "posix_timer")]


def jobs(program: Program) -> list[tuple[int, int, int, int, str]]:
    """release, wake, free, busy, kind."""
    found = jobs_of(sleeps_of(program.trace, T).sleeps)
    return [(job.release_ns, job.wake_ns, job.free_ns, job.busy_ns, job.kind) for job in found]


def taken(program: Program, due: int, next_due: int, call: str, function: str) -> None:
    """Sleeps until it is due, arms the next one as it takes it."""
    program.sleep(due - MS + 500, due, due + 100, call, function)
    program.arm(due + 95, next_due, function)


@pytest.mark.parametrize(("function", "call", "kind"), TIMERS)
def test_an_expiry_that_came_during_the_work_is_served_when_it_is_taken(
    function: str, call: str, kind: str
) -> None:
    program = Program()
    taken(program, MS, 2 * MS, call, function)
    late = 5 * MS + 300  # it was held up over four expiries
    program.enter(late, call)
    program.arm(late + 10, 6 * MS, function)
    program.back(late + 30, call, 14)
    for due in (6 * MS, 7 * MS):
        taken(program, due, due + MS, call, function)
    program.sleep(7 * MS + 500, 8 * MS, 8 * MS + 100, call, function)
    found = list(jobs_of(sleeps_of(program.trace, T).sleeps))
    assert jobs(program)[:2] == [
        (MS, MS + 100, late + 10, late + 10 - MS - 100, kind),
        (2 * MS, late + 30, 5 * MS + 520, 190, kind),
    ]
    columns = columns_of(found, loop_of(found))
    rows = list(zip(columns["release_ns"].tolist(), columns["status"].tolist(), strict=True))
    assert rows == [
        (MS, SERVED), (2 * MS, SERVED), (3 * MS, SKIPPED), (4 * MS, SKIPPED), (5 * MS, SKIPPED),
        (6 * MS, SERVED), (7 * MS, SERVED),
    ]  # fmt: skip
    assert columns["free_ns"].tolist()[2:5] == [5 * MS + 520] * 3


def test_a_stop_that_interrupts_the_wait_leaves_the_expiry_to_the_next_one() -> None:
    program = Program()
    taken(program, MS, 2 * MS, "rt_sigtimedwait", "posix_timer_fn")
    program.enter(MS + 500, "rt_sigtimedwait")
    program.leave(MS + 520)
    program.wake(MS + 1000, by=77, cpu=1)  # SIGSTOP
    program.come(MS + 1010)
    program.back(MS + 1020, "rt_sigtimedwait", -4)
    program.leave(MS + 1030, BLOCKED)
    program.wake(4 * MS + 1000, by=77, cpu=1)  # SIGCONT
    program.come(4 * MS + 1010)
    program.enter(4 * MS + 1100, "rt_sigtimedwait")
    program.arm(4 * MS + 1110, 5 * MS, "posix_timer_fn")
    program.back(4 * MS + 1130, "rt_sigtimedwait", 14)
    program.sleep(4 * MS + 1500, 5 * MS, 5 * MS + 100, "rt_sigtimedwait", "posix_timer_fn")
    assert [(job[0], job[1], job[4]) for job in jobs(program)] == [
        (MS, MS + 100, "posix_timer"),
        (MS + 1000, MS + 1020, "message"),
        (2 * MS, 4 * MS + 1130, "posix_timer"),
    ]


@pytest.mark.parametrize("handled", [False, True])
def test_an_expiry_that_came_during_a_stop_is_what_ends_the_sleep_that_goes_on(handled: bool) -> None:
    call, function = ("rt_sigsuspend", "posix_timer_fn") if handled else ("read", "timerfd_tmrproc")
    program = Program()
    program.arm(30, MS, function)
    program.enter(50, call)
    program.leave(70)
    program.wake(1000, by=77, cpu=1)  # SIGSTOP
    program.come(1010)
    program.back(1020, call, -514 if handled else -512)
    program.leave(1030, BLOCKED)
    program.wake(4 * MS + 1000, by=77, cpu=1)  # SIGCONT
    program.come(4 * MS + 1010)
    if handled:
        program.arm(4 * MS + 1030, 5 * MS, function)
        program.enter(4 * MS + 1040, "rt_sigreturn")
        program.back(4 * MS + 1050, "rt_sigreturn", -4)
    else:
        program.enter(4 * MS + 1020, call)
        program.arm(4 * MS + 1025, 5 * MS, function)
        program.back(4 * MS + 1030, call, 8)
    program.sleep(4 * MS + 1500, 5 * MS, 5 * MS + 100, call, function)
    kind = "posix_timer" if handled else "timerfd"
    assert jobs(program) == [(MS, 4 * MS + 1030, 4 * MS + 1520, 490, kind)]


def test_what_a_sleep_in_another_call_waited_for_is_taken_once() -> None:
    program = Program()
    at = 50
    for due in (MS, 2 * MS, 3 * MS):
        program.sleep(at, due, due + 100, "epoll_wait", "timerfd_tmrproc")
        program.enter(due + 150, "read")
        program.arm(due + 160, due + MS, "timerfd_tmrproc")
        program.back(due + 170, "read", 8)
        at = due + 400
    assert [job[:2] for job in jobs(program)] == [(MS, MS + 100), (2 * MS, 2 * MS + 100)]


def test_a_handler_that_runs_without_a_sleep_before_it_begins_a_job() -> None:
    program = Program()
    program.enter(50, "rt_sigsuspend")
    program.leave(70)
    program.fire(MS + 5, MS, "posix_timer_fn")
    program.wake(MS + 10)
    program.come(MS + 90)
    program.back(MS + 100, "rt_sigsuspend", -514)
    program.arm(MS + 110, 2 * MS, "posix_timer_fn")  # as the signal goes to its handler
    program.enter(MS + 200, "rt_sigreturn")
    program.back(MS + 210, "rt_sigreturn", -4)
    program.enter(2 * MS + 5000, "rt_sigsuspend")  # the signal waits there already
    program.back(2 * MS + 5020, "rt_sigsuspend", -514)
    program.arm(2 * MS + 5030, 3 * MS, "posix_timer_fn")
    program.enter(2 * MS + 5100, "rt_sigreturn")
    program.back(2 * MS + 5110, "rt_sigreturn", -4)
    program.sleep(2 * MS + 5200, 3 * MS, 3 * MS + 100, "rt_sigsuspend", "posix_timer_fn")
    assert [job[:3] for job in jobs(program)] == [
        (MS, MS + 100, 2 * MS + 5030),
        (2 * MS, 2 * MS + 5030, 2 * MS + 5220),
    ]


@pytest.mark.parametrize("call", ["timer_settime", "timerfd_settime64", "setitimer"])
def test_a_timer_that_the_program_sets_anew_serves_nothing(call: str) -> None:
    program = Program()
    taken(program, MS, 2 * MS, "read", "timerfd_tmrproc")
    program.enter(2 * MS + 500, call)
    program.arm(2 * MS + 510, 5 * MS, "timerfd_tmrproc")
    program.back(2 * MS + 520, call)
    program.sleep(2 * MS + 600, 5 * MS, 5 * MS + 100, "read", "timerfd_tmrproc")
    assert [job[0] for job in jobs(program)] == [MS]


def test_an_expiry_whose_waking_was_not_told_is_taken_once() -> None:
    program = Program()
    taken(program, MS, 2 * MS, "read", "timerfd_tmrproc")
    program.enter(MS + 500, "epoll_wait")
    program.leave(MS + 520)
    program.come(2 * MS + 90)
    program.back(2 * MS + 100, "epoll_wait", 1)
    program.enter(2 * MS + 150, "read")
    program.arm(2 * MS + 160, 3 * MS, "timerfd_tmrproc")
    program.back(2 * MS + 170, "read", 8)
    program.sleep(2 * MS + 400, 3 * MS, 3 * MS + 100, "epoll_wait", "timerfd_tmrproc")
    assert [job[:2] for job in jobs(program)] == [(MS, MS + 100), (2 * MS, 2 * MS + 100)]


@pytest.mark.parametrize(
    ("call", "kind"), [("futex_waitv", "futex_waitv"), ("io_uring_enter", "io_uring_enter")]
)
def test_a_sleep_that_was_due_already_is_served_even_if_no_waking_is_told(call: str, kind: str) -> None:
    program = Program()
    program.sleep(50, MS, MS + 100, call)
    late = 2 * MS + 300
    program.enter(late, call)
    program.arm(late + 10, 2 * MS)
    program.back(late + 30, call, -110)
    program.sleep(late + 90, 3 * MS, 3 * MS + 100, call)
    assert jobs(program) == [
        (MS, MS + 100, late + 10, late + 10 - MS - 100, kind),
        (2 * MS, late + 30, late + 110, 80, kind),
    ]


@pytest.mark.parametrize("sleeps", [False, True])
def test_a_timer_that_is_set_when_it_is_due_already_is_served_by_the_wait_that_follows(sleeps: bool) -> None:
    program = Program()
    program.enter(20, "timerfd_settime")
    program.arm(30, MS, "timerfd_tmrproc")
    program.back(40, "timerfd_settime")
    program.sleep(50, MS, MS + 100, "read", "timerfd_tmrproc")
    late = 2 * MS + 300
    program.enter(late, "timerfd_settime")
    program.arm(late + 10, 2 * MS, "timerfd_tmrproc")
    program.back(late + 30, "timerfd_settime")
    if sleeps:
        program.enter(late + 40, "read")
        program.leave(late + 50)
        program.fire(late + 52, 2 * MS, "timerfd_tmrproc")
        program.wake(late + 53)
        program.come(late + 54)
    else:
        program.leave(late + 35, RUNNABLE)
        program.come(late + 38)
        program.enter(late + 40, "read")
    program.back(late + 60, "read", 8)
    program.enter(late + 70, "timerfd_settime")
    program.arm(late + 75, 3 * MS, "timerfd_tmrproc")
    program.back(late + 80, "timerfd_settime")
    program.sleep(late + 90, 3 * MS, 3 * MS + 100, "read", "timerfd_tmrproc")
    asleep = late + 50 if sleeps else late + 10
    assert [job[:3] for job in jobs(program)] == [(MS, MS + 100, asleep), (2 * MS, late + 60, late + 110)]


def test_a_sleep_that_was_due_already_and_that_a_signal_interrupts_is_one() -> None:
    program = Program()
    program.sleep(50, MS, MS + 100)
    program.enter(2 * MS + 300, "clock_nanosleep")
    program.arm(2 * MS + 310, 2 * MS)
    program.back(2 * MS + 320, "clock_nanosleep", -516)
    program.enter(2 * MS + 330, "restart_syscall")
    program.arm(2 * MS + 340, 2 * MS)
    program.back(2 * MS + 350, "restart_syscall")
    program.sleep(2 * MS + 400, 3 * MS, 3 * MS + 100)
    assert [job[:2] for job in jobs(program)] == [(MS, MS + 100), (2 * MS, 2 * MS + 350)]
