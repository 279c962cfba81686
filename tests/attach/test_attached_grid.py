"""Which distances of releases are a period, and which are none: jobs made up one by one."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
import pytest

from rtmeter.attach import releases
from rtmeter.attach.asleep import MESSAGE
from rtmeter.attach.grid import BUDGET_NS, EXACT_NS, loop_of, mode_of, tolerance_ns
from rtmeter.attach.jobs import Job
from rtmeter.attach.releases import columns_of
from rtmeter.model import ABSENT, LOST, SERVED, SKIPPED

MS = 1_000_000


def jobs(distances: list[int], kind: str = "clock_nanosleep") -> list[Job]:
    """Released at these distances, the first at 1 ms; each is back 100 ns later and works for 300 ns."""
    return [Job(at, at + 100, at + 400, 300, kind, None) for at in accumulate(distances, initial=MS)]


@pytest.mark.parametrize(("periods", "skipped"), [(5, 4), (6, 0)])
def test_a_gap_longer_than_the_largest_is_a_loop_that_was_stopped_and_no_skips(
    monkeypatch: pytest.MonkeyPatch, periods: int, skipped: int
) -> None:
    monkeypatch.setattr(releases, "LARGEST_GAP", 5)
    found = jobs([MS] * 4 + [periods * MS] + [MS] * 4)
    status = columns_of(found, loop_of(found))["status"].tolist()
    assert (status.count(SERVED), status.count(SKIPPED)) == (10, skipped)


@pytest.mark.parametrize(("off_ns", "steady"), [(MS // 4, True), (MS // 4 + 1, False)])
def test_a_period_is_near_most_distances(off_ns: int, steady: bool) -> None:
    found = loop_of(jobs([MS - off_ns, MS + off_ns] * 10, "nanosleep"), MS)
    assert (found.on_grid, found.steady, found.drift_ns) == (False, steady, 0 if steady else None)


@pytest.mark.parametrize(("answers", "paced"), [(1, True), (2, False)])
def test_a_loop_that_waits_once_for_an_answer_in_each_cycle_is_paced_by_its_timer(
    answers: int, paced: bool
) -> None:
    cycles = jobs([MS] * 10)
    waits = [Job(job.free_ns + 50, job.free_ns + 60, job.free_ns + 90, 30, MESSAGE, None) for job in cycles]
    found = sorted(cycles + waits * answers, key=lambda job: job.release_ns)
    loop = loop_of(found)
    assert (loop.by_timer, loop.on_grid) == (paced, paced)
    assert (loop.period_ns == MS) == paced


STEPS = (2, 3, 5, 7, 4, 9, 8, 5, 11, 13)


def working(distances: list[int]) -> list[Job]:
    """As jobs(), but each works until shortly before the next one's release."""
    found = jobs(distances)
    return [replace(a, free_ns=b.release_ns - 1000) for a, b in pairwise(found)] + found[-1:]


@pytest.mark.parametrize(("period_ns", "on_grid"), [(50_000, True), (49_999, False)])
def test_a_divisor_of_the_distances_is_a_period_from_50_us_on(period_ns: int, on_grid: bool) -> None:
    found = loop_of(working([steps * period_ns for steps in STEPS]))
    assert (found.on_grid, found.period_ns == period_ns) == (on_grid, on_grid)


@pytest.mark.parametrize(("at_work", "on_grid"), [(5, True), (4, False)])
def test_a_divisor_is_none_if_the_thread_mostly_slept_over_the_last_release_between(
    at_work: int, on_grid: bool
) -> None:
    distances = [steps * MS for steps in STEPS]
    found = [*working(distances)[:at_work], *jobs(distances)[at_work:]]
    assert loop_of(found).on_grid == on_grid


@pytest.mark.parametrize("jobs_more", [0, 1, 2])
@pytest.mark.parametrize(
    ("cycle", "period"), [((300, 700), 300), ((700, 300), 300), ((300, 150, 550), 150), ((310, 690), 310)]
)
def test_a_loop_that_sleeps_several_times_in_a_cycle_has_no_grid_whatever_it_ends_with(
    cycle: tuple[int, ...], period: int, jobs_more: int
) -> None:
    found = jobs([each * 1000 for each in (cycle * 100)[: 180 + jobs_more]])
    loop = loop_of(found)
    assert (loop.period_ns, loop.on_grid, loop.steady, loop.drift_ns) == (period * 1000, False, False, None)
    assert SKIPPED not in columns_of(found, loop)["status"]


@pytest.mark.parametrize("jobs_more", [0, 1])
def test_and_one_whose_distances_are_multiples_has_one_whatever_it_ends_with(jobs_more: int) -> None:
    loop = loop_of(jobs([each * 1000 for each in ((750, 250) * 100)[: 180 + jobs_more]]))
    assert (loop.period_ns, loop.on_grid) == (250_000, True)


@pytest.mark.parametrize(("off", "on_grid"), [(3, True), (4, False)])
def test_seven_expiries_in_ten_or_more_are_on_their_grid(off: int, on_grid: bool) -> None:
    distances = [MS] * (10 - off) + [MS + 1000 + 77_777 * one for one in range(off)]
    assert loop_of(jobs(distances), MS).on_grid == on_grid


def test_those_that_began_anew_after_their_work_took_too_long_are_not_off_it() -> None:
    distances = [MS] * 10 + [MS + 1000 + 77_777 * one for one in range(10)]
    late = working(distances)[10:20]
    late = [replace(job, free_ns=max(job.free_ns, job.release_ns + MS + 1)) for job in late]
    found = [*jobs(distances)[:10], *late, *jobs(distances)[20:]]
    assert loop_of(found, MS).on_grid
    assert not loop_of(jobs(distances), MS).on_grid
    assert not loop_of(found[2:], MS).on_grid, "fewer than half"


@pytest.mark.parametrize(("before", "after"), [(60, 60), (100, 200), (200, 100), (30, 300), (300, 30)])
def test_two_periods_in_turn_are_a_grid_that_changes(before: int, after: int) -> None:
    loop = loop_of(jobs([MS] * before + [3 * MS] * after))
    assert (loop.on_grid, loop.steady) == (True, True)
    assert MS in {loop.period_ns, *(change.period_ns for change in loop.changes)}
    assert loop.changes[-1].period_ns == 3 * MS


def test_a_period_may_change_with_a_job_of_which_events_were_lost() -> None:
    found = jobs([MS] * 40 + [2 * MS] * 40)
    found[40] = replace(found[40], known=False)
    loop = loop_of(found)
    status = columns_of(found, loop)["status"].tolist()
    assert [change.period_ns for change in loop.changes] == [2 * MS]
    assert (status.count(SERVED), status.count(LOST), status.count(SKIPPED)) == (80, 1, 0)


@pytest.mark.parametrize(("distance_ns", "skipped"), [(2_300_000, 1), (2_700_000, 2)])
def test_a_release_off_the_grid_stands_for_the_nearest_on_it(distance_ns: int, skipped: int) -> None:
    found = jobs([MS] * 20 + [distance_ns] + [MS] * 20)
    assert columns_of(found, loop_of(found))["status"].tolist().count(SKIPPED) == skipped


def test_many_periods_in_turn_are_too() -> None:
    loop = loop_of(jobs(([MS] * 20 + [1_700_000] * 20) * 5))
    assert (loop.on_grid, loop.period_ns) == (True, MS)
    assert [change.period_ns for change in loop.changes] == [1_700_000, MS] * 4 + [1_700_000]


@pytest.mark.parametrize(("kind", "row"), [("nanosleep", 20), ("clock_nanosleep", 19)])
def test_neither_timeouts_nor_short_rows_are_a_period_that_changes(kind: str, row: int) -> None:
    assert not loop_of(jobs(([MS] * row + [1_700_000] * row) * 5, kind)).on_grid


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [64, 1000])
def test_of_many_distances_it_is_told_whether_a_loop_corrects_its_sleeps(seed: int, n: int) -> None:
    """Whatever armed its timers, as boost's does by timerfd_settime(); each release comes some 50 us late."""
    late = np.random.default_rng(seed).normal(50_000, 5_000, n + 1).astype(np.int64)
    own = loop_of(jobs((MS + np.diff(late)).tolist(), "timerfd"))
    assert own.own_ns is not None and abs(own.own_ns - MS) < 1000
    assert (own.on_grid, own.drift_ns) == (False, None)
    over = (MS + np.diff(late)).tolist()
    over[7] += 3 * MS
    assert loop_of(jobs(over, "timerfd"), MS).drift_ns == late[-1] - late[0], "and not by what it passed over"
    anew = loop_of(jobs((MS + late[1:]).tolist(), "timerfd"))
    assert (anew.own_ns, anew.asked_ns) == (None, anew.period_ns)
    assert anew.drift_ns == MS * n + late[1:].sum() - n * (anew.period_ns or 0)


def test_a_loop_that_takes_its_work_off_its_sleep_falls_behind_all_the_same() -> None:
    """`sleep(period - elapsed)`: how long it asks to sleep differs more than its releases' distances."""
    random = np.random.default_rng(1)
    work, late = random.integers(10_000, 300_000, 101), random.integers(1_000, 9_000, 101)
    found = [
        replace(job, armed_ns=job.release_ns - MS + int(took), free_ns=job.release_ns + int(took))
        for job, took in zip(jobs((MS + late[1:]).tolist()), work, strict=True)
    ]
    loop = loop_of(found)
    assert loop.own_ns is None and loop.drift_ns is not None


def overrunning(good: int, bad: int, work_ns: int, steps: int) -> list[Job]:
    """In its first periods done at once; then each job works for longer, and goes on ``steps`` later."""
    even = jobs([MS] * (good - 1))
    late = jobs([good * MS] + [steps * MS] * bad)[1:]
    return [*even, *(replace(job, free_ns=job.release_ns + work_ns) for job in late)]


@pytest.mark.parametrize(
    ("bad", "steps", "work_ns"), [(19, 2, MS + 200), (100, 2, MS + 200), (60, 3, 2 * MS + 1)]
)
def test_releases_that_pass_while_it_works_are_skipped_however_many_in_a_row(
    bad: int, steps: int, work_ns: int
) -> None:
    found = overrunning(200, bad, work_ns, steps)
    loop = loop_of(found)
    assert (loop.period_ns, loop.on_grid, loop.changes) == (MS, True, ())
    status = columns_of(found, loop)["status"].tolist()
    assert status.count(SKIPPED) == (steps - 1) * bad


@pytest.mark.parametrize(("bad", "steps", "work_ns"), [(60, 2, MS), (60, 3, 2 * MS), (60, 3, MS + 200)])
def test_another_period_is_one_over_whose_earlier_releases_it_sleeps(
    bad: int, steps: int, work_ns: int
) -> None:
    found = overrunning(200, bad, work_ns, steps)
    loop = loop_of(found)
    assert [change.period_ns for change in loop.changes] == [steps * MS]
    assert SKIPPED not in columns_of(found, loop)["status"]


@pytest.mark.parametrize(("late", "changes"), [(10, 1), (11, 0)])
def test_it_is_passed_over_where_most_of_twenty_were_at_work(late: int, changes: int) -> None:
    found = overrunning(200, 20, 300, 2)
    found[200 : 200 + late] = [replace(job, free_ns=job.free_ns + MS) for job in found[200 : 200 + late]]
    assert len(loop_of(found).changes) == changes


def test_a_wait_for_an_answer_over_a_release_passes_over_it_too() -> None:
    found: list[Job] = jobs([MS] * 199)
    for job in jobs([200 * MS] + [2 * MS] * 60)[1:]:
        found += [job, message(job.release_ns + MS + 500, job.release_ns + MS + 900)]
    assert loop_of(found).changes == ()
    assert columns_of(found, loop_of(found))["status"].tolist().count(SKIPPED) == 60


def message(woken_ns: int, free_ns: int) -> Job:
    return Job(woken_ns, woken_ns + 100, free_ns, free_ns - woken_ns - 100, "message", None)


def test_a_release_that_nobody_slept_for_counts_until_whoever_was_at_work_then_is_free() -> None:
    """The one at 3 ms passed while the thread waited; that at 4 ms while it did what a message asked for."""
    served = jobs([MS, 3 * MS, MS, MS, MS])
    messages = [message(3 * MS + 500, 4 * MS + 200), message(4 * MS + 600, 4 * MS + 900)]
    found = columns_of([*served[:2], *messages, *served[2:]], loop_of(jobs([MS] * 5)))
    skipped = found["status"] == SKIPPED
    assert found["release_ns"][skipped].tolist() == [3 * MS, 4 * MS]
    assert found["free_ns"][skipped].tolist() == [3 * MS, 4 * MS + 200]


def test_a_release_that_a_late_wake_up_passed_over_counts_until_its_work_is_done() -> None:
    late = Job(MS, 2 * MS + 300, 2 * MS + 700, 400, "clock_nanosleep", None)
    found = columns_of([late, *jobs([2 * MS, MS])[1:]], loop_of(jobs([MS] * 5)))
    assert found["status"].tolist() == [SERVED, SKIPPED, SERVED, SERVED]
    assert found["free_ns"].tolist()[:2] == [2 * MS + 700] * 2


def rows(found: list[Job]) -> list[tuple[int, int]]:
    """Release, in us, and status."""
    columns = columns_of(found, loop_of(jobs([MS] * 5)))
    releases = [release // 1000 for release in columns["release_ns"].tolist()]
    return list(zip(releases, columns["status"].tolist(), strict=True))


def test_what_a_message_released_comes_after_the_releases_that_were_passed_over_before_it() -> None:
    first, second, third = jobs([4 * MS, MS])
    found = [first, message(3_500_000, 3_600_000), message(4_700_000, 4_800_000), second, third]
    assert rows(found) == [
        *((1000, SERVED), (2000, SKIPPED), (3000, SKIPPED), (3500, SERVED), (4000, SKIPPED)),
        *((4700, SERVED), (5000, SERVED), (6000, SERVED)),
    ]


def test_and_after_those_that_are_served_late_once_its_work_is_done() -> None:
    first, *late = jobs([MS, MS, MS])
    late = [replace(job, wake_ns=job.wake_ns + 3 * MS, free_ns=job.free_ns + 3 * MS) for job in late]
    assert rows([first, message(3_500_000, 5 * MS), *late, message(6 * MS, 7 * MS)]) == [
        *((1000, SERVED), (2000, SERVED), (3000, SERVED), (3500, SERVED), (4000, SERVED), (6000, SERVED))
    ]


def test_what_is_not_known_is_in_order_of_time_too() -> None:
    first, second = jobs([3 * MS])
    unknown = replace(message(3_200_000, 3_300_000), known=False)
    found = [first, message(2_500_000, 2_600_000), unknown, second, message(4_500_000, 4_600_000)]
    end = replace(message(4_200_000, 4_300_000), known=False)
    assert rows([*found, end]) == [
        *((1000, SERVED), (2000, LOST), (2500, SERVED), (3000, LOST), (4000, SERVED), (4200, LOST)),
        (4500, SERVED),
    ]


def test_an_interval_goes_from_the_wake_up_before_whatever_released_it() -> None:
    first, second, third = jobs([MS, MS])
    found = columns_of(
        [first, message(MS + 500, MS + 900), second, message(2 * MS + 600, 2 * MS + 700), third],
        loop_of(jobs([MS] * 5)),
    )
    assert found["interval_ns"].tolist() == [ABSENT, 500, MS - 500, 600, MS - 600]


def test_each_row_that_was_served_tells_whether_a_timer_released_it() -> None:
    first, second, third = jobs([2 * MS, MS])
    unknown = replace(message(2 * MS + 500, 2 * MS + 600), known=False)
    found = [first, message(MS + 500, MS + 900), second, third]
    loop = loop_of(jobs([MS] * 5))
    assert columns_of(found, loop)["by_timer"].tolist() == [1, 0, ABSENT, 1, 1]
    found.insert(2, unknown)
    assert columns_of(found, loop)["by_timer"].tolist() == [1, 0, ABSENT, 1, 1]


def test_what_released_a_job_that_is_not_known_counts_where_none_is_known() -> None:
    timed = jobs([MS] * 4)
    unknown = [replace(message(job.release_ns + 500, job.release_ns + 600), known=False) for job in timed * 3]
    loop = loop_of([*timed, *unknown])
    assert (loop.kinds, loop.by_timer, loop.on_grid) == ({"clock_nanosleep": 5}, True, True)
    assert loop.unknown == len(unknown)
    assert loop_of(unknown).kinds == {"message": len(unknown)}


def test_a_distance_of_half_of_them_is_the_period_and_one_of_fewer_is_not_alone() -> None:
    assert mode_of([MS, MS, MS - 3_000, MS - 5_000]) == MS
    assert mode_of([MS, MS, MS - 3_000, MS - 5_000, MS - 6_000]) == MS - 3_000
    assert mode_of([MS, MS + 1_000, MS + 2_000, MS + 3_000]) == MS + 1_000, "the middle, of two the shorter"


def test_a_deadline_threads_timer_may_be_off_its_grid_by_its_budgets_clock() -> None:
    one, *others = jobs([MS, MS])
    assert tolerance_ns([one, *others]) == EXACT_NS
    assert tolerance_ns([replace(one, kind="deadline"), *others]) == BUDGET_NS
