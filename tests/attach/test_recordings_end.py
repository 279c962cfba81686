"""What a thread was about when the recording ended: a job under way, and the releases that passed."""

from __future__ import annotations

import pytest
from programs import ENDED, RUNNABLE, Program, T

from rtmeter.attach import releases
from rtmeter.attach.follow import Followed
from rtmeter.explain.events import NO_VALUE
from rtmeter.model import ABSENT, LOST, SERVED, SKIPPED

MS = 1_000_000
GOOD = 10


def good(call: str = "clock_nanosleep", drift: int = 0) -> Program:
    """Released every ms, back 100 ns later; what was released at 10 ms works for 300 ns, or longer."""
    program, at = Program(), 50
    for k in range(1, GOOD + 1):
        release = k * MS + k * drift
        program.sleep(at, release, release + 100, call)
        at = release + 400
    return program


def followed(
    program: Program, end_ns: int | None, overdue_ns: int | None = None, *, until_wake: bool = False
) -> tuple[Followed, list[tuple[int, int, int]]]:
    """And (release, status, free) of the rows from the last good job on; absent ones are -1."""
    found = Followed(T, [(program.trace, None)], None, 0, overdue_ns=overdue_ns, until_wake=until_wake)
    found.end_ns = end_ns
    rows: list[tuple[int, int, int]] = []
    for piece in found.pieces():
        names = ("release_ns", "status", "free_ns")
        rows += zip(*(piece[name].tolist() for name in names), strict=True)
    assert [row[0] for row in rows[: GOOD - 1]] == [k * MS + rows[0][0] % MS * k for k in range(1, GOOD)]
    assert {row[1] for row in rows[: GOOD - 1]} == {SERVED}
    return found, [(row[0], row[1], -1 if row[2] == ABSENT else row[2]) for row in rows[GOOD - 1 :]]


def hung(program: Program, how: str) -> Program:
    at = 10 * MS + 400
    if how == "computes":
        for k in range(4):
            program.leave(at + k * MS, RUNNABLE)
            program.come(at + k * MS + 50)
    elif how == "waits for a lock":
        program.enter(at, "futex")
        program.leave(at + 10)
    elif how == "is kept off its CPU":
        program.leave(at, RUNNABLE)
    return program


@pytest.mark.parametrize("how", ["computes", "waits for a lock", "is kept off its CPU"])
def test_a_job_that_hangs_is_lost_and_what_passes_meanwhile_is_skipped(how: str) -> None:
    end = 13 * MS + 500
    found, rows = followed(hung(good(), how), end)
    assert rows == [(10 * MS, LOST, -1), *((k * MS, SKIPPED, end) for k in (11, 12, 13))]
    assert (found.unended_ns, found.jobs, found.loop.unknown) == (3 * MS + 500, GOOD - 1, 0)


@pytest.mark.parametrize("passed", [4, 5])
def test_of_very_many_releases_that_passed_the_first_are_skipped(
    monkeypatch: pytest.MonkeyPatch, passed: int
) -> None:
    monkeypatch.setattr(releases, "LARGEST_GAP", 5)
    end = (10 + passed) * MS + 500
    _, rows = followed(hung(good(), "computes"), end)
    assert rows == [(10 * MS, LOST, -1), *((k * MS, SKIPPED, end) for k in (11, 12, 13, 14))]


@pytest.mark.parametrize(
    ("open_ns", "overdue_ns", "lost"),
    [
        (MS, None, False),
        (MS + 1, None, True),
        (MS // 2, MS // 2, False),
        (MS // 2 + 1, MS // 2, True),
        (2 * MS, 2 * MS, False),
    ],
)
def test_one_that_may_be_in_time_yet_is_no_row(open_ns: int, overdue_ns: int | None, lost: bool) -> None:
    found, rows = followed(hung(good(), "computes"), 10 * MS + open_ns, overdue_ns)
    assert [row[0] for row in rows if row[1] == LOST] == [10 * MS] * lost
    assert SERVED not in {row[1] for row in rows}
    assert found.unended_ns == (open_ns if lost else None)


@pytest.mark.parametrize(("open_ns", "skipped"), [(2 * MS + 500, 0), (5 * MS, 0), (5 * MS + 1, 5)])
def test_within_a_deadline_of_several_periods_nothing_was_passed_over_yet(open_ns: int, skipped: int) -> None:
    end = 10 * MS + open_ns
    lost = [(10 * MS, LOST, -1)] if skipped else []
    passed = [(k * MS, SKIPPED, end) for k in range(11, 11 + skipped)]
    assert followed(hung(good(), "computes"), end, 5 * MS)[1] == lost + passed


def test_without_a_grid_the_job_alone_is_lost() -> None:
    found, rows = followed(hung(good("nanosleep", drift=777), "waits for a lock"), 20 * MS)
    assert rows == [(10 * MS + 7770, LOST, -1)]
    assert not found.loop.on_grid


def test_one_that_sleeps_until_a_later_timer_has_passed_over_nothing() -> None:
    program, free = good(), 10 * MS + 420
    program.enter(free - 20, "clock_nanosleep")
    program.arm(free - 10, 15 * MS)
    program.leave(free)
    found, rows = followed(program, 14 * MS + 999_999)
    assert rows == [(10 * MS, SERVED, free)]
    assert (found.unended_ns, found.jobs) == (None, GOOD)


def test_nor_has_one_whose_timer_may_be_due_later_as_its_expiry_is_not_told() -> None:
    program, free = good(), 10 * MS + 420
    program.enter(free - 120, "timerfd_settime")
    program.arm(free - 110, NO_VALUE, "timerfd_tmrproc")
    program.back(free - 100, "timerfd_settime")
    program.enter(free - 20, "read")
    program.leave(free)
    assert followed(program, 14 * MS)[1] == [(10 * MS, SERVED, free)]


def test_but_for_what_came_before_it_slept() -> None:
    program, free = good(), 12 * MS + 420
    program.enter(free - 20, "clock_nanosleep")
    program.arm(free - 10, 15 * MS)
    program.leave(free)
    assert followed(program, 14 * MS)[1] == [
        (10 * MS, SERVED, free), (11 * MS, SKIPPED, free), (12 * MS, SKIPPED, free),
    ]  # fmt: skip


@pytest.mark.parametrize("armed", [False, True])
def test_one_that_waits_for_a_message_has_passed_over_all_but_what_is_due_now(armed: bool) -> None:
    """A timeout that was armed for a wait before is none of this one."""
    program, at = good(), 10 * MS + 400
    if armed:
        program.wait(at, at + 50, at + 80, "poll", timeout=99 * MS)
        at += 100
    program.enter(at, "recvmsg")
    program.leave(at + 20)
    served = [(10 * MS, SERVED, 10 * MS + 420)]
    served += [(10 * MS + 450, SERVED, at + 20)] * armed
    skipped = [(k * MS, SKIPPED, k * MS) for k in (11, 12, 13)]
    assert followed(program, 14 * MS + 300)[1] == served + skipped


def test_a_timer_that_other_calls_serve_may_be_the_later_one() -> None:
    program, at = good("read", 0), 10 * MS + 400
    program.arm(at - 200, 99 * MS, "timerfd_tmrproc")
    program.enter(at, "epoll_wait")
    program.leave(at + 20)
    assert followed(program, 14 * MS + 300)[1] == [(10 * MS, SERVED, at + 20)]


@pytest.mark.parametrize("function", ["dl_task_timer", "it_real_fn", "posix_timer_fn"])
def test_nobody_elses_budget_and_no_watchdog_is_what_a_hang_is_to_end_by(function: str) -> None:
    program, at = good(), 10 * MS + 400
    program.arm(at - 200, 60_000 * MS, function)
    program.enter(at, "recvmsg")
    program.leave(at + 20)
    skipped = [(k * MS, SKIPPED, k * MS) for k in (11, 12, 13)]
    assert followed(program, 14 * MS + 300)[1] == [(10 * MS, SERVED, at + 20), *skipped]


def signalled() -> tuple[Program, int]:
    """Released every ms by a POSIX timer's signal, for which it waits; and when it waits for the next."""
    program, at = Program(), 50
    for k in range(1, GOOD + 1):
        program.arm(at - 10, k * MS, "posix_timer_fn")
        program.sleep(at, k * MS, k * MS + 100, "rt_sigtimedwait", "posix_timer_fn")
        at = k * MS + 400
    return program, at


def test_a_timer_of_signals_that_released_jobs_may_be_the_later_one() -> None:
    program, at = signalled()
    program.arm(at - 10, 99 * MS, "posix_timer_fn")
    program.enter(at, "rt_sigtimedwait")
    program.leave(at + 20)
    assert followed(program, 14 * MS + 300)[1] == [(10 * MS, SERVED, at + 20)]


def test_a_deadline_thread_that_yields_sleeps_until_its_own_budget() -> None:
    program, at = Program(), 50
    for k in range(1, GOOD + 2):
        program.enter(at, "sched_yield")
        program.arm(at + 10, k * MS if k <= GOOD else 99 * MS, "dl_task_timer")
        program.leave(at + 20, RUNNABLE)
        if k <= GOOD:
            program.fire(k * MS + 5, k * MS, "dl_task_timer")
            program.come(k * MS + 90)
            program.back(k * MS + 100, "sched_yield")
        at = k * MS + 400
    assert followed(program, 14 * MS + 300)[1] == [(10 * MS, SERVED, 10 * MS + 420)]


def woken(program: Program) -> Program:
    """From its next sleep, at 11 ms, and not back."""
    program.enter(10 * MS + 400, "clock_nanosleep")
    program.arm(10 * MS + 410, 11 * MS)
    program.leave(10 * MS + 420)
    program.fire(11 * MS + 5, 11 * MS)
    program.wake(11 * MS + 10)
    return program


def test_a_thread_that_was_woken_and_is_not_back_has_lost_that_release() -> None:
    program, free = woken(good()), 10 * MS + 420
    end = 13 * MS + 5
    assert followed(program, end)[1] == [
        (10 * MS, SERVED, free),
        (11 * MS, LOST, -1),
        *((k * MS, SKIPPED, end) for k in (12, 13)),
    ]
    assert followed(program, 11 * MS + 20)[1] == [(10 * MS, SERVED, free)]


def test_where_wakings_are_judged_one_that_woke_is_not_lost_but_what_passed_meanwhile_is_skipped() -> None:
    end = 13 * MS + 500
    found, rows = followed(hung(good(), "computes"), end, until_wake=True)
    assert rows == [(k * MS, SKIPPED, end) for k in (11, 12, 13)]
    assert (found.unended_ns, found.unended_lost) == (3 * MS + 500, False)


def test_and_one_that_has_not_woken_is() -> None:
    program, free = woken(good()), 10 * MS + 420
    found, rows = followed(program, 12 * MS + 5, until_wake=True)
    assert rows == [(10 * MS, SERVED, free), (11 * MS, LOST, -1), (12 * MS, SKIPPED, 12 * MS + 5)]
    assert found.unended_lost


def test_a_stopped_one_serves_nothing() -> None:
    """A signal interrupted its sleep; the kernel will enter the call again."""
    program, free = good(), 10 * MS + 420
    program.enter(free - 20, "clock_nanosleep")
    program.arm(free - 10, 11 * MS)
    program.leave(free)
    program.wake(10 * MS + 500, by=77, cpu=1)
    program.come(10 * MS + 510)
    program.back(10 * MS + 520, "clock_nanosleep", -516)
    program.leave(10 * MS + 530, RUNNABLE)
    assert followed(program, 13 * MS + 5)[1] == [
        (10 * MS, SERVED, free), *((k * MS, SKIPPED, k * MS) for k in (11, 12)),
    ]  # fmt: skip


@pytest.mark.parametrize("how", ["ends", "becomes another program"])
def test_a_thread_that_has_ended_leaves_nothing_to_tell(how: str) -> None:
    program, at = good(), 10 * MS + 400
    if how == "ends":
        program.leave(at, ENDED)
    else:
        program.enter(at, "execve")
        program.back(at + 10, "execve")
        program.sleep(at + 20, 20 * MS, 20 * MS + 100)
    found, rows = followed(program, 30 * MS)
    assert (rows, found.unended_ns, found.over) == ([], None, True)
    assert (found.seen.ended, found.seen.replaced) == (True, how != "ends")


def test_a_call_that_became_no_other_program_goes_on() -> None:
    program, at = good(), 10 * MS + 400
    program.enter(at, "execve")
    program.back(at + 10, "execve", -2)
    assert [row[1] for row in followed(program, 12 * MS)[1]] == [LOST, SKIPPED, SKIPPED]


@pytest.mark.parametrize("waits", [False, True], ids=["at work", "before a lock"])
def test_where_events_were_lost_it_is_not_known_what_it_did(waits: bool) -> None:
    program = good()
    program.lose(10 * MS + 600)
    if waits:
        program.wait(10 * MS + 700, 10 * MS + 800, 10 * MS + 900, "futex")
    found, rows = followed(program, 13 * MS + 5)
    assert rows == [(k * MS, LOST, -1) for k in (10, 11, 12, 13)]
    assert found.unended_ns is None
    assert followed(program, 10 * MS + 900)[1] == []


def test_without_an_end_nothing_is_told_of_what_was_under_way() -> None:
    assert followed(hung(good(), "computes"), None)[1] == []
