"""What is known of each CPU at every instant: who is on it, and inside which interrupt or softirq it is.

An event holds from its own time on. What a ``lost`` took is not known: from the CPU's last event before it
until it. With it the knowledge of its CPU begins anew, as at the trace's beginning: who is on the CPU is the
``tid`` of its next event, and an ``_out`` without its ``_in`` was inside from there. A softirq is its
thread's: PREEMPT_RT takes both off the CPU together.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rtmeter.explain.events import (
    IRQ_IN,
    IRQ_OUT,
    LOST,
    NOBODY,
    SOFTIRQ_IN,
    SOFTIRQ_OUT,
    SWITCH,
    Ints,
    Trace,
)

BEGINNING = -(2**63)
NOT_INSIDE = -1
"""No row: the CPU is in no interrupt, or in no softirq."""


class Piece(NamedTuple):
    """A span of one CPU. ``thread``: who is on it, NOBODY if that is not known; ``irq`` and ``softirq``: the
    row that tells the innermost one's name, or NOT_INSIDE; ``lost``: events are missing here."""

    start_ns: int
    end_ns: int
    thread: int
    irq: int
    softirq: int
    lost: bool


@dataclass
class Cpu:
    """A CPU's pieces, one after another; the last has no end."""

    starts_ns: array[int] = field(default_factory=lambda: array("q"))
    threads: array[int] = field(default_factory=lambda: array("q"))
    irqs: array[int] = field(default_factory=lambda: array("i"))
    softirqs: array[int] = field(default_factory=lambda: array("i"))
    lost: array[int] = field(default_factory=lambda: array("b"))

    def add(self, starts_ns: Ints, threads: Ints, irqs: Ints, softirqs: Ints, lost: bool = False) -> None:
        """Adds pieces; of what holds from one time, the last."""
        if self.starts_ns and self.starts_ns[-1] == starts_ns[0]:
            for column in (self.starts_ns, self.threads, self.irqs, self.softirqs, self.lost):
                column.pop()
        last = np.append(starts_ns[1:] != starts_ns[:-1], True)
        columns = (starts_ns, threads, irqs, softirqs, np.full(len(starts_ns), lost))
        kept = (self.starts_ns, self.threads, self.irqs, self.softirqs, self.lost)
        for column, values in zip(kept, columns, strict=True):
            column.frombytes(values[last].astype(column.typecode).tobytes())

    def within(self, start_ns: int, end_ns: int) -> Iterator[Piece]:
        """The pieces of a span, cut to it."""
        place = max(bisect_right(self.starts_ns, start_ns) - 1, 0)
        while start_ns < end_ns:
            ends = self.starts_ns[place + 1] if place + 1 < len(self.starts_ns) else end_ns
            until = min(ends, end_ns)
            yield Piece(
                start_ns,
                until,
                self.threads[place],
                self.irqs[place],
                self.softirqs[place],
                bool(self.lost[place]),
            )
            start_ns, place = until, place + 1


@dataclass
class TracedCpus:
    """All CPUs. ``irq`` and ``softirq``, for each event: the row that tells the innermost interrupt or
    softirq that its CPU is in (equal rows: the same one), or NOT_INSIDE. ``first``: for each CPU, who is on
    it at the beginning; ``after``: for each ``lost``, by row, who was on its CPU before and who is after."""

    of: dict[int, Cpu]
    irq: array[int]
    softirq: array[int]
    first: dict[int, int]
    after: dict[int, tuple[int, int]]


def cpus_of(trace: Trace, threads: Ints, targets: Ints) -> TracedCpus:
    """``threads`` and ``targets``: of each event, the threads that its ``tid`` and ``target`` stand for."""
    nowhere = array("i", [NOT_INSIDE]) * len(trace)
    cpus = TracedCpus({}, nowhere, array("i", nowhere), {}, {})
    numbers, events = np.asarray(trace.cpu), np.asarray(trace.event)
    for number in np.unique(numbers).tolist():
        rows = np.flatnonzero(numbers == number)
        cpu = cpus.of[number] = Cpu()
        begins, before, start_ns = 0, NOBODY, BEGINNING
        for end in [*np.flatnonzero(events[rows] == LOST).tolist(), len(rows)]:
            known = rows[begins:end]
            there = threads[known]
            first = next(iter(there[there != NOBODY][:1].tolist()), NOBODY)
            if begins == 0:
                cpus.first[number] = first
            else:
                cpus.after[int(rows[begins - 1])] = (before, first)
            before = _one_epoch(trace, cpus, cpu, known, start_ns, first, threads, targets)
            if end < len(rows):
                since_ns = trace.time_ns[known[-1]] if len(known) else start_ns
                nothing = np.array([NOT_INSIDE])
                cpu.add(np.array([since_ns]), np.array([NOBODY]), nothing, nothing, True)
                start_ns = trace.time_ns[rows[end]]
            begins = end + 1
    return cpus


def _one_epoch(
    trace: Trace,
    cpus: TracedCpus,
    cpu: Cpu,
    rows: Ints,
    start_ns: int,
    first: int,
    threads: Ints,
    targets: Ints,
) -> int:
    """Adds the pieces from one ``lost`` to the next; returns who is on the CPU at the end."""
    events = np.asarray(trace.event)[rows]
    changing = (events == SWITCH) | ((events >= IRQ_IN) & (events <= SOFTIRQ_OUT))
    at, others = rows[changing], rows[~changing]
    switches = rows[events == SWITCH]
    runs = np.append([first], targets[switches])
    irqs = Nested(trace, rows[(events == IRQ_IN) | (events == IRQ_OUT)], IRQ_IN)
    softirqs = _Softirqs(trace, rows[(events == SOFTIRQ_IN) | (events == SOFTIRQ_OUT)], threads)
    begin = np.array([-1])  # before all rows
    at = np.append(begin, at)
    there, beside = (runs[np.searchsorted(switches, some, "right")] for some in (at, others))
    np.asarray(cpus.irq)[others] = irqs.innermost_at(others)
    np.asarray(cpus.softirq)[others] = softirqs.innermost_at(others, beside)
    starts_ns = np.append([start_ns], np.asarray(trace.time_ns)[at[1:]])
    cpu.add(starts_ns, there, irqs.innermost_at(at), softirqs.innermost_at(at, there))
    return int(runs[-1])


class Nested:
    """The interrupts, or the softirqs, that a CPU is in; each is the row that tells its name. ``going_on``:
    those of which no end is told."""

    def __init__(self, trace: Trace, rows: Ints, enters: int) -> None:
        opened_by: dict[int, int] = {}
        inside: list[int] = []
        already: list[int] = []
        listed = rows.tolist()
        for row in listed:
            if trace.event[row] == enters:
                inside.append(row)
                continue
            name, nameless = trace.name[row], not trace.name_of(row)
            opened = next((one for one in reversed(inside) if nameless or trace.name[one] == name), row)
            opened_by[row] = opened
            if opened == row:
                already.append(row)
            else:
                inside.remove(opened)
        inside = already[::-1]
        innermost = [inside[-1] if inside else NOT_INSIDE]
        for row in listed:
            if row in opened_by:
                inside.remove(opened_by[row])
            else:
                inside.append(row)
            innermost.append(inside[-1] if inside else NOT_INSIDE)
        self.going_on, self._rows, self._innermost = inside, rows, np.array(innermost)
        self._ends = {opened: row for row, opened in opened_by.items() if opened != row}

    def both_ends(self, row: int) -> list[int]:
        """The row that tells one's name, and where that is its beginning, the one that ends it."""
        return [row, self._ends[row]] if row in self._ends else [row]

    def innermost_at(self, rows: Ints) -> Ints:
        """The innermost one once each of these rows has happened, or NOT_INSIDE."""
        found: Ints = self._innermost[np.searchsorted(self._rows, rows, "right")]
        return found


class _Softirqs:
    """The softirqs that a CPU is in, those of each thread apart: who comes instead of it is not inside."""

    def __init__(self, trace: Trace, rows: Ints, threads: Ints) -> None:
        of = threads[rows]
        self._of = {one: Nested(trace, rows[of == one], SOFTIRQ_IN) for one in np.unique(of).tolist()}

    def innermost_at(self, rows: Ints, there: Ints) -> Ints:
        """As Nested has it, of who is ``there`` on the CPU."""
        found = np.full(len(rows), NOT_INSIDE)
        for thread, nested in self._of.items():
            its = there == thread
            found[its] = nested.innermost_at(rows[its])
        return found
