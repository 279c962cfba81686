"""Explains a trace that comes in parts, each once: a long run's trace has more than memory.

What is known from before a part are the last events of each thread and CPU (``_last_of_each``); where only
the surroundings of some releases are there, each of them is a trace of its own, of which nothing is known
from before but names and priorities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rtmeter.explain.causes import Explanation, Release, Split, concluded, split
from rtmeter.explain.events import (
    ENDED,
    IRQ_IN,
    IRQ_OUT,
    LENT,
    LOST,
    NO_PRIORITY,
    NOBODY,
    SOFTIRQ_IN,
    SOFTIRQ_OUT,
    SWITCH,
    SYS_IN,
    SYS_OUT,
    TIMER_ARMED,
    TIMER_FIRED,
    WAKING,
    Ints,
    Trace,
    joined,
)
from rtmeter.explain.messages import CPUS_OWN
from rtmeter.explain.threads import KnownTrace

SpanNs = tuple[int, int]

TRAIL_NS = 100_000_000
"""What an event tells of the time before it (an ``_out`` without its ``_in``) comes so soon."""


def explain_parts(
    parts: Iterable[Trace],
    releases: Sequence[Release],
    tid: int,
    surroundings: Sequence[SpanNs] | None = None,
    trail_ns: int = TRAIL_NS,
    roles: Mapping[int, str] | None = None,
) -> Explanation:
    """Explains releases of a cell, as causes.explain does, with paths. ``surroundings``: of each release,
    from when to when events are there; None: all are. What lies outside them is unknown. ``trail_ns``: how
    much of what comes after a stamp is heeded; ``roles``: as Explainer has them."""
    found: list[Split | None] = [None] * len(releases)
    needs = surroundings or [(one.release_ns, one.stamp_ns + trail_ns) for one in releases]
    for trace, names, places in _windows(parts, needs, apart=surroundings is not None):
        known = KnownTrace(trace, names, begins_anew=surroundings is not None)
        taken_apart = split(known, [releases[p] for p in places], tid, paths=True, roles=roles)
        for place, one in zip(places, taken_apart, strict=True):
            found[place] = one
    return concluded(releases, [one or Split.unknown(r) for one, r in zip(found, releases, strict=True)])


ThreadNames = dict[int, tuple[str, int]]
"""Name and priority of a thread id, as last told."""


def _windows(
    parts: Iterable[Trace], needs: Sequence[SpanNs], *, apart: bool
) -> Iterator[tuple[Trace, ThreadNames, list[int]]]:
    """Traces, what is told of threads before, and which of ``needs`` lie in each."""
    waiting = sorted(range(len(needs)), key=lambda place: needs[place])
    before: Trace | None = None
    buffer: Trace | None = None
    names: ThreadNames = {}
    for part in _and_end(parts):
        if part is not None:
            buffer = part if buffer is None else joined([buffer, part])
        if buffer is None or not len(buffer):
            continue
        ends_ns = buffer.time_ns[-1]
        ready = [p for p in waiting if part is None or needs[p][1] < ends_ns]
        waiting = [p for p in waiting if part is not None and needs[p][1] >= ends_ns]
        if apart:
            yield from _apart(buffer, names, needs, ready)
        elif ready:
            yield joined([before, buffer]) if before is not None else buffer, names, ready
        since_ns = min([needs[p][0] for p in waiting], default=ends_ns)
        cut = int(np.searchsorted(np.asarray(buffer.time_ns), min(since_ns, ends_ns)))
        gone, buffer = buffer.taken(slice(0, cut)), buffer.taken(slice(cut, None))
        names = names | _names_in(gone, names)
        if not apart:
            before = _last_of_each(joined([before, gone]) if before is not None else gone)


def _and_end(parts: Iterable[Trace]) -> Iterator[Trace | None]:
    yield from parts
    yield None


def _apart(
    trace: Trace, names: ThreadNames, needs: Sequence[SpanNs], ready: Sequence[int]
) -> Iterator[tuple[Trace, ThreadNames, list[int]]]:
    """Those that overlap together, each bundle in a trace of its own."""
    times = np.asarray(trace.time_ns)
    bundle: list[int] = []
    known = 0
    for place in [*ready, None]:
        if bundle and (place is None or needs[place][0] > max(needs[p][1] for p in bundle)):
            first, last = min(needs[p][0] for p in bundle), max(needs[p][1] for p in bundle)
            rows = slice(int(np.searchsorted(times, first)), int(np.searchsorted(times, last, "right")))
            names |= _names_in(trace.taken(slice(known, rows.start)), names)
            known = rows.start
            yield trace.taken(rows), names, bundle
            bundle = []
        if place is not None:
            bundle.append(place)


def _names_in(trace: Trace, before: ThreadNames) -> ThreadNames:
    """``before``: what is told before it; that a priority was lent is told without a name."""
    named, told = (_last_telling(trace, kinds) for kinds in ((SWITCH, WAKING), (SWITCH, WAKING, LENT)))
    prints = trace.priority
    names = {tid: name for tid, (name, _) in before.items()}
    names |= {tid: trace.name_of(row) or "" for tid, row in named.items() if prints[row] != NO_PRIORITY}
    return {
        tid: (names[tid], prints[row])
        for tid, row in told.items()
        if tid in names and prints[row] != NO_PRIORITY
    }


def _last_telling(trace: Trace, kinds: Sequence[int]) -> dict[int, int]:
    """The last row of these kinds that tells of a thread, by its id."""
    targets = np.asarray(trace.target, np.int64)
    rows = np.flatnonzero(np.isin(np.asarray(trace.event), kinds) & (targets > 0))
    last = rows[_last(targets[rows])] if len(rows) else rows
    return dict(zip(targets[last].tolist(), last.tolist(), strict=True))


def _last_of_each(trace: Trace) -> Trace:
    """The rows that say how things stand at the end: of each thread and CPU the last of its kind; of a thread
    that has ended, whose id another may have by now, only that. Of interrupts and softirqs those that go on,
    whose end may be lost, and the last of a device that was over: a message that came later may be of another
    host."""
    events, cpus = np.asarray(trace.event, np.int64), np.asarray(trace.cpu, np.int64)
    tids, targets = np.asarray(trace.tid, np.int64), np.asarray(trace.target, np.int64)
    ended = np.flatnonzero((events == SWITCH) & (np.asarray(trace.state) == ENDED))
    ended = ended[_last(tids[ended])]
    kept: list[Ints] = []
    for kinds, of in (
        ((SWITCH,), tids),
        ((SWITCH,), targets),
        ((WAKING,), targets),
        ((LENT,), targets),
        ((LENT,), tids),
        ((SYS_IN, SYS_OUT), tids),
        ((TIMER_ARMED,), targets),
        ((TIMER_FIRED,), targets),
    ):
        rows = np.flatnonzero(np.isin(events, kinds))
        rows = rows[~_is_over(rows, of[rows], ended, tids[ended])]
        if len(rows):
            kept.append(rows[_last(of[rows] << 16 | cpus[rows] & 0xFFFF)])
    kept.append(_lost(events, cpus, tids))
    kept.append(_going_on(np.asarray(trace.name, np.int64), events, cpus, tids))
    kept.append(_last_of_devices(trace, events, cpus))
    return trace.taken(np.unique(np.concatenate(kept)))


def _is_over(rows: Ints, ids: Ints, ended: Ints, their_ids: Ints) -> npt.NDArray[np.bool_]:
    """Whether the thread with that id ended after the row; ``ended``: the last row in which each of
    ``their_ids``, in order, did."""
    if not len(ended):
        return np.zeros(len(rows), bool)
    places = np.minimum(np.searchsorted(their_ids, ids), len(ended) - 1)
    found: npt.NDArray[np.bool_] = (their_ids[places] == ids) & (rows < ended[places])
    return found


def _lost(events: Ints, cpus: Ints, tids: Ints) -> Ints:
    """The last ``lost`` of each CPU, and the rows that tell who was there before and after."""
    found: list[int] = []
    lost = np.flatnonzero(events == LOST)
    for row in lost[_last(cpus[lost])].tolist():
        here = np.flatnonzero((cpus == cpus[row]) & (tids != NOBODY))
        before, after = here[here < row], here[here > row]
        for rows in (before, before[events[before] == SWITCH]):
            found += rows[-1:].tolist()
        found += [row, *after[:1].tolist()]
    return np.array(found, np.int64)


def _going_on(names: Ints, events: Ints, cpus: Ints, tids: Ints) -> Ints:
    """The rows that begin an interrupt or a softirq of which no end is told."""
    found: list[Ints] = []
    for begins, ends in ((IRQ_IN, IRQ_OUT), (SOFTIRQ_IN, SOFTIRQ_OUT)):
        rows = np.flatnonzero(np.isin(events, (begins, ends)))
        last = rows[_last(tids[rows] << 36 | names[rows] << 16 | cpus[rows] & 0xFFFF)]
        found.append(last[events[last] == begins])
    return np.concatenate(found)


def _last_of_devices(trace: Trace, events: Ints, cpus: Ints) -> Ints:
    """Of each CPU, the rows that begin and end the last interrupt of a device that was over."""
    names = np.asarray(trace.name, np.int64)
    devices = np.isin(names, [place for place, name in enumerate(trace.names) if name not in CPUS_OWN])
    began, ended = (np.flatnonzero((events == kind) & devices) for kind in (IRQ_IN, IRQ_OUT))
    found: list[int] = []
    for end in ended[_last(cpus[ended])].tolist():
        its = began[(began < end) & (cpus[began] == cpus[end]) & (names[began] == names[end])]
        found += [*its[-1:].tolist(), end] if len(its) else []
    return np.array(found, np.int64)


def _last(keys: Ints) -> Ints:
    """The last place of each."""
    _, places = np.unique(keys[::-1], return_index=True)
    return len(keys) - 1 - places
