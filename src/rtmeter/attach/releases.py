"""Jobs → the rows of a cell: every release served, skipped, or not known."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from operator import itemgetter

import numpy as np

from rtmeter.attach.grid import LARGEST_GAP, AttachedLoop, changing, steps_of, tolerance_ns
from rtmeter.attach.jobs import Job
from rtmeter.model import ABSENT, LOST, SERVED, SKIPPED
from rtmeter.statistics.quantities import Ints

COLUMNS = ("release_ns", "wake_ns", "free_ns", "busy_ns", "interval_ns", "by_timer")
"""``interval_ns``: from the wake-up before to this one; ``by_timer``: 1 if a timer released the job, 0 if
something else did: ``release_ns`` is a waking then."""

TID = "tid"
"""Beside them, of a callback: the thread that ran the job."""

ReleaseRow = tuple[int, int, int, int, int, int, int, int]
"""COLUMNS, TID and the status."""


def columns_of(jobs: Sequence[Job], loop: AttachedLoop) -> dict[str, Ints]:
    """A row for each release, in order of time: COLUMNS and ``status``."""
    return as_columns(list(rows_of(changing(jobs, loop), loop, tolerance_ns(jobs))))


def as_columns(rows: Sequence[ReleaseRow], *, with_threads: bool = False) -> dict[str, Ints]:
    """COLUMNS, TID if it is asked for, and ``status``."""
    names = (*COLUMNS, TID, "status")
    table = np.asarray(rows, np.int64).reshape(-1, len(names))
    columns = {name: np.ascontiguousarray(table[:, place]) for place, name in enumerate(names)}
    if not with_threads:
        del columns[TID]
    return columns


def is_overdue(job: Job, loop: AttachedLoop, overdue_ns: int | None) -> bool:
    """Whether a job that has not ended is late already: after ``overdue_ns``, else a period."""
    limit = overdue_ns or loop.period_ns
    return not job.ended and limit is not None and job.free_ns - job.release_ns > limit


def rows_of(
    jobs: Iterable[tuple[Job, int | None]],
    loop: AttachedLoop,
    within_ns: int,
    overdue_ns: int | None = None,
    *,
    until_wake: bool = False,
) -> Iterator[ReleaseRow]:
    """Of jobs, each with the period that begins with it. Between known releases of a grid every one that
    nobody slept for is skipped, or not known if events were lost meanwhile; without a grid each job whose
    events were lost is one. ``within_ns``: how far off the grid an expiry may be. A job that had not ended at
    the recording's end is lost if it is late already, else none; what passed on the grid since is skipped.
    ``until_wake``: what is judged is when it woke; one that had is none then."""
    grid = _Grid(loop.period_ns, within_ns) if loop.on_grid and loop.period_ns else None
    since: list[Job] = []  # the last release on the grid, and what else was done after it
    lost: list[Job] = []
    held: list[ReleaseRow] = []  # of what a timer did not release: skipped ones may lie before them
    last: Job | None = None
    for job, period_ns in jobs:
        last, counts = job, job.ended or is_overdue(job, loop, overdue_ns)
        if not job.known:
            lost += [job] * counts
            if grid is not None and period_ns is not None:
                grid.period_ns = period_ns
            continue
        interval = job.wake_ns - since[-1].wake_ns if since and not lost else ABSENT
        counts = counts and not (until_wake and job.is_back)
        rows = [_served(job, interval)] if job.ended else [_nothing(job.release_ns)] * counts
        if grid is None:
            yield from (_nothing(one.release_ns) for one in lost)
            yield from rows
            since, lost = [job], []
            continue
        held += rows
        if job.by_timer:
            passed = grid.passed(job.release_ns)
            if lost:
                held += (_nothing(release) for release in passed or [one.release_ns for one in lost])
            else:
                held += (_skipped(release, since) for release in passed)
            grid.period_ns = period_ns or grid.period_ns
            held.sort(key=itemgetter(0))
            until = bisect_right(held, job.release_ns, key=itemgetter(0))
            yield from held[:until]
            held = held[until:]
            since, lost = [], []
        since.append(job)
    until_ns = _nothing_until(last, loop, overdue_ns) if last is not None else None
    passed = grid.passed_until(until_ns) if grid is not None and until_ns is not None else ()
    if lost:
        ends = (_nothing(release) for release in passed or sorted(one.release_ns for one in lost))
    else:
        ends = (_skipped(release, since) for release in passed)
    yield from merge(sorted(held, key=itemgetter(0)), ends, key=itemgetter(0))


def _nothing_until(last: Job, loop: AttachedLoop, overdue_ns: int | None) -> int | None:
    """Until when releases after the last job have passed; of a thread that sleeps, or whose job is not late
    yet, what is due now may be in time, and of one whose state is not known all that may be."""
    hangs = is_overdue(last, loop, overdue_ns)
    if last.until_ns is None or not (last.known or last.ended or hangs):
        return None
    due_now_ns = 0 if hangs else overdue_ns or loop.period_ns or 0
    since_ns = last.free_ns if last.ended or hangs else last.release_ns
    return max(since_ns, last.until_ns - due_now_ns)


def _served(job: Job, interval_ns: int) -> ReleaseRow:
    times = job.release_ns, job.wake_ns, job.free_ns, job.busy_ns
    return *times, interval_ns, int(job.by_timer), ABSENT if job.tid is None else job.tid, SERVED


def _nothing(release_ns: int) -> ReleaseRow:
    return release_ns, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, LOST


def _skipped(release_ns: int, since: Sequence[Job]) -> ReleaseRow:
    """The thread was free when the job ended in whose time the release lay; one that it passed over while it
    was free counts from itself on."""
    at_work = (job.free_ns for job in since if job.release_ns <= release_ns < job.free_ns)
    free_ns = next(at_work, release_ns)
    return release_ns, ABSENT, free_ns, ABSENT, ABSENT, ABSENT, ABSENT, SKIPPED


class _Grid:
    """The grid of a loop, as its releases go on."""

    def __init__(self, period_ns: int, within_ns: int) -> None:
        self.period_ns, self._within = period_ns, within_ns
        self._last: int | None = None

    def passed(self, release_ns: int) -> Sequence[int]:
        """The releases between the last one and this one. One that is off the grid stands for the nearest on
        it; from there the grid goes on. After one of another timer, served late, it does not go back."""
        last = self._last
        self._last = release_ns if last is None else max(last, release_ns)
        if last is None:
            return ()
        distance = release_ns - last
        steps = steps_of(distance, self.period_ns, self._within) or round(distance / self.period_ns)
        return self._between(last, steps)

    def passed_until(self, time_ns: int) -> Sequence[int]:
        """The releases after the last one, up to a time; of very many the first."""
        if self._last is None:
            return ()
        return self._between(self._last, min((time_ns - self._last) // self.period_ns + 1, LARGEST_GAP))

    def _between(self, last_ns: int, steps: int) -> Sequence[int]:
        if not 1 < steps <= LARGEST_GAP:
            return ()
        return range(last_ns + self.period_ns, last_ns + steps * self.period_ns, self.period_ns)
