"""Explains a trace that comes in parts, each once: a long run's trace has more than memory.

What is known from before a part are the last events of each thread and CPU (``carried``); where only
the surroundings of some releases are there, each of them is a trace of its own, of which nothing is known
from before but names and priorities.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from rtmeter.explain.carried import carried, last_of
from rtmeter.explain.causes import Explanation, Release, Split, concluded, split
from rtmeter.explain.events import LENT, NO_PRIORITY, RUNNABLE, SWITCH, WAKING, Trace, joined
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
    tids = [release.tid or tid for release in releases]
    for trace, names, places in _windows(parts, needs, tids, apart=surroundings is not None):
        known = KnownTrace(trace, names, begins_anew=surroundings is not None)
        taken_apart = split(known, [releases[p] for p in places], tid, paths=True, roles=roles)
        for place, one in zip(places, taken_apart, strict=True):
            found[place] = one
    return concluded(releases, [one or Split.unknown(r) for one, r in zip(found, releases, strict=True)])


ThreadNames = dict[int, tuple[str, int]]
"""Name and priority of a thread id, as last told."""


def _windows(
    parts: Iterable[Trace], needs: Sequence[SpanNs], tids: Sequence[int], *, apart: bool
) -> Iterator[tuple[Trace, ThreadNames, list[int]]]:
    """Traces, what is told of threads before, and which of ``needs`` lie in each; ``tids``: whose these are.
    A trace begins where each of them waits for a CPU: whether it is passed over is told by all of that."""
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
        since_ns = min([ends_ns, *(needs[p][0] for p in waiting)])
        if not apart:
            since_ns = min([since_ns, *_waits_since(buffer, {tids[p] for p in waiting}, since_ns)])
        cut = int(np.searchsorted(np.asarray(buffer.time_ns), since_ns))
        gone, buffer = buffer.taken(slice(0, cut)), buffer.taken(slice(cut, None))
        names = names | _names_in(gone, names)
        if not apart:
            before = carried(joined([before, gone]) if before is not None else gone)


def _waits_since(trace: Trace, tids: Collection[int], until_ns: int) -> Iterator[int]:
    """From when on each of the threads waits for a CPU that does so at a time."""
    rows = slice(0, int(np.searchsorted(np.asarray(trace.time_ns), until_ns)))
    events, targets = np.asarray(trace.event)[rows], np.asarray(trace.target)[rows]
    states, left = np.asarray(trace.state)[rows], np.asarray(trace.tid)[rows]
    for tid in tids:
        of_it = (targets == tid) | ((left == tid) & (events == SWITCH))
        about = np.flatnonzero(of_it & ((events == SWITCH) | (events == WAKING)))
        switches = about[events[about] == SWITCH]
        last = int(switches[-1]) if len(switches) else -1
        woken = about[about > last]
        if last >= 0 and left[last] == tid and states[last] == RUNNABLE:
            yield trace.time_ns[last]
        elif len(woken) and (last < 0 or left[last] == tid):
            yield trace.time_ns[int(woken[0])]


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
            names = names | _names_in(trace.taken(slice(known, rows.start)), names)
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
    last = rows[last_of(targets[rows])] if len(rows) else rows
    return dict(zip(targets[last].tolist(), last.tolist(), strict=True))
