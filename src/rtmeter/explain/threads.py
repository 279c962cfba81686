"""What is known of each thread: its name, its priority, whether it is inside the kernel, where it is.

A thread id is used again after its thread has ended: a thread is its id and how many had it before
(``generation << 32 | tid``).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rtmeter.explain.cpus import BEGINNING, cpus_of
from rtmeter.explain.events import (
    ENDED,
    FAULT,
    LENT,
    LOST,
    NO_PRIORITY,
    NO_VALUE,
    NOBODY,
    SWITCH,
    SYS_IN,
    SYS_OUT,
    TIMER_ARMED,
    TIMER_FIRED,
    USER,
    WAKING,
    Ints,
    Trace,
)
from rtmeter.explain.lenders import Lenders, together

IDLE = 0
_ID = (1 << 32) - 1
_STOPS, _BEFORE_ALL = "[migration/", -2


def _threads_of(ids: Ints, tids: Ints, ended: Ints) -> Ints:
    """The thread that an id stands for in each row: how many had it before and ended."""
    ends = np.sort(tids[ended] << 32 | ended)
    before = np.searchsorted(ends, ids << 32 | np.arange(len(ids))) - np.searchsorted(ends, ids << 32)
    return np.where(ids == NOBODY, NOBODY, before << 32 | ids)


class Call(NamedTuple):
    """A span in which a thread is inside a system call; ``end_ns`` None: to the end; ``asked``: of a futex,
    its operation, where it is told."""

    start_ns: int
    end_ns: int | None
    name: str | None
    asked: int | None = None


class _Rows:
    """The rows of one kind for each thread, in their order."""

    def __init__(self, rows: Ints, threads: Ints) -> None:
        order = np.lexsort((rows, threads))
        self._rows, self._threads = rows[order], threads[order]
        self._of: dict[int, list[int]] = {}

    def __getitem__(self, thread: int) -> list[int]:
        if thread not in self._of:
            first, last = np.searchsorted(self._threads, [thread, thread + 1])
            self._of[thread] = self._rows[first:last].tolist()
        return self._of[thread]


class KnownTrace:
    """A trace, with what its events tell of every CPU and thread. ``before``: name and priority of thread
    ids, where no event tells them; ``begins_anew``: other events were there before, which nobody kept."""

    def __init__(
        self, trace: Trace, before: Mapping[int, tuple[str, int]] | None = None, *, begins_anew: bool = False
    ) -> None:
        self.trace, self._before, self._begins_anew = trace, before or {}, begins_anew
        events, tids = np.asarray(trace.event), np.asarray(trace.tid, np.int64)
        ended = np.flatnonzero((events == SWITCH) & (np.asarray(trace.state) == ENDED) & (tids > IDLE))
        threads = _threads_of(tids, tids, ended)
        targets = _threads_of(np.asarray(trace.target, np.int64), tids, ended)
        self.threads, self.targets = (array("q", column.tobytes()) for column in (threads, targets))
        switches, wakings = (np.flatnonzero(events == kind) for kind in (SWITCH, WAKING))
        moves = np.concatenate([switches, switches, wakings])
        self.moves = _Rows(moves, np.concatenate([threads[switches], targets[switches], targets[wakings]]))
        lent = np.flatnonzero(events == LENT)
        telling = np.concatenate([switches, wakings, lent])
        told = np.array([name != "" for name in trace.names], bool)[np.asarray(trace.name)[telling]]
        self._names = _Rows(telling[told], targets[telling[told]])
        told = np.asarray(trace.priority)[telling] != NO_PRIORITY
        self._priorities = _Rows(telling[told], targets[telling[told]])
        self._telling, self.wakings = _Rows(telling, targets[telling]), _Rows(wakings, targets[wakings])
        self._lent = _Rows(lent, targets[lent])
        self._lenders: dict[int, list[int]] = {}
        fired, armed, faults = (np.flatnonzero(events == kind) for kind in (TIMER_FIRED, TIMER_ARMED, FAULT))
        self.fired, self.armed = _Rows(fired, targets[fired]), _Rows(armed, targets[armed])
        system = np.flatnonzero((events == SYS_IN) | (events == SYS_OUT))
        self.system, self._faults = _Rows(system, threads[system]), _Rows(faults, threads[faults])
        self.lost = np.flatnonzero(events == LOST).tolist()
        self._ends_ns: dict[int, list[int]] = {}
        for row in ended.tolist():
            self._ends_ns.setdefault(trace.tid[row], []).append(trace.time_ns[row])
        self.cpus = cpus_of(trace, threads, targets)
        self._calls: dict[int, list[Call]] = {}
        self._tells: dict[int, list[int]] = {}
        self._lost_of: dict[int, list[int]] = {}

    def thread_until(self, tid: int, time_ns: int) -> int:
        """The thread that has the id up to a time."""
        return bisect_left(self._ends_ns.get(tid, []), time_ns) << 32 | tid

    def faults_ns(self, thread: int, start_ns: int, end_ns: int) -> list[int]:
        """When it had page faults, in order."""
        rows = self._faults[thread]
        first, last = (bisect_left(rows, time_ns, key=self._time) for time_ns in (start_ns, end_ns))
        return [self._time(row) for row in rows[first:last]]

    def name(self, thread: int, time_ns: int) -> str:
        """As the last event says that tells it, or the first after; ``tid N`` if none does."""
        return self._name(thread, time_ns) or (f"tid {tid_of(thread)}" if thread != IDLE else "idle")

    def priority(self, thread: int, time_ns: int) -> int | None:
        """As events print it; of the threads that stop a CPU, which print fifo's 99, what comes before all
        others."""
        if (self._name(thread, time_ns) or "").startswith(_STOPS):
            return _BEFORE_ALL
        row = self._last_told(self._priorities[thread], thread, time_ns)
        if row is None:
            return self._before[thread][1] if thread in self._before else None
        lent_later = self.trace.event[row] == LENT and self._time(row) > time_ns
        return self.trace.value[row] if lent_later else self.trace.priority[row]

    def _name(self, thread: int, time_ns: int) -> str | None:
        row = self._last_told(self._names[thread], thread, time_ns)
        if row is None:
            return self._before[thread][0] if thread in self._before else None
        return self.trace.name_of(row)

    def _last_told(self, rows: Sequence[int], thread: int, time_ns: int) -> int | None:
        """The last row up to a time; the first after if there is none, nor anything that is known from
        before."""
        place = bisect_right(rows, time_ns, key=self._time)
        if place:
            return rows[place - 1]
        return rows[0] if rows and thread not in self._before else None

    def _time(self, row: int) -> int:
        return self.trace.time_ns[row]

    def changes(self, thread: int, start_ns: int, end_ns: int) -> Iterator[int]:
        """The times within a span at which its name or priority may change."""
        rows = self._telling[thread]
        for row in rows[bisect_right(rows, start_ns, key=self._time) :]:
            if self._time(row) >= end_ns:
                return
            yield self._time(row)

    def lenders(self, thread: int, start_ns: int, end_ns: int) -> Lenders:
        """Who had lent it the priority that it had within a span, and for how long; nobody where it was its
        own, or that is not known."""
        return together(self._loans(thread, start_ns, end_ns)) if self._lent[thread] else ()

    def _loans(self, thread: int, start_ns: int, end_ns: int) -> Iterator[tuple[str, int]]:
        rows = self._lent[thread]
        if thread not in self._lenders:
            self._lenders[thread] = list(self._lenders_of(thread))
        for since_ns, until_ns in pairwise([start_ns, *self.changes(thread, start_ns, end_ns), end_ns]):
            place = bisect_right(rows, since_ns, key=self._time) - 1
            lender = self._lenders[thread][place] if place >= 0 else NOBODY
            if lender != NOBODY and self.priority(thread, since_ns) == self.trace.priority[rows[place]]:
                yield self.name(lender, since_ns), until_ns - since_ns

    def _lenders_of(self, thread: int) -> Iterator[int]:
        """Of each row that lends to it or takes back, whose priority it has from then on: of those that were
        lent and not taken back the most urgent. Who lends has that priority itself; where another acts for
        it (FUTEX_CMP_REQUEUE_PI), that is NOBODY."""
        lent: list[tuple[int, int]] = []
        for row in self._lent[thread]:
            priority, lender = self.trace.priority[row], self.threads[row]
            while lent and lent[-1][0] < priority:
                lent.pop()
            if priority < self.trace.value[row]:
                has = self.priority(lender, self._time(row))
                lent.append((priority, lender if has in (priority, None) else NOBODY))
            yield lent[-1][1] if lent and lent[-1][0] == priority else NOBODY

    def calls(self, thread: int) -> list[Call]:
        """Its system calls, in order of time. After a ``lost`` on its CPU it is inside if the next that is
        known of it is that it leaves one."""
        if thread not in self._calls:
            self._calls[thread] = list(self._calls_of(thread))
        return self._calls[thread]

    def _calls_of(self, thread: int) -> Iterator[Call]:
        trace = self.trace
        since, opened = BEGINNING, NOBODY
        for row in sorted([*self.system[thread], *self._anew(thread)]):
            kind, now = trace.event[row], trace.time_ns[row]
            if opened != NOBODY:
                yield self._call(opened, now)
            elif kind == SYS_OUT:
                yield Call(since, now, trace.name_of(row))
            since, opened = now, row if kind == SYS_IN else NOBODY
        if opened != NOBODY:
            yield self._call(opened, None)

    def _call(self, row: int, end_ns: int | None) -> Call:
        asked = self.trace.value[row]
        return Call(
            self.trace.time_ns[row], end_ns, self.trace.name_of(row), None if asked == NO_VALUE else asked
        )

    def call_at(self, thread: int, time_ns: int) -> Call | None:
        """The system call that it is inside at a time."""
        calls = self.calls(thread)
        place = bisect_right(calls, time_ns, key=lambda call: call.start_ns)
        call = calls[place - 1] if place else None
        return call if call and (call.end_ns is None or time_ns < call.end_ns) else None

    def is_told_of(self, thread: int, time_ns: int) -> bool:
        """Whether an event tells if it is inside a system call at a time, or would: it entered or left one,
        or its own code had a page fault, since the last ``lost`` on its CPU and before the next. Who calls
        none in the whole trace is in its own code, unless what came before the trace is not kept."""
        if thread not in self._tells:
            faults = (row for row in self._faults[thread] if self.trace.name_of(row) == USER)
            self._tells[thread] = sorted([*self.system[thread], *faults])
        anew, tells = self._anew(thread), self._tells[thread]
        place = bisect_right(anew, time_ns, key=self._time)
        since = anew[place - 1] if place else -1
        until = anew[place] if place < len(anew) else len(self.trace)
        if bisect_left(tells, since) < bisect_left(tells, until):
            return True
        return not self._begins_anew and (since < 0 or not self.system[thread])

    def _anew(self, thread: int) -> list[int]:
        """Each ``lost`` of a CPU that it was on before or is on after."""
        if thread not in self._lost_of:
            there = self.cpus.after.items()
            self._lost_of[thread] = sorted(row for row, threads in there if thread in threads)
        return self._lost_of[thread]

    def call_bounds(self, thread: int, start_ns: int, end_ns: int) -> Iterator[int]:
        """The times within a span at which it enters or leaves the kernel."""
        calls = self.calls(thread)
        place = max(bisect_right(calls, start_ns, key=lambda call: call.start_ns) - 1, 0)
        for call in calls[place:]:
            if call.start_ns >= end_ns:
                return
            yield from (t for t in (call.start_ns, call.end_ns) if t is not None and start_ns < t < end_ns)


def tid_of(thread: int) -> int:
    """Its id."""
    return thread & _ID


def is_kernels(name: str) -> bool:
    """Whether a name, as the events have it, is a kernel thread's."""
    return name.startswith("[") and name.endswith("]")
