"""Wakings that come before the thread sleeps: it is going to, or it no longer does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from programs import BLOCKED, RUNNABLE, Program, T, jobs

from rtmeter.attach.sleeps import sleeps_of

Release = tuple[int, int, int, str, bool]


def released(program: Program) -> list[Release]:
    """release, wake, free, kind, known."""
    return [(job.release_ns, job.wake_ns, job.free_ns, job.kind, job.known) for job in jobs(program)]


def going_to_sleep(before: Callable[[Program], None], *, by_timer: bool = False) -> Program:
    """Its second sleep begins at 1320 and has no waking after that; ``before``: what happens until then."""
    program = Program()
    program.sleep(50, 1000, 1100)
    program.enter(1300, "poll")
    before(program)
    program.leave(1320)
    program.come(1400)
    program.back(1410, "poll")
    program.sleep(2300, 3000, 3100)
    return program


def test_a_waking_that_comes_just_before_the_thread_has_left_its_cpu_ends_the_sleep() -> None:
    program = going_to_sleep(lambda program: program.wake(1315, by=77, cpu=1))
    assert released(program)[1:] == [(1320, 1410, 2320, "message", True)]
    assert sleeps_of(program.trace, T).inferred == 0


def test_so_does_the_one_of_a_timer_that_fires_on_another_cpu() -> None:
    def timer(program: Program) -> None:
        program.arm(1305, 1310)
        program.arm(1306, 1340, "timerfd_tmrproc")  # comes due while the thread is woken already
        program.fire(1312, 1310, cpu=1)
        program.wake(1315, cpu=1)

    assert released(going_to_sleep(timer))[1:] == [(1310, 1410, 2320, "poll", True)]


def test_a_timer_whose_expiry_is_not_known_leaves_unknown_what_woke_it_before_it_slept() -> None:
    def timer(program: Program) -> None:
        program.fire(1312, 1310, cpu=0)
        program.wake(1315, by=77, cpu=1)

    assert [known for *_, known in released(going_to_sleep(timer))] == [True, False]


def again(program: Program) -> None:
    program.wake(1302, by=77, cpu=1)
    program.back(1305, "poll")
    program.enter(1310, "poll")


def arms_again(program: Program) -> None:
    program.wake(1302, by=77, cpu=1)
    program.arm(1310, 9000)


def preempted(program: Program) -> None:
    program.wake(1302, by=77, cpu=1)
    program.leave(1305, RUNNABLE)
    program.come(1310)


def held_up(program: Program) -> None:
    program.wake(1302, by=77, cpu=1)
    program.leave(1305, BLOCKED)
    program.come(1310)


def here(program: Program) -> None:
    program.wake(1302, by=T)


@pytest.mark.parametrize("before", [again, arms_again, preempted, held_up, here])
def test_a_waking_after_which_it_went_on_running_ends_no_later_sleep(
    before: Callable[[Program], None],
) -> None:
    assert [known for *_, known in released(going_to_sleep(before))] == [True, False]


def test_a_waking_that_comes_once_it_sleeps_is_what_ends_it() -> None:
    program = going_to_sleep(lambda program: program.wake(1315, by=77, cpu=1))
    program.wake(1380, by=77, cpu=1)
    assert released(program)[1:] == [(1380, 1410, 2320, "message", True)]


def test_a_sleep_that_goes_on_after_a_wake_up_in_vain_may_be_ended_so_too() -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.enter(1300, "poll")
    program.leave(1320)
    program.wake(2000, by=77, cpu=1)
    program.come(2010)
    program.wake(2025, by=77, cpu=1)
    program.leave(2030)
    program.come(2100)
    program.back(2110, "poll")
    program.sleep(2300, 3000, 3100)
    assert released(program) == [
        (1000, 1100, 1320, "clock_nanosleep", True),
        (2030, 2110, 2320, "message", True),
    ]


def test_leaving_its_cpu_though_it_could_go_on_is_no_sleep_whatever_came_before() -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.wake(1315, by=77, cpu=1)
    program.leave(1320, RUNNABLE)
    program.come(1400)
    program.sleep(2300, 3000, 3100)
    assert released(program) == [(1000, 1100, 2320, "clock_nanosleep", True)]


def test_what_was_lost_may_have_been_that_it_went_on_running() -> None:
    def lost(program: Program) -> None:
        program.wake(1302, by=77, cpu=1)
        program.lose(1310)

    assert [known for *_, known in released(going_to_sleep(lost))] == [False, False]


def test_one_waking_ends_one_sleep() -> None:
    program = going_to_sleep(lambda program: program.wake(1315, by=77, cpu=1))
    program.leave(1405)
    program.come(1408)
    assert [known for *_, known in released(program)] == [True, False]


def test_a_deadline_thread_that_yields_is_not_going_to_sleep() -> None:
    program = Program()
    program.wait(50, 1000, 1100)
    program.enter(1300, "sched_yield")
    program.arm(1310, 9000, "dl_task_timer")
    program.wake(1315, by=77, cpu=1)
    program.leave(1320, RUNNABLE)
    program.come(1400)
    program.back(1410, "sched_yield")
    program.sleep(2300, 3000, 3100)
    assert [known for *_, known in released(program)] == [True, False]


@pytest.mark.parametrize("preempted", [False, True])
def test_a_timer_that_comes_before_the_thread_sleeps_is_a_release_that_is_served_without_a_sleep(
    preempted: bool,
) -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.enter(1300, "clock_nanosleep")
    program.arm(1310, 2000)
    if preempted:
        program.leave(1315, RUNNABLE)
    program.fire(2005, 2000, on=77 if preempted else T)
    program.wake(2010, by=77 if preempted else T)
    if preempted:
        program.come(2400)
    program.back(2410, "clock_nanosleep")
    program.sleep(2500, 3000, 3100)
    first, second = jobs(program)
    assert (first.release_ns, first.free_ns) == (1000, 1310)
    assert (second.release_ns, second.wake_ns, second.free_ns) == (2000, 2410, 2520)
    assert second.busy_ns == 110
