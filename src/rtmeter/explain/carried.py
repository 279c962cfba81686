"""What is known from before a part of a trace: the rows that say how things stand at its beginning."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rtmeter.explain.cpus import NOT_INSIDE, Nested
from rtmeter.explain.events import (
    ENDED,
    FAULT,
    IRQ_IN,
    IRQ_OUT,
    LENT,
    LOST,
    NOBODY,
    SOFTIRQ_IN,
    SOFTIRQ_OUT,
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
from rtmeter.explain.messages import NETWORK, telling_of_senders


def carried(trace: Trace) -> Trace:
    """Of each thread and CPU the last row of its kind; of a thread that has ended, whose id another may have
    by now, only that. Of interrupts and softirqs those that go on, and those in which a timer of these rows
    fired; and what tells who sent a message that comes later."""
    events, cpus = np.asarray(trace.event, np.int64), np.asarray(trace.cpu, np.int64)
    tids, targets = np.asarray(trace.tid, np.int64), np.asarray(trace.target, np.int64)
    ended = np.flatnonzero((events == SWITCH) & (np.asarray(trace.state) == ENDED))
    ended = ended[last_of(tids[ended])]
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
            kept.append(rows[last_of(of[rows] << 16 | cpus[rows] & 0xFFFF)])
    faults = np.flatnonzero((events == FAULT) & (np.asarray(trace.name) == trace.place(USER)))
    kept.append(faults[last_of(tids[faults])])
    rows = np.unique(np.concatenate([*kept, _lost(events, cpus, tids, targets)]))
    telling = telling_of_senders(trace)
    around = [row for cpu in np.unique(cpus).tolist() for row in _around(trace, rows, cpu, telling)]
    return trace.taken(np.union1d(rows, np.array(around, np.int64)))


def _is_over(rows: Ints, ids: Ints, ended: Ints, their_ids: Ints) -> npt.NDArray[np.bool_]:
    """Whether the thread with that id ended after the row; ``ended``: the last row in which each of
    ``their_ids``, in order, did."""
    if not len(ended):
        return np.zeros(len(rows), bool)
    places = np.minimum(np.searchsorted(their_ids, ids), len(ended) - 1)
    found: npt.NDArray[np.bool_] = (their_ids[places] == ids) & (rows < ended[places])
    return found


def _lost(events: Ints, cpus: Ints, tids: Ints, targets: Ints) -> Ints:
    """The last ``lost`` of each CPU, and of each thread that was there before or after, with the rows that
    tell so."""
    losses = [_Losses(cpu, events, cpus, tids) for cpu in np.unique(cpus[events == LOST]).tolist()]
    last: dict[int, tuple[int, int, int]] = {}
    for number, of_one in enumerate(losses):
        for place, row in enumerate(of_one.lost):
            for tid in of_one.threads(place, tids, targets):
                last[tid] = max(last.get(tid, (-1, 0, 0)), (row, number, place))
    needed = {(number, len(of_one.lost) - 1) for number, of_one in enumerate(losses)}
    needed |= {(number, place) for _, number, place in last.values()}
    kept = [
        row
        for number, of_one in enumerate(losses)
        for row in of_one.told({p for n, p in needed if n == number})
    ]
    return np.unique(np.array(kept, np.int64))


class _Losses:
    """Where a CPU lost events, and what was told of who was there between."""

    def __init__(self, cpu: int, events: Ints, cpus: Ints, tids: Ints) -> None:
        here = np.flatnonzero(cpus == cpu)
        self.lost: list[int] = here[events[here] == LOST].tolist()
        told = here[tids[here] != NOBODY]
        bounds = np.array([-1, *self.lost, len(cpus)])
        ends = np.searchsorted(told, bounds)
        self._told = [told[a:b] for a, b in pairwise(ends.tolist())]
        self._switches = [rows[events[rows] == SWITCH][-1:].tolist() for rows in self._told]

    def threads(self, place: int, tids: Ints, targets: Ints) -> list[int]:
        """The ids of who was there before one of them, and after."""
        before, after = self._told[place], self._told[place + 1]
        left = targets[self._switches[place]] if self._switches[place] else tids[before[:1]]
        return [*left.tolist(), *tids[after[:1]].tolist()]

    def told(self, places: set[int]) -> list[int]:
        """The rows of these, with those that tell who was there; where no switch does since the one before,
        with that one's, lest an earlier switch does."""
        kept = set(places)
        for place in range(len(self.lost) - 1, 0, -1):
            if place in kept and not self._switches[place]:
                kept.add(place - 1)
        rows = []
        for place in kept:
            rows += [self.lost[place], *self._told[place][-1:].tolist(), *self._told[place + 1][:1].tolist()]
            rows += self._switches[place]
        return rows


def _around(trace: Trace, kept: Ints, cpu: int, telling: npt.NDArray[np.bool_]) -> Iterator[int]:
    """Of a CPU, since it last lost events: what goes on, what the kept rows begin or a kept firing of a timer
    came in, and what tells of senders, of rows that are ``telling``."""
    events, cpus, tids = (np.asarray(column) for column in (trace.event, trace.cpu, trace.tid))
    lost = np.flatnonzero((cpus == cpu) & (events == LOST))
    here = np.flatnonzero(cpus == cpu)
    here = here[here > lost[-1]] if len(lost) else here
    irqs = Nested(trace, here[np.isin(events[here], (IRQ_IN, IRQ_OUT))], IRQ_IN)
    softirqs = here[np.isin(events[here], (SOFTIRQ_IN, SOFTIRQ_OUT))]
    of_threads = [softirqs[tids[softirqs] == tid] for tid in np.unique(tids[softirqs])]
    kept = np.intersect1d(kept, here)
    fired = kept[events[kept] == TIMER_FIRED]
    begin = kept[np.isin(events[kept], (IRQ_IN, SOFTIRQ_IN))].tolist()
    for nested in (irqs, *(Nested(trace, rows, SOFTIRQ_IN) for rows in of_threads)):
        yield from nested.going_on
        for row in (*begin, *nested.innermost_at(fired).tolist()):
            if row != NOT_INSIDE:
                yield from nested.both_ends(row)
    yield from _of_senders(trace, here[telling[here]], irqs)


def _of_senders(trace: Trace, rows: Ints, irqs: Nested) -> Iterator[int]:
    """Of these rows: the last interrupt of a device, and since then the last with which each thread sent, and
    of the network's softirqs the last runs, and those before the last that was sent."""
    events = np.asarray(trace.event, np.int64)[rows]
    devices = rows[events == IRQ_IN]
    if len(devices):
        yield from irqs.both_ends(int(devices[-1]))
        events, rows = events[rows > devices[-1]], rows[rows > devices[-1]]
    sent = rows[events != SOFTIRQ_OUT]
    tids, kinds = np.asarray(trace.tid, np.int64)[sent], np.asarray(trace.event, np.int64)[sent]
    yield from sent[last_of(tids << 8 | kinds)].tolist()
    for name in NETWORK:
        runs = rows[(events == SOFTIRQ_OUT) & (np.asarray(trace.name)[rows] == trace.place(name))]
        yield from runs[-1:].tolist()
        if len(sent):
            yield from runs[runs < sent[-1]][-1:].tolist()


def last_of(keys: Ints) -> Ints:
    """The last place of each."""
    _, places = np.unique(keys[::-1], return_index=True)
    return len(keys) - 1 - places
