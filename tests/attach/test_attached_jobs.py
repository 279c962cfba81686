"""Jobs and releases of programs whose every moment is known."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from programs import BLOCKED, RUNNABLE, Program, T, jobs

from rtmeter.attach.grid import PeriodChange, loop_of, passed_over
from rtmeter.attach.jobs import Job, jobs_of
from rtmeter.attach.releases import COLUMNS, columns_of
from rtmeter.attach.sleeps import sleeps_of
from rtmeter.explain.scripted import read_events
from rtmeter.model import ABSENT, LOST, SERVED, SKIPPED

MS = 1_000_000


def rows(program: Program, period_ns: int | None = None) -> list[tuple[int, ...]]:
    """release, wake, free, busy, interval, status; absent ones are -1."""
    found = jobs(program)
    columns = columns_of(found, loop_of(found, period_ns))
    assert [*columns] == [*COLUMNS, "status"]
    listed = [column.tolist() for name, column in columns.items() if name != "by_timer"]
    return [tuple(-1 if value == ABSENT else value for value in row) for row in zip(*listed, strict=True)]


def periodic(releases: list[int], late: int = 100, work: int = 300, **sleep: str) -> Program:
    """Sleeps until each release, is back ``late`` after it, and asks for the next sleep ``work`` later."""
    program = Program()
    at = 50
    for release in releases:
        program.sleep(at, release, release + late, **sleep)
        at = release + late + work
    program.sleep(at, releases[-1] + MS, releases[-1] + MS + late, **sleep)
    return program


def test_a_job_goes_from_its_timers_expiry_over_the_return_to_the_next_sleep() -> None:
    [job] = jobs(periodic([1000]))
    assert job == Job(1000, 1100, 1420, 320, "clock_nanosleep", 60)


def test_a_grid_with_every_release_served() -> None:
    assert rows(periodic([MS, 2 * MS, 3 * MS])) == [
        (MS, MS + 100, MS + 420, 320, -1, SERVED),
        (2 * MS, 2 * MS + 100, 2 * MS + 420, 320, MS, SERVED),
        (3 * MS, 3 * MS + 100, 3 * MS + 420, 320, MS, SERVED),
    ]


def test_releases_that_nobody_slept_for_are_skipped_and_carry_the_moment_of_freedom() -> None:
    program = periodic([MS, 2 * MS, 3 * MS])
    program = Program()
    program.sleep(50, MS, MS + 100)
    program.sleep(3 * MS + 500, 4 * MS, 4 * MS + 100)  # the work took two periods and a half
    program.sleep(4 * MS + 500, 5 * MS, 5 * MS + 100)
    program.sleep(5 * MS + 500, 6 * MS, 6 * MS + 100)
    program.sleep(6 * MS + 500, 7 * MS, 7 * MS + 100)
    free = 3 * MS + 520
    assert rows(program)[:4] == [
        (MS, MS + 100, free, free - MS - 100, -1, SERVED),
        (2 * MS, -1, free, -1, -1, SKIPPED),
        (3 * MS, -1, free, -1, -1, SKIPPED),
        (4 * MS, 4 * MS + 100, 4 * MS + 520, 420, 3 * MS, SERVED),
    ]


def test_a_sleep_that_was_due_when_it_was_asked_for_is_served_at_once() -> None:
    program = Program()
    program.sleep(50, MS, MS + 100)
    late = 2 * MS + 300  # it asks for 2 ms only now
    program.enter(late, "clock_nanosleep")
    program.arm(late + 10, 2 * MS)
    program.fire(late + 12, 2 * MS, on=T)
    program.wake(late + 15, by=T)
    program.back(late + 30)
    program.sleep(late + 90, 3 * MS, 3 * MS + 100)
    assert rows(program) == [
        (MS, MS + 100, late + 10, late + 10 - MS - 100, -1, SERVED),
        (2 * MS, late + 30, late + 110, 80, late + 30 - MS - 100, SERVED),
    ]


def test_a_message_releases_a_job_when_the_thread_is_woken() -> None:
    program = Program()
    program.wait(50, 1000, 1200)
    program.wait(1500, 9000, 9100)
    [job] = jobs(program)
    assert job == Job(1000, 1200, 1520, 320, "message", None)
    assert not loop_of([job]).by_timer


@pytest.mark.parametrize("call", ["poll", "epoll_wait", "futex", "select"])
def test_a_timeout_and_a_message_in_the_same_call_are_told_apart(call: str) -> None:
    program = Program()
    program.sleep(50, 1000, 1100, call)
    program.wait(1300, 1500, 1600, call, timeout=2000)
    program.sleep(1700, 3000, 3100, call)
    assert [(job.kind, job.release_ns) for job in jobs(program)] == [(call, 1000), ("message", 1500)]


def test_a_lock_that_is_waited_for_within_the_work_ends_no_job() -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.wait(1300, 5000, 5100, "futex")
    program.sleep(5200, 9000, 9100)
    [job] = jobs(program)
    assert (job.release_ns, job.free_ns, job.waits) == (1000, 5220, 1)
    assert job.busy_ns == 220 + (5220 - 5090)


def test_a_thread_that_only_waits_on_futexes_is_woken_by_messages() -> None:
    program = Program()
    program.wait(50, 1000, 1100, "futex")
    program.wait(1300, 5000, 5100, "futex")
    assert [job.kind for job in jobs(program)] == ["message"]


def test_a_page_that_is_read_and_a_preemption_end_no_job_and_take_no_time_on_a_cpu() -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.leave(1200, BLOCKED)
    program.wake(1700, by=77)
    program.come(1800)
    program.leave(1850, RUNNABLE)
    program.come(1950)
    program.sleep(2000, 3000, 3100)
    [job] = jobs(program)
    assert (job.free_ns, job.busy_ns) == (2020, 100 + 50 + 70)
    assert sleeps_of(program.trace, T).held_ups == 1


def test_a_wake_up_in_vain_within_the_call_is_the_same_sleep() -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.enter(1300, "poll")
    program.arm(1310, 9000)
    program.leave(1320)
    program.wake(2000, by=77)
    program.come(2010)
    program.leave(2030)
    program.fire(9005, 9000)
    program.wake(9010)
    program.come(9020)
    program.back(9030)
    program.sleep(9100, 10000, 10100)
    first, second = jobs(program)
    assert (first.free_ns, second.release_ns, second.wake_ns, second.kind) == (1320, 9000, 9030, "poll")


def test_a_timer_that_fired_on_another_cpu_leaves_unknown_what_woke_it() -> None:
    program = Program()
    program.enter(50, "poll")
    program.arm(60, 5000)
    program.leave(70)
    program.fire(5005, 5000)
    program.wake(5010, by=77, cpu=1)
    program.come(5020)
    program.back(5030)
    program.sleep(5100, 9000, 9100)
    assert [job.known for job in jobs(program)] == [False]


@pytest.mark.parametrize(
    ("function", "call", "kind"),
    [
        ("timerfd_tmrproc", "read", "timerfd"),
        ("timerfd_tmrproc", "epoll_wait", "timerfd"),
        ("posix_timer_fn", "rt_sigtimedwait", "posix_timer"),
        ("it_real_fn", "pause", "itimer"),
    ],
)
def test_a_timer_that_runs_on_its_own_says_what_it_is(function: str, call: str, kind: str) -> None:
    found = jobs(periodic([MS, 2 * MS], call=call, function=function))
    assert [(job.kind, job.release_ns) for job in found] == [(kind, MS), (kind, 2 * MS)]
    assert loop_of(found).on_grid


def test_a_deadline_threads_yield_is_a_sleep_until_its_budget_is_there() -> None:
    program = Program()
    at = 50
    for release in (MS + 3000, 2 * MS, 3 * MS + 2000, 4 * MS):
        program.enter(at, "sched_yield")
        program.arm(at + 10, release, "dl_task_timer")
        program.leave(at + 20, RUNNABLE)
        program.fire(release + 5, release, "dl_task_timer", on=0)
        program.fire(release + 20, release + 15, "dl_task_timer", on=0)  # another's
        program.come(release + 90)
        program.back(release + 100)
        at = release + 400
    found = jobs(program)
    assert [(job.kind, job.release_ns) for job in found] == [
        ("deadline", release) for release in (MS + 3000, 2 * MS, 3 * MS + 2000)
    ]
    assert found[0].free_ns == MS + 3000 + 420
    assert loop_of(found, MS).on_grid


def test_a_budget_that_comes_ends_the_sleep_whatever_else_of_the_thread_came_due_meanwhile() -> None:
    program, at = Program(), 50
    program.arm(40, 2 * MS - 200, "timerfd_tmrproc")
    for release in (MS, 2 * MS, 3 * MS):
        program.enter(at, "sched_yield")
        program.arm(at + 10, release, "dl_task_timer")
        program.leave(at + 20, RUNNABLE)
        program.fire(release + 5, release, "dl_task_timer", on=0)
        program.come(release + 90)
        program.back(release + 100)
        at = release + 400
    program.fire(2 * MS - 195, 2 * MS - 200, "timerfd_tmrproc")
    assert [(job.kind, job.release_ns) for job in jobs(program)] == [("deadline", MS), ("deadline", 2 * MS)]


def test_what_has_no_system_calls_is_back_when_it_is_on_a_cpu() -> None:
    program = Program()
    for at, due in ((50, 1000), (1500, 2000)):
        program.leave(at)
        program.fire(due + 5, due)
        program.wake(due + 10)
        program.come(due + 50)
    [job] = jobs(program)
    assert (job.release_ns, job.wake_ns, job.free_ns, job.busy_ns) == (1000, 1050, 1500, 450)


@pytest.mark.parametrize(
    ("lost_at", "cpu", "unknown"),
    [
        (2 * MS + 200, 0, [2 * MS]),  # within a job
        (2 * MS + 200, 1, [MS, 2 * MS]),  # CPU 1 told nothing since the beginning
        (2 * MS - 200, 0, [MS]),  # within a sleep: when it began is not known, what ended it is
    ],
)
def test_jobs_of_which_events_were_lost_are_unknown_and_never_in_time(
    lost_at: int, cpu: int, unknown: list[int]
) -> None:
    program = periodic([MS, 2 * MS, 3 * MS, 4 * MS, 5 * MS])
    program.lose(lost_at, cpu)
    found = rows(program)
    assert [row[0] for row in found if row[5] == LOST] == unknown
    known = [release for release in (MS, 2 * MS, 3 * MS, 4 * MS, 5 * MS) if release not in unknown]
    assert [row[0] for row in found if row[5] == SERVED] == known
    assert {row[4] for before, row in pairwise(found) if before[5] == LOST} == {-1}, "since when is not known"


def test_releases_within_a_gap_of_events_are_unknown_one_by_one() -> None:
    program = Program()
    program.sleep(50, MS, MS + 100)
    program.sleep(MS + 500, 2 * MS, 2 * MS + 100)
    program.lose(5 * MS - 500)
    program.sleep(5 * MS - 400, 5 * MS, 5 * MS + 100)
    program.sleep(5 * MS + 500, 6 * MS, 6 * MS + 100)
    program.sleep(6 * MS + 500, 7 * MS, 7 * MS + 100)
    assert [(row[0], row[5]) for row in rows(program)] == [
        (MS, SERVED), (2 * MS, LOST), (3 * MS, LOST), (4 * MS, LOST), (5 * MS, SERVED), (6 * MS, SERVED),
    ]  # fmt: skip


def test_relative_sleeps_have_no_grid_and_their_drift_is_told() -> None:
    releases = [MS]
    for more in (410, 433, 421, 407, 425):
        releases.append(releases[-1] + MS + more)  # asked for anew after each job, at +410 ns
    program = Program()
    at = 50
    for release in releases:
        program.sleep(at, release, release + 100, "nanosleep")
        at = release + 400
    found = jobs(program)
    loop = loop_of(found)
    assert not loop.on_grid
    assert loop.drift_ns == releases[-2] - releases[0] - 4 * MS
    assert loop.own_ns is None
    assert {row[5] for row in rows(program)} == {SERVED}


def test_a_period_that_is_given_tells_the_drift_against_it() -> None:
    releases = [MS + k * (MS + 500 + (k % 3) * 40) for k in range(8)]
    program = periodic(releases, call="nanosleep")
    loop = loop_of(jobs(program), MS)
    assert loop.drift_ns == releases[-1] - releases[0] - 7 * MS


def test_a_loop_that_sleeps_for_what_is_left_until_its_next_time_does_not_drift() -> None:
    program, at = Program(), 50
    for k in range(1, 30):
        release = k * MS + 600 + 40 * (k * k % 7)  # what it takes to work that out
        program.sleep(at, release, release + 20_000 * (k % 4 + 1))
        at = release + 20_000 * (k % 4 + 1) + 300
    loop = loop_of(jobs(program))
    assert (loop.on_grid, loop.steady, loop.drift_ns, loop.asked_ns) == (False, True, None, None)
    assert loop.own_ns is not None and abs(loop.own_ns - MS) < 40


@pytest.mark.parametrize(
    ("distance_ns", "passed"),
    [(MS, 0), (2 * MS, 1), (9_950_000, 9), (9_949_999, 0), (10_050_000, 9), (10_050_001, 0), (2_500_000, 0)],
)
def test_what_such_a_loop_passed_over_are_whole_periods_to_a_twentieth(distance_ns: int, passed: int) -> None:
    assert passed_over(distance_ns, MS) == passed


def test_a_timeout_from_now_on_is_no_grid_even_if_it_comes_evenly() -> None:
    assert not loop_of(jobs(periodic([MS, 2 * MS, 3 * MS], call="epoll_wait"))).on_grid


def test_a_loop_that_passes_over_most_releases_keeps_its_period() -> None:
    releases = [k * MS for k in (1, 4, 7, 9, 12, 17, 19, 22, 27, 31, 34, 39)]
    program = Program()
    for release in (*releases, 40 * MS):
        program.sleep(release - MS // 2, release, release + 100)
    loop = loop_of(jobs(program))
    assert (loop.period_ns, loop.on_grid) == (MS, True)
    assert [row[5] for row in rows(program)].count(SKIPPED) == 39 - 12


def test_a_grid_that_begins_anew_loses_no_release() -> None:
    releases = [k * MS for k in range(1, 6)] + [8 * MS + 300_000 + k * MS for k in range(4)]
    found = [(row[0], row[5]) for row in rows(periodic(releases))]
    assert found == [
        *((k * MS, SERVED) for k in range(1, 6)),
        *((k * MS, SKIPPED) for k in (6, 7)),
        *((8 * MS + 300_000 + k * MS, SERVED) for k in range(4)),
    ]


def test_another_period_that_stays_is_a_change_and_no_skips() -> None:
    releases = [k * MS for k in range(1, 61)] + [60 * MS + 2 * k * MS for k in range(1, 31)]
    program = periodic(releases)
    loop = loop_of(jobs(program))
    assert (loop.period_ns, loop.changes) == (MS, (PeriodChange(60 * MS, 2 * MS),))
    assert {row[5] for row in rows(program)} == {SERVED}
    assert [row[5] for row in rows(program, MS)].count(SKIPPED) == 30


def test_a_program_that_never_sleeps_or_never_wakes_has_no_job() -> None:
    busy = Program()
    busy.leave(500, RUNNABLE)
    busy.come(700)
    seen = sleeps_of(busy.trace, T)
    assert (seen.sleeps, seen.switches) == ([], 2)
    asleep = Program()
    asleep.enter(10, "pause")
    asleep.leave(20)
    assert sleeps_of(asleep.trace, T).sleeps == []


def test_a_trace_is_read_from_the_same_file_as_explain_reads(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text(
        "time_ns,cpu,event,tid,target,state,priority,name,value\n"
        "0,0,switch,0,10,runnable,19,loop,\n"
        "10,0,sys_in,10,,,,clock_nanosleep,\n"
        "20,0,timer_armed,10,10,,,,1000\n"
        "30,0,switch,10,0,sleeping,120,swapper/0,\n"
        "1010,0,timer_fired,0,10,,,,1000\n"
        "1015,0,waking,0,10,,19,loop,\n"
        "1050,0,switch,0,10,runnable,19,loop,\n"
        "1090,0,sys_out,10,,,,clock_nanosleep,\n"
        "1300,0,sys_in,10,,,,clock_nanosleep,\n"
        "1310,0,timer_armed,10,10,,,,2000\n"
        "1320,0,switch,10,0,sleeping,120,swapper/0,\n"
        "2010,0,timer_fired,0,10,,,,2000\n"
        "2015,0,waking,0,10,,19,loop,\n"
        "2050,0,switch,0,10,runnable,19,loop,\n"
        "2090,0,sys_out,10,,,,clock_nanosleep,\n"
    )
    [job] = jobs_of(sleeps_of(read_events(file), 10).sleeps)
    assert job == Job(1000, 1090, 1320, 230, "clock_nanosleep", 20)


def test_locks_are_counted_with_the_job_that_waited_for_them() -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    for at in (1200, 1300):
        program.wait(at, at + 50, at + 80, "futex")
    program.sleep(1500, 2000, 2100)
    program.sleep(2300, 3000, 3100)
    assert [job.waits for job in jobs(program)] == [2, 0]
