"""What a node's functions told → its callbacks, each with its jobs.

A job of a callback begins when rcl gives its executor a timer that is due, or what came (a message, a
request, a response), and ends when the executor turns to something else: the next of them, or to wait. A
timer's release is when rcl holds it to be due; of what came the last waking of the executor's thread before.
An executor of several threads calls a callback in any of them: each of its jobs is of the thread that did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np

from rtmeter.attach.asleep import MESSAGE
from rtmeter.attach.jobs import Job
from rtmeter.explain.events import LOST, STATES, SWITCH, SYS_IN, SYS_OUT, WAKING, Trace
from rtmeter.explain.marks import Mark
from rtmeter.statistics.quantities import Ints

TIMER = "rcl_timer"
SERVICE, CLIENT = "service", "client"
TAKEN = 0
"""What rcl's functions that take return when there was something."""

_CALLS = ("call", "call_with_info")
_TAKES = {"take": MESSAGE, "take_request": SERVICE, "take_response": CLIENT}
_ENDS = (*_CALLS, *_TAKES, "wait", "end")
_FARTHEST_NS = 60 * 10**9
_EARLY_NS = 1_000_000
"""So late a timer may be called, so early by another clock: what is further off is no time that it was
due."""


@dataclass(frozen=True, slots=True)
class Names:
    """Who belongs to whom, as a program's start told: nodes by timer, subscription, service and client,
    periods by timer; ``nodes``: all that were made."""

    owners: Mapping[int, str] = field(default_factory=dict)
    periods: Mapping[int, int] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Callback:
    """``node`` is None where the program's start was not seen; ``resource``: the name of a subscription's
    topic, of a service, or of the one that a client calls; ``periods_ns``: those that a timer had, one after
    another. ``due_told``: whether its releases are when it was due. ``tids``: the threads that called it, who
    did most often first."""

    kind: str
    tids: tuple[int, ...]
    node: str | None
    resource: str | None
    periods_ns: tuple[int, ...]
    due_told: bool
    jobs: tuple[Job, ...]
    handle: int = 0
    """Which of the program's objects it is."""
    number: int = 1
    """Among those that are called the same."""

    @property
    def period_ns(self) -> int | None:
        """Of a timer the first, which it is called by."""
        return next(iter(self.periods_ns), None)

    @property
    def only_period_ns(self) -> int | None:
        """Of a timer that had no other."""
        return self.period_ns if len(self.periods_ns) == 1 else None

    @property
    def name(self) -> str:
        """Without its node's."""
        if self.kind == TIMER:
            what = f"timer {_period(self.period_ns)}"
        elif self.kind == MESSAGE:
            what = self.resource or "a topic"
        else:
            what = f"{self.kind} {self.resource or 'of unknown name'}"
        return what if self.number == 1 else f"{what} #{self.number}"

    @property
    def about(self) -> dict[str, str | None]:
        """Its node, and its topic or service."""
        of = "topic" if self.kind == MESSAGE else "service"
        return {"node": self.node} | ({} if self.kind == TIMER else {of: self.resource})


def names_of(marks: Sequence[Mark]) -> Names:
    """From what was called at a program's start. rcl's timers know no node: theirs is the one that the same
    thread made last before."""
    nodes: dict[int, str] = {}
    making: dict[int, int] = {}
    last: dict[int, str] = {}
    owners: dict[int, str] = {}
    periods: dict[int, int] = {}
    for mark in marks:
        values = mark.values
        if mark.what == "node":
            making[mark.tid] = int(values["node"])
        if mark.what in ("node", "named") and mark.tid in making:  # the second as the middleware gets it
            nodes[making[mark.tid]] = last[mark.tid] = _full(values)
        if mark.what == "made" and values["node"] in nodes:
            owners[int(values["handle"])] = nodes[int(values["node"])]
        elif mark.what == "timer":
            periods[int(values["timer"])] = int(values["period"])
            if mark.tid in last:
                owners[int(values["timer"])] = last[mark.tid]
    return Names(owners, periods, tuple(dict.fromkeys(nodes.values())))


def callbacks_of(
    marks: Sequence[Mark],
    trace: Trace,
    tids: Collection[int],
    names: Names,
    offsets_ns: Iterable[int] = (),
    end_ns: int | None = None,
) -> list[Callback]:
    """Those of the threads ``tids`` that were called, in the order in which they were first. ``offsets_ns``:
    what other clocks show more than the monotonic one. ``end_ns``: when the recording ended, of those that
    had not ended then (None: they are left out)."""
    acts = {tid: [mark for mark in marks if mark.tid == tid] for tid in tids}
    found: dict[tuple[str, int], list[_Begun]] = {}
    for one in sorted((one for its in acts.values() for one in _begun(its)), key=lambda one: one.begin_ns):
        found.setdefault((one.kind, one.handle), []).append(one)
    calling = {one.tid for begun in found.values() for one in begun}
    threads = {tid: _Thread(trace, tid, acts[tid]) for tid in calling}
    gaps = _gaps(trace)
    callbacks = []
    stuck: dict[int, int] = {}
    for (kind, handle), begun in found.items():
        dues = _dues(begun, offsets_ns) if kind == TIMER else None
        periods = _periods(begun, dues) if dues is not None else ()
        if not periods and handle in names.periods:
            periods = (names.periods[handle],)
        node = names.owners.get(handle)
        released = kind if dues is not None else MESSAGE
        done = tuple(_jobs(begun, dues, threads, gaps, released, end_ns))
        resource = next((one.resource for one in begun if one.resource), None)
        stuck |= {job.tid: job.wake_ns for job in done if job.tid is not None and not job.ended}
        if done:
            by = tuple(tid for tid, _ in Counter(job.tid for job in done).most_common() if tid is not None)
            callbacks.append(Callback(kind, by, node, resource, periods, dues is not None, done, handle))
    if end_ns is not None:
        callbacks = [_kept_waiting(one, stuck, end_ns) for one in callbacks]
    return list(_numbered(sorted(callbacks, key=lambda one: one.jobs[0].wake_ns)))


def _kept_waiting(callback: Callback, stuck: Mapping[int, int], end_ns: int) -> Callback:
    """Of a timer that was called until a thread of its began what had not ended at the recording's end: it
    was called no more until then. One of which two calls were due before had been cancelled. ``stuck``: when
    each such thread began that."""
    *others, last = callback.jobs
    if not callback.due_told or not callback.periods_ns or not last.ended:
        return callback
    period = max(callback.periods_ns[-1], 1)
    passed = max(last.wake_ns - last.release_ns, 0) // period  # rcl goes on from its call
    since = (stuck[tid] for tid in callback.tids if tid in stuck)
    if not any(last.wake_ns <= at <= last.release_ns + (passed + 2) * period for at in since):
        return callback
    return replace(callback, jobs=(*others, replace(last, until_ns=end_ns)))


@dataclass(slots=True)
class _Begun:
    kind: str
    handle: int
    tid: int
    begin_ns: int
    end_ns: int | None = None
    due_ns: int | None = None
    period_ns: int | None = None
    resource: str | None = None


def _begun(marks: Sequence[Mark]) -> Iterator[_Begun]:
    """Callbacks of one thread. rcl's functions call one another: the second of two calls of one timer in a
    row is the same call."""
    now: _Begun | None = None
    taking: tuple[str, int] | None = None
    resource: str | None = None
    before: Mark | None = None
    for mark in marks:
        again = mark.what == "call_with_info" and before is not None and before.what == "call"
        again = again and before is not None and before.values["timer"] == mark.values["timer"]
        if mark.what in _ENDS and now is not None and not again:
            now.end_ns = mark.time_ns
            yield now
            now = None
        if mark.what in _CALLS and not again:
            values = {name: int(mark.values[name]) for name in ("timer", "due", "period")}
            due = values["due"], values["period"]
            now = _Begun(TIMER, values["timer"], mark.tid, mark.time_ns, None, *due)
        elif mark.what in _TAKES:
            taking, resource = (_TAKES[mark.what], int(mark.values["handle"])), None
        elif mark.what == "resource":
            resource = str(mark.values["name"])
        elif mark.what == "took" and taking is not None:
            if mark.values["result"] == TAKEN:
                now = _Begun(*taking, mark.tid, mark.time_ns, resource=resource)
            taking = None
        before = mark
    if now is not None:
        yield now


def calls(marks: Sequence[Mark]) -> int:
    """How many callbacks one thread called."""
    return sum(1 for _ in _begun(marks))


def _dues(begun: Sequence[_Begun], offsets_ns: Iterable[int]) -> list[int] | None:
    """When each call was due, by the monotonic clock; None if what was read is no such time."""
    for offset in (0, *offsets_ns):
        dues = [(one.due_ns or 0) - offset for one in begun]
        late = [one.begin_ns - due for one, due in zip(begun, dues, strict=True)]
        if 2 * sum(map(_may_be, late)) > len(late):
            return dues
    return None


def _may_be(late_ns: int) -> bool:
    """Whether a timer that was called is so late."""
    return -_EARLY_NS <= late_ns <= _FARTHEST_NS


def _periods(begun: Sequence[_Begun], dues: Sequence[int]) -> tuple[int, ...]:
    """Those of a timer, one after another; read where what was read beside is a time that it was due."""
    pairs = zip(begun, dues, strict=True)
    read = (one.period_ns for one, due in pairs if _may_be(one.begin_ns - due))
    return tuple(period for period, _ in groupby(read) if period is not None)


def _jobs(
    begun: Sequence[_Begun],
    dues: list[int] | None,
    threads: Mapping[int, _Thread],
    gaps: Ints,
    kind: str,
    end_ns: int | None,
) -> Iterator[Job]:
    """Those that are seen whole, and what had not ended when the recording did."""
    last_free: int | None = None
    freed: dict[int, int] = {}
    for place, one in enumerate(begun):
        thread = threads[one.tid]
        free_ns = one.end_ns if thread.says_waits else one.end_ns or thread.sleeps_after(one.begin_ns)
        ended = free_ns is not None
        if free_ns is None and not thread.has_ended:
            free_ns = end_ns
        release_ns = dues[place] if dues is not None else thread.woken_before(one.begin_ns)
        if free_ns is None or release_ns is None:
            continue
        # a call by any thread may be lost since the call before; a waking of its own since its own
        since = last_free if dues is not None else freed.get(one.tid)
        since = one.begin_ns if since is None else min(since, one.begin_ns)
        unknown = bool(len(gaps)) and bool(((gaps[:, 0] < free_ns) & (gaps[:, 1] >= since)).any())
        busy_ns = thread.ran(free_ns) - thread.ran(one.begin_ns)
        job = Job(release_ns, one.begin_ns, free_ns, busy_ns, kind, None, known=not unknown, tid=one.tid)
        yield job if ended else replace(job, ended=False, until_ns=end_ns)
        last_free = freed[one.tid] = free_ns


class _Thread:
    """When a thread was woken, slept and ran; whether it says when it waits. Kernels may keep a switch to
    themselves: where it acts it is on a CPU."""

    def __init__(self, trace: Trace, tid: int, acts: Sequence[Mark]) -> None:
        self.says_waits = any(mark.what == "wait" for mark in acts)
        acts_ns = [mark.time_ns for mark in acts]
        event, its, target, times, states = (
            np.asarray(getattr(trace, name)) for name in ("event", "tid", "target", "time_ns", "state")
        )
        leaves = (event == SWITCH) & (its == tid)
        on = ((event == SWITCH) & (target == tid)) | ((its == tid) & np.isin(event, (SYS_IN, SYS_OUT)))
        self.has_ended = bool((leaves & (states == STATES.index("ended"))).any())
        self._woken = times[(event == WAKING) & (target == tid)]
        self._sleeps = times[leaves & (states == STATES.index("sleeping"))]
        changes_ns = np.concatenate([times[leaves], times[on], np.asarray(acts_ns, np.int64)])
        on_after = np.arange(len(changes_ns)) >= int(leaves.sum())
        order = np.argsort(changes_ns, kind="stable")
        self._times, self._on_after = changes_ns[order], on_after[order]
        was_on = np.concatenate([[False], self._on_after[:-1]])[: len(changes_ns)]
        self._spent = np.cumsum(np.diff(self._times, prepend=self._times[:1]) * was_on)

    def woken_before(self, time_ns: int) -> int | None:
        place = int(np.searchsorted(self._woken, time_ns, side="right"))
        return int(self._woken[place - 1]) if place else None

    def sleeps_after(self, time_ns: int) -> int | None:
        place = int(np.searchsorted(self._sleeps, time_ns))
        return int(self._sleeps[place]) if place < len(self._sleeps) else None

    def ran(self, time_ns: int) -> int:
        """How long it had a CPU, up to a time, from the first event that tells."""
        place = int(np.searchsorted(self._times, time_ns, side="right"))
        if not place:
            return 0
        since = int(self._times[place - 1])
        return int(self._spent[place - 1]) + (time_ns - since if self._on_after[place - 1] else 0)


def _gaps(trace: Trace) -> Ints:
    """From the last event before lost ones to where events are told again, on each CPU."""
    event, cpu, times = (np.asarray(getattr(trace, name)) for name in ("event", "cpu", "time_ns"))
    gaps = []
    for row in np.flatnonzero(event == LOST).tolist():
        before = np.flatnonzero(cpu[:row] == cpu[row])
        gaps.append((int(times[before[-1]]) if len(before) else 0, int(times[row])))
    return np.asarray(gaps, np.int64).reshape(-1, 2)


def _numbered(callbacks: Sequence[Callback]) -> Iterator[Callback]:
    seen: Counter[tuple[str | None, str]] = Counter()
    for one in callbacks:
        key = one.node, one.name
        seen[key] += 1
        yield replace(one, number=seen[key])


def _full(values: Mapping[str, int | str]) -> str:
    return f"{str(values['space']).rstrip('/')}/{values['name']}"


def _period(period_ns: int | None) -> str:
    if period_ns is None:
        return "of unknown period"
    return f"{period_ns / 1e6:g} ms"
