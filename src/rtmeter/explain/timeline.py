"""What the CPUs did around a release: who ran, and which interrupts came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rtmeter.explain.cpus import NOT_INSIDE, Cpu
from rtmeter.explain.events import NOBODY, SWITCH, WAKING, Trace
from rtmeter.explain.threads import IDLE, KnownTrace

MOST = 400
"""Spans of a CPU."""


class Doing(NamedTuple):
    """What a CPU did: ``kind`` is ``thread``, ``interrupt``, ``softirq`` or ``unknown``, ``name`` whose. Of
    what it did when it was idle nothing is told."""

    cpu: int
    start_ns: int
    end_ns: int
    kind: str
    name: str


def doings(trace: Trace, tid: int, start_ns: int, end_ns: int) -> list[Doing]:
    """Of the CPUs that the thread ``tid`` ran on, or was woken from, in that time."""
    if not len(trace):
        return []
    known = KnownTrace(trace)
    found: list[Doing] = []
    for cpu in _cpus(trace, tid, start_ns, end_ns):
        found += list(_on(known, cpu, known.cpus.of[cpu], start_ns, end_ns))[:MOST]
    return found


def _cpus(trace: Trace, tid: int, start_ns: int, end_ns: int) -> list[int]:
    times, events = np.asarray(trace.time_ns), np.asarray(trace.event)
    tids, targets = np.asarray(trace.tid), np.asarray(trace.target)
    about = (tids == tid) | ((targets == tid) & np.isin(events, (SWITCH, WAKING)))
    there = np.asarray(trace.cpu)[about & (times >= start_ns) & (times <= end_ns)]
    return [int(cpu) for cpu in np.unique(there)]


def _on(known: KnownTrace, number: int, cpu: Cpu, start_ns: int, end_ns: int) -> Iterator[Doing]:
    last: Doing | None = None
    for piece in cpu.within(start_ns, end_ns):
        kind, name = "thread", ""
        if piece.thread == NOBODY and piece.irq == piece.softirq == NOT_INSIDE:
            kind, name = "unknown", "unknown"
        elif piece.irq != NOT_INSIDE:
            kind, name = "interrupt", known.trace.name_of(piece.irq) or "an interrupt"
        elif piece.softirq != NOT_INSIDE:
            kind, name = "softirq", known.trace.name_of(piece.softirq) or "a softirq"
        elif piece.thread != IDLE:
            name = known.name(piece.thread, piece.start_ns)
        now = Doing(number, piece.start_ns, piece.end_ns, kind, name) if name else None
        if last and now and last[3:] == now[3:]:
            last = last._replace(end_ns=now.end_ns)
            continue
        if last:
            yield last
        last = now
    if last:
        yield last
