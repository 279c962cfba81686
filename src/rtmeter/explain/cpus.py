"""What is known of each CPU at every instant: who is on it, and inside which interrupt or softirq it is.

An event holds from its own time on. What a ``lost`` took is not known: from the CPU's last event before it
until it. With it the knowledge of its CPU begins anew, as at the trace's beginning: who is on the CPU is the
``tid`` of its next event, and an ``_out`` without its ``_in`` was inside from there.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rtmeter.explain.events import (
    IRQ_IN,
    IRQ_OUT,
    LOST,
    NOBODY,
    SOFTIRQ_IN,
    SOFTIRQ_OUT,
    SWITCH,
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

    def add(self, start_ns: int, thread: int, irq: int, softirq: int, lost: bool = False) -> None:
        if self.starts_ns and self.starts_ns[-1] == start_ns:  # of what holds from one time, the last
            for column in (self.starts_ns, self.threads, self.irqs, self.softirqs, self.lost):
                column.pop()
        self.starts_ns.append(start_ns)
        self.threads.append(thread)
        self.irqs.append(irq)
        self.softirqs.append(softirq)
        self.lost.append(lost)

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
class Cpus:
    """All CPUs. ``irq`` and ``softirq``, for each event: the row that tells the innermost interrupt or
    softirq that its CPU is in (equal rows: the same one), or NOT_INSIDE. ``first``: for each CPU, who is on
    it at the beginning; ``after``: for each ``lost``, by row, who was on its CPU before and who is after."""

    of: dict[int, Cpu]
    irq: array[int]
    softirq: array[int]
    first: dict[int, int]
    after: dict[int, tuple[int, int]]


def cpus_of(trace: Trace, threads: Sequence[int], targets: Sequence[int]) -> Cpus:
    """``threads`` and ``targets``: of each event, the threads that its ``tid`` and ``target`` stand for."""
    nowhere = array("i", [NOT_INSIDE]) * len(trace)
    cpus = Cpus({}, nowhere, array("i", nowhere), {}, {})
    rows: dict[int, array[int]] = {}
    for row, number in enumerate(trace.cpu):
        rows.setdefault(number, array("i")).append(row)
    for number, of_cpu in rows.items():
        cpu = cpus.of[number] = Cpu()
        begins, before, start_ns = 0, NOBODY, BEGINNING
        ends = [place for place, row in enumerate(of_cpu) if trace.event[row] == LOST]
        for end in [*ends, len(of_cpu)]:
            known = of_cpu[begins:end]
            first = next((threads[row] for row in known if threads[row] != NOBODY), NOBODY)
            if begins == 0:
                cpus.first[number] = first
            else:
                cpus.after[of_cpu[begins - 1]] = (before, first)
            before = _one_epoch(trace, cpus, cpu, known, start_ns, first, threads, targets)
            if end < len(of_cpu):
                cpu.add(trace.time_ns[known[-1]] if known else start_ns, NOBODY, NOT_INSIDE, NOT_INSIDE, True)
                start_ns = trace.time_ns[of_cpu[end]]
            begins = end + 1
    return cpus


def _one_epoch(
    trace: Trace,
    cpus: Cpus,
    cpu: Cpu,
    rows: Sequence[int],
    start_ns: int,
    thread: int,
    threads: Sequence[int],
    targets: Sequence[int],
) -> int:
    """Adds the pieces from one ``lost`` to the next; returns who is on the CPU at the end."""
    irqs = _Nested(trace, rows, IRQ_IN, IRQ_OUT)
    softirqs = _Nested(trace, rows, SOFTIRQ_IN, SOFTIRQ_OUT)
    cpu.add(start_ns, thread, irqs.innermost, softirqs.innermost)
    for row in rows:
        kind = trace.event[row]
        if kind == SWITCH:
            thread = targets[row]
        elif kind in (IRQ_IN, IRQ_OUT):
            irqs.follow(row)
        elif kind in (SOFTIRQ_IN, SOFTIRQ_OUT):
            softirqs.follow(row)
        else:
            cpus.irq[row], cpus.softirq[row] = irqs.innermost, softirqs.innermost
            continue
        cpu.add(trace.time_ns[row], thread, irqs.innermost, softirqs.innermost)
    return thread


class _Nested:
    """The interrupts, or the softirqs, that a CPU is in; each is the row that tells its name."""

    def __init__(self, trace: Trace, rows: Sequence[int], enters: int, leaves: int) -> None:
        self._opened_by: dict[int, int] = {}
        """For each ``_out`` its ``_in``, or itself."""
        inside: list[int] = []
        already: list[int] = []
        for row in rows:
            if trace.event[row] == enters:
                inside.append(row)
            elif trace.event[row] == leaves:
                name, nameless = trace.name[row], not trace.name_of(row)
                opened = next((one for one in reversed(inside) if nameless or trace.name[one] == name), row)
                self._opened_by[row] = opened
                if opened == row:
                    already.append(row)
                else:
                    inside.remove(opened)
        self._inside = already[::-1]

    def follow(self, row: int) -> None:
        opened = self._opened_by.get(row)
        if opened is None:
            self._inside.append(row)
        else:
            self._inside.remove(opened)

    @property
    def innermost(self) -> int:
        return self._inside[-1] if self._inside else NOT_INSIDE
