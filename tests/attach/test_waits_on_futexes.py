"""Waits on futexes without a timeout: locks in the work of a thread that timers pace, else ends of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from programs import Program, T, jobs

from rtmeter.attach import jobs as of_jobs
from rtmeter.attach.asleep import Sleep
from rtmeter.attach.jobs import jobs_of
from rtmeter.attach.sleeps import sleeps_of

MS = 1_000_000


def waiting(cycles: int, timed: tuple[int, ...] = ()) -> Program:
    """Waits on a condition that another thread signals each ms; in some cycles it also sleeps for a time."""
    program, at = Program(), 50
    for cycle in range(1, cycles + 1):
        program.wait(at, cycle * MS, cycle * MS + 100, "futex")
        at = cycle * MS + 400
        if cycle in timed:
            program.sleep(at, at + 5000, at + 5100)
            at += 5400
    program.wait(at, (cycles + 1) * MS, (cycles + 1) * MS + 100, "futex")
    return program


@pytest.mark.parametrize("timed", [(1,), (10,), (3, 17)])
def test_one_that_waits_on_a_condition_and_rarely_sleeps_for_a_time_waits_for_no_locks(
    timed: tuple[int, ...],
) -> None:
    found = jobs(waiting(20, timed))
    assert len(found) == 20 + len(timed)
    assert {job.waits for job in found} == {0}
    assert max(job.free_ns - job.release_ns for job in found) == 420


@pytest.mark.parametrize(("waits", "locks"), [(3, True), (4, False)])
def test_waits_on_futexes_are_locks_where_timers_end_two_in_five_of_the_sleeps(
    waits: int, locks: bool
) -> None:
    """A job of every two has two waits, or both have."""
    program, at = Program(), 50
    for cycle in range(1, 21):
        program.sleep(at, cycle * MS, cycle * MS + 100)
        for lock in range(waits // 2 + waits % 2 * (cycle % 2)):
            begin = cycle * MS + 200 + lock * 200
            program.wait(begin, begin + 50, begin + 100, "futex")
        at = cycle * MS + 1000
    found = jobs(program)
    assert (sum(job.waits for job in found) > 0) == locks
    assert ({job.kind for job in found} == {"clock_nanosleep"}) == locks


def test_a_loop_that_waits_for_an_answer_and_for_a_lock_in_each_cycle_is_paced_by_its_timer() -> None:
    program, at = Program(), 50
    for cycle in range(1, 21):
        begin = cycle * MS
        program.sleep(at, begin, begin + 100)
        program.wait(begin + 200, begin + 250, begin + 300, "futex")
        program.wait(begin + 400, begin + 450, begin + 500, "recvmsg")
        at = begin + 1000
    assert {(job.kind, job.waits) for job in jobs(program)} == {("clock_nanosleep", 1), ("message", 0)}


def test_waits_of_which_events_were_lost_do_not_tell_what_waits_on_futexes_are() -> None:
    """Of four in each cycle one is known: beside the timers these are locks."""
    program, at = Program(), 50
    for cycle in range(1, 21):
        program.sleep(at, cycle * MS, cycle * MS + 100)
        for begin in range(cycle * MS + 200, cycle * MS + 1000, 200):
            program.wait(begin, begin + 50, begin + 100, "futex")
        at = cycle * MS + 1000
    told = sleeps_of(program.trace, T).sleeps
    seen = [replace(sleep, known=place % 5 < 2) for place, sleep in enumerate(told)]
    assert {job.kind for job in jobs_of(seen)} == {"clock_nanosleep"}
    assert {job.kind for job in jobs_of(told)} == {"clock_nanosleep", "message"}


def test_the_first_sleeps_alone_tell_what_waits_on_futexes_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_jobs, "PATIENCE", 10)
    taken = 0
    told = sleeps_of(waiting(40, tuple(range(11, 41))).trace, T).sleeps

    def coming() -> Iterator[Sleep]:
        nonlocal taken
        for sleep in told:
            taken += 1
            yield sleep

    found = jobs_of(coming())
    next(found)
    assert taken == 10
    assert {job.waits for job in found} == {0}
