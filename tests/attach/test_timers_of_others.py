"""Which timers end a thread's sleep."""

from __future__ import annotations

from programs import Program, jobs

from rtmeter.explain.events import OTHERS_TIMER


def test_a_timer_of_the_kernels_own_that_is_armed_as_a_thread_waits_ends_no_wait_of_it() -> None:
    """As that of a profiler, or of TCP's pace, on its time."""
    program = Program()
    program.enter(50, "recvmsg")
    program.arm(60, 2000, OTHERS_TIMER)
    program.leave(70)
    program.fire(2005, 2000, OTHERS_TIMER)
    program.wake(2010, by=77, cpu=1)
    program.come(2020)
    program.back(2030, "recvmsg")
    program.enter(2100, "clock_nanosleep")
    program.arm(2110, 5000)
    program.arm(2115, 9000, OTHERS_TIMER)
    program.leave(2120)
    program.come(5020)  # what woke it is not told
    program.back(5030, "clock_nanosleep")
    program.sleep(5100, 9500, 9600)
    found = [(job.kind, job.release_ns, job.known) for job in jobs(program)]
    assert found == [("message", 2010, True), ("clock_nanosleep", 5000, True)]


def test_a_sleep_by_an_alarm_clock_is_a_sleep() -> None:
    program = Program()
    for at in (50, 1200):
        program.enter(at, "clock_nanosleep")
        program.arm(at + 10, at + 950, "alarmtimer_fired")
        program.leave(at + 20)
        program.fire(at + 955, at + 950, "alarmtimer_fired")
        program.wake(at + 960)
        program.come(at + 1040)
        program.back(at + 1050)
    assert [(job.kind, job.release_ns, job.known) for job in jobs(program)] == [
        ("clock_nanosleep", 1000, True)
    ]
