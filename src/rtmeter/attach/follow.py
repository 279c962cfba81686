"""What the kernel tells of a thread, part by part → its rows, piece by piece: memory does not grow with time.

The first jobs tell the period and whether there is a grid; those that come after are followed by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from operator import attrgetter, itemgetter

from rtmeter.attach.asleep import Rest, Sleep, ThreadSleeps
from rtmeter.attach.grid import (
    AttachedLoop,
    PeriodChange,
    changing,
    kinds_of,
    loop_of,
    passed_over,
    tolerance_ns,
)
from rtmeter.attach.jobs import EarlyJobs, Job, jobs_of
from rtmeter.attach.releases import ReleaseRow, as_columns, is_overdue, rows_of
from rtmeter.attach.sleeps import Reader
from rtmeter.explain.events import Trace
from rtmeter.model import SKIPPED
from rtmeter.statistics.quantities import Ints

HEAD = 20_000
"""So many jobs tell the period."""

PIECE = 65_536
"""Rows that are handed on at once."""

Part = tuple[Trace, int | None]
"""Events in order of time, and the time until which nothing is to come any more (None: all is there)."""


class Followed:
    """The thread ``tid``; ``jobs`` are those that are its own (None: from sleep to sleep). ``period_ns`` as
    the user gave it; releases of the first ``warm_up_ns`` are the first ``warm_up`` rows. A job that had not
    ended when the recording did is lost once it was due for ``overdue_ns``, or else for a period; where what
    is judged is when it woke (``until_wake``), only if it had not. ``tell``: is told of known jobs after the
    warm-up as they end, long before there are rows of them.

    Once pieces() has ended, ``loop`` and ``told`` are of all; before, of what has come so far.
    """

    def __init__(
        self,
        tid: int,
        parts: Iterable[Part],
        period_ns: int | None,
        warm_up_ns: int,
        jobs: Iterable[Job] | None = None,
        overdue_ns: int | None = None,
        *,
        until_wake: bool = False,
        tell: Callable[[Job], None] | None = None,
    ) -> None:
        self._early = EarlyJobs(self._told_early) if tell is not None else None
        self._tell = tell
        self._reader, self._parts, self._of_others = Reader(tid), parts, jobs
        self._period, self._warm_up_ns, self._overdue_ns = period_ns, warm_up_ns, overdue_ns
        self._until_wake = until_wake
        self.end_ns: int | None = None
        """When the recording ended: set before the parts do. None: of what was under way nothing is told."""
        self.unended_ns: int | None = None
        """How long the job had been due that had not ended and is late; None: there is none."""
        self.unended_lost = False
        """Whether that one is lost, and not none."""
        self.loop: AttachedLoop = loop_of([])
        self.jobs = self.warm_up = self.slept = 0
        """Jobs, and sleeps; ``warm_up`` is known once the first piece is there."""
        self.skipped = self.slept_over = 0
        """Rows that are skipped, and of these those that passed while the thread was free."""
        self.passed_over = 0
        """Releases of a loop that corrects its sleeps for which nobody slept: they are no rows."""
        self.first_release_ns: int | None = None
        self._kinds: Counter[tuple[str, bool]] = Counter()
        self._unknown = self._waits = self._distances = self._distance_ns = 0
        self._changes: list[PeriodChange] = []
        self._last: Job | None = None

    @property
    def seen(self) -> ThreadSleeps:
        """What the reader counted."""
        return self._reader.seen()

    @property
    def over(self) -> bool:
        """Whether the thread has ended, or is another program's by now."""
        return self._reader.over

    def pieces(self) -> Iterator[dict[str, Ints]]:
        """The rows, in order of time."""
        jobs = iter(self._all_jobs())
        head: list[Job] = []
        while len(head) < HEAD or head[-1].release_ns < self._warm_until_ns:
            job = next(jobs, None)
            if job is None:
                break
            head.append(job)
        in_turn = self._of_others is None  # what several threads call begins in another order than it is due
        self.loop = loop_of(head if in_turn else sorted(head, key=attrgetter("release_ns")), self._period)
        counted = self._counted(changing(chain(head, jobs), self.loop))
        piece: list[ReleaseRow] = []
        how = tolerance_ns(head), self._overdue_ns
        rows = rows_of(counted, self.loop, *how, until_wake=self._until_wake)
        for row in rows if in_turn else sorted(rows, key=itemgetter(0)):
            piece.append(row)
            if len(piece) >= PIECE and row[0] >= self._warm_until_ns:
                yield self._handed_on(piece)
                piece = []
        self._sum_up()
        if piece:
            yield self._handed_on(piece)

    @property
    def _warm_until_ns(self) -> int:
        return self.seen.first_ns + self._warm_up_ns

    def _handed_on(self, piece: list[ReleaseRow]) -> dict[str, Ints]:
        if not self.warm_up and self._warm_up_ns:
            self.warm_up = sum(row[0] < self._warm_until_ns for row in piece)
        columns = as_columns(piece, with_threads=self._of_others is not None)
        skipped = columns["status"] == SKIPPED
        self.skipped += int(skipped.sum())
        self.slept_over += int((skipped & (columns["free_ns"] == columns["release_ns"])).sum())
        return columns

    def _all_jobs(self) -> Iterable[Job]:
        sleeps = self._sleeps()
        if self._of_others is None:
            return jobs_of(sleeps, self._rest)
        for _ in sleeps:  # what they tell of the thread counts
            pass
        return self._of_others

    def _sleeps(self) -> Iterator[Sleep]:
        for part, until_ns in self._parts:
            for sleep in self._reader.see_all(part, until_ns):
                self.slept += 1
                if self._early is not None:
                    self._early.see(sleep)
                yield sleep

    def _told_early(self, job: Job) -> None:
        if self._tell is not None and job.release_ns >= self._warm_until_ns:
            self._tell(job)

    def _rest(self) -> Rest | None:
        return None if self.end_ns is None else self._reader.rest(self.end_ns)

    def _counted(self, jobs: Iterable[tuple[Job, int | None]]) -> Iterator[tuple[Job, int | None]]:
        for job, period_ns in jobs:
            if job.known and is_overdue(job, self.loop, self._overdue_ns):
                self.unended_ns = job.free_ns - job.release_ns
                self.unended_lost = not (self._until_wake and job.is_back)
            if not job.ended:
                yield job, period_ns
                continue
            self.jobs += 1
            if self.first_release_ns is None:
                self.first_release_ns = job.release_ns
            self._kinds[job.kind, job.known] += 1
            self._unknown += not job.known
            self._waits += job.waits
            if period_ns is not None:
                self._changes.append(PeriodChange(job.release_ns, period_ns))
            if job.by_timer or not self.loop.by_timer:
                if self._last is not None and self._last.known and job.known:
                    distance_ns = job.release_ns - self._last.release_ns
                    self._distances += 1
                    self._distance_ns += distance_ns
                    if self.loop.own_ns is not None:
                        self.passed_over += passed_over(distance_ns, self.loop.own_ns)
                self._last = job
            yield job, period_ns

    def _sum_up(self) -> None:
        drift = None
        if self.loop.asked_ns is not None:
            drift = self._distance_ns - (self._distances + self.passed_over) * self.loop.asked_ns
        self.loop = replace(
            self.loop,
            changes=tuple(self._changes),
            kinds=kinds_of(self._kinds),
            drift_ns=drift,
            unknown=self._unknown,
            waits=self._waits,
        )
