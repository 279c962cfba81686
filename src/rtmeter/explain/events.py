"""The table of events (docs/explain.md has its columns), compact: some 40 bytes an event."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
"""int64 array of shape (rows,)."""

SWITCH, WAKING, IRQ_IN, IRQ_OUT, SOFTIRQ_IN, SOFTIRQ_OUT = range(6)
TIMER_ARMED, TIMER_FIRED, SYS_IN, SYS_OUT, FAULT, LOST, LENT = range(6, 13)
KINDS = (
    *("switch", "waking", "irq_in", "irq_out", "softirq_in", "softirq_out"),
    *("timer_armed", "timer_fired", "sys_in", "sys_out", "fault", "lost", "lent"),
)
STATES = ("", "runnable", "sleeping", "blocked", "ended")
RUNNABLE, ENDED = 1, 4
COLUMNS = ("time_ns", "cpu", "event", "tid", "target", "state", "priority", "name", "value")

SOFTIRQS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
"""By the kernel's numbers of them."""

STOPPED = 1
"""The value of a switch from a thread that a signal or a debugger stops; else NO_VALUE."""

USER = "user"
"""The name of a page fault of a thread's own code."""

OTHERS_TIMER = "another function"
"""The name of a timer's event, where functions are told: that of none which ends a thread's sleep."""

NOBODY = -1
"""An absent ``tid`` or ``target``."""
NO_PRIORITY = -(2**31)
NO_VALUE = -(2**63)


class Event(NamedTuple):
    """One row. ``event`` and ``state`` as numbers, by their place in KINDS and STATES."""

    time_ns: int
    cpu: int
    event: int
    tid: int = NOBODY
    target: int = NOBODY
    state: int = 0
    priority: int = NO_PRIORITY
    name: str = ""
    value: int = NO_VALUE


class Trace:
    """Events in order of time, column by column; ``name`` is a place in ``names``."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.time_ns, self.value = array("q"), array("q")
        self.cpu, self.tid, self.target, self.priority, self.name = (array("i") for _ in range(5))
        self.event, self.state = array("b"), array("b")
        self.names: list[str] = []
        self._places: dict[str, int] = {}
        for event in events:
            self.append(event)

    def __len__(self) -> int:
        return len(self.time_ns)

    def append(self, row: Event) -> None:
        self.time_ns.append(row.time_ns)
        self.cpu.append(row.cpu)
        self.event.append(row.event)
        self.tid.append(row.tid)
        self.target.append(row.target)
        self.state.append(row.state)
        self.priority.append(row.priority)
        self.name.append(self.place(row.name))
        self.value.append(row.value)

    def taken(self, rows: npt.NDArray[np.int64] | slice) -> Trace:
        """The rows in that order; names are shared with this one."""
        found = self.empty()
        for column in COLUMNS:
            values = getattr(self, column)
            setattr(found, column, array(values.typecode, np.asarray(values)[rows].tobytes()))
        return found

    def empty(self) -> Trace:
        """Without rows, names shared with this one."""
        found = Trace()
        found.names, found._places = self.names, self._places
        return found

    def place(self, name: str) -> int:
        """Where the name stands in ``names``; it is added if it is new."""
        place = self._places.setdefault(name, len(self.names))
        if place == len(self.names):
            self.names.append(name)
        return place

    def name_of(self, row: int) -> str | None:
        return self.names[self.name[row]] or None


def joined(parts: Iterable[Trace]) -> Trace:
    """Parts that share their names and follow one another, as one."""
    found: Trace | None = None
    for part in parts:
        found = found or part.empty()
        for column in COLUMNS:
            getattr(found, column).extend(getattr(part, column))
    return found or Trace()
