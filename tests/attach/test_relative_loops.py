"""Loops that sleep for a time from now on, and loops that wait for other threads in each cycle."""

from __future__ import annotations

import pytest
from programs import Program, jobs
from test_attached_doubts import doubts

from rtmeter.attach.grid import loop_of

MS = 1_000_000
WORKED = [8 * MS + 300 * (k * 7 % 11) for k in range(40)]


def relative(*, makes_up: bool) -> Program:
    """Works for some 8 ms, and sleeps for the rest of 20, or for 12; it is back 30 to 42 us late."""
    program, at, before = Program(), 50, 8 * MS
    for number, worked in enumerate(WORKED):
        late = 30_000 + 2000 * (number * 5 % 7)
        asks, before = 20 * MS - before if makes_up else 12 * MS, worked
        program.enter(at, "clock_nanosleep")
        program.arm(at + 10, at + asks)
        program.leave(at + 20)
        program.fire(at + asks + 5, at + asks)
        program.wake(at + asks + 10)
        program.come(at + asks + late - 1000)
        program.back(at + asks + late, "clock_nanosleep")
        at += asks + late + worked
    return program


def test_a_loop_that_asks_for_the_rest_of_its_period_falls_behind_by_its_lateness_alone() -> None:
    loop = loop_of(jobs(relative(makes_up=True)))
    assert loop.drift_ns is not None and loop.asked_ns is not None
    assert loop.asked_ns == 20 * MS
    per_job = loop.drift_ns / (len(WORKED) - 2)
    assert 30_000 < per_job < 42_000


def test_a_loop_that_sleeps_for_a_time_falls_behind_by_its_work() -> None:
    loop = loop_of(jobs(relative(makes_up=False)))
    assert loop.asked_ns == 12 * MS - 10
    assert loop.drift_ns is not None and loop.drift_ns > 38 * 8 * MS


@pytest.mark.parametrize(("waits", "told"), [(1, True), (3, False), (0, False)])
def test_that_it_waits_once_in_each_job_is_told(waits: int, told: bool) -> None:
    program = Program()
    for cycle in range(1, 60):
        program.sleep(cycle * MS + 500_000, (cycle + 1) * MS, (cycle + 1) * MS + 100)
        for number in range(waits):
            at = (cycle + 1) * MS + 10_000 * (number + 1)
            program.wait(at, at + 3000, at + 3500, "futex")
    assert ("waits_once_a_job" in doubts(program)) == told
