"""Timers' signals that come in the midst of a thread's work, and timers that are set to fire at once."""

from __future__ import annotations

import pytest
from programs import Program, T, jobs

from rtmeter.attach.grid import loop_of
from rtmeter.attach.jobs import EarlyJobs, Job, jobs_of
from rtmeter.attach.releases import columns_of
from rtmeter.attach.sleeps import Reader, sleeps_of
from rtmeter.model import SERVED, SKIPPED

MS = 1_000_000
BOOTED = 100_000 * MS


def handled(program: Program, at: int, next_due: int, back: int) -> None:
    """The timer's signal comes while the thread is in its own code; its handler is done at ``back``."""
    program.arm(at, next_due, "it_real_fn")  # anew, as its signal is taken
    program.enter(back, "rt_sigreturn")
    program.back(back + 10, "rt_sigreturn")


def test_a_handler_in_the_midst_of_a_job_is_a_job_within_it_and_does_not_end_it() -> None:
    program = Program()
    program.arm(20, 3 * MS, "it_real_fn")
    program.sleep(50, MS, MS + 100)
    handled(program, 3 * MS + 40, 6 * MS, 3 * MS + 90)
    handled(program, 6 * MS + 30, 9 * MS, 6 * MS + 50)
    program.sleep(8 * MS, 11 * MS, 11 * MS + 100)
    found = jobs(program)
    assert [(job.kind, job.release_ns, job.wake_ns, job.free_ns, job.busy_ns) for job in found] == [
        ("clock_nanosleep", MS, MS + 100, 8 * MS + 20, 7 * MS - 80),
        ("itimer", 3 * MS, 3 * MS + 40, 3 * MS + 90, 50),
        ("itimer", 6 * MS, 6 * MS + 30, 6 * MS + 50, 20),
    ]


def test_a_job_that_is_told_as_it_ends_is_whole_though_a_handler_ran_in_it() -> None:
    program = Program()
    program.arm(20, 3 * MS, "it_real_fn")
    program.sleep(50, MS, MS + 100)
    handled(program, 3 * MS + 40, 6 * MS, 3 * MS + 90)
    program.sleep(8 * MS, 11 * MS, 11 * MS + 100)
    told: list[Job] = []
    early = EarlyJobs(told.append)
    for sleep in sleeps_of(program.trace, T).sleeps:
        early.see(sleep)
    assert [(job.release_ns, job.free_ns) for job in told] == [(MS, 8 * MS + 20)]


def test_a_handler_that_sleeps_has_ended_its_job_and_the_one_around_it() -> None:
    program = Program()
    program.arm(20, 3 * MS, "it_real_fn")
    program.sleep(50, MS, MS + 100)
    program.arm(3 * MS + 40, 6 * MS, "it_real_fn")
    program.sleep(4 * MS, 5 * MS, 5 * MS + 100)
    program.enter(5 * MS + 200, "rt_sigreturn")
    program.back(5 * MS + 210, "rt_sigreturn")
    program.sleep(8 * MS, 11 * MS, 11 * MS + 100)
    assert [(job.release_ns, job.free_ns) for job in jobs(program)] == [
        (MS, 4 * MS + 20),
        (3 * MS, 4 * MS + 20),
        (5 * MS, 8 * MS + 20),
    ]


def test_of_a_thread_that_never_sleeps_the_handlers_are_its_jobs() -> None:
    program = Program()
    program.arm(20, 3 * MS, "it_real_fn")
    for due in (3 * MS, 6 * MS, 9 * MS):
        handled(program, due + 40, due + 3 * MS, due + 90)
    assert [(job.release_ns, job.wake_ns, job.free_ns) for job in jobs(program)] == [
        (due, due + 40, due + 90) for due in (3 * MS, 6 * MS, 9 * MS)
    ]


@pytest.mark.parametrize("told", [0, 1, -(10**18)])
@pytest.mark.parametrize("sleeps", [False, True])
def test_a_timer_that_is_set_to_a_time_long_past_is_to_fire_at_once(told: int, sleeps: bool) -> None:
    """As an event loop sets one whose time has passed."""
    program = Program(BOOTED)
    program.sleep(BOOTED + 50, BOOTED + MS, BOOTED + MS + 100)
    late = BOOTED + 2 * MS + 300
    program.enter(late, "clock_nanosleep")
    program.arm(late + 10, told)
    if sleeps:
        program.leave(late + 20)
        program.fire(late + 25, told)
        program.wake(late + 26)
        program.come(late + 28)
    program.back(late + 30, "clock_nanosleep")
    program.sleep(late + 200, BOOTED + 3 * MS, BOOTED + 3 * MS + 100)
    _, job = jobs(program)
    assert (job.release_ns, job.wake_ns, job.free_ns) == (late + 10, late + 30, late + 220)


def test_expiries_that_go_back_in_time_are_no_skipped_releases_twice() -> None:
    """An absolute loop that was held up serves its old expiries between those of a second timer."""
    program, at = Program(), 50
    for _ in range(60):
        program.sleep(at, at + 1000 - at % 1000, at + 1100 - at % 1000)
        at += 1200 - at % 1000
    stalled = at + 9_500 - at % 1000
    for due in range(at + 1000 - at % 1000, stalled, 1000):  # of the loop, none of which it waits for
        for one in (due, stalled - 500):
            program.enter(stalled, "clock_nanosleep")
            program.arm(stalled + 5, one)
            program.back(stalled + 10, "clock_nanosleep")
            stalled += 20
    program.sleep(stalled + 100, stalled + 5000 - stalled % 1000, stalled + 5100 - stalled % 1000)
    found = jobs(program)
    columns = columns_of(found, loop_of(found, 1000))
    skipped = columns["release_ns"][columns["status"] == SKIPPED].tolist()
    assert len(skipped) == len({*skipped})
    served = int((columns["status"] == SERVED).sum())
    assert served == len(found) and len(skipped) <= 10


def test_a_handler_of_which_events_are_lost_or_that_runs_at_the_end_is_in_a_count() -> None:
    program = Program()
    program.arm(20, 3 * MS, "it_real_fn")
    program.sleep(50, MS, MS + 100)
    program.arm(3 * MS + 40, 6 * MS, "it_real_fn")
    program.lose(3 * MS + 60)
    program.sleep(4 * MS, 5 * MS, 5 * MS + 100)
    program.arm(5 * MS + 300, 7 * MS, "it_real_fn")
    program.arm(7 * MS + 40, 9 * MS, "it_real_fn")  # its handler runs still
    reader = Reader(T)
    found = list(jobs_of(reader.see_all(program.trace), lambda: reader.rest(8 * MS)))
    handlers = [(job.release_ns, job.known, job.ended) for job in found if job.kind == "itimer"]
    assert handlers == [(3 * MS, False, True), (7 * MS, True, False)]
