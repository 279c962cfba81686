"""The kernel's events of a cell as Perfetto has them: tracks of CPUs and threads beside ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rtmeter.explain.events import (
    IRQ_IN,
    IRQ_OUT,
    NO_PRIORITY,
    SOFTIRQ_IN,
    SOFTIRQ_OUT,
    SOFTIRQS,
    STOPPED,
    SWITCH,
    WAKING,
    Trace,
)
from rtmeter.trace.table import StoredTrace

_STATES = (0, 0, 1, 2, 16)
"""How a thread leaves, by its place in explain.events.STATES: TASK_RUNNING, _INTERRUPTIBLE, _UNINTERRUPTIBLE,
EXIT_DEAD."""

_HELD = 4
"""__TASK_STOPPED: by a signal, or a debugger (the kernel has another for that, which a trace does not tell
apart)."""

_USUAL = 120
"""A priority that no event tells."""

Write = Callable[[int, Callable[[Any], None]], None]
"""Takes a CPU, and what fills its bundle."""


def write(trace: StoredTrace, bundle: Write) -> None:
    """All switches, wakings, interrupts and softirqs, a bundle a CPU and part."""
    names: dict[int, tuple[str, int]] = {0: ("swapper", _USUAL)}
    for part in trace.parts():
        before = dict(names)
        for row in range(len(part)):
            if part.event[row] in (SWITCH, WAKING) and part.target[row] > 0:
                names[part.target[row]] = _name_and_priority(part, row)
        for cpu in np.unique(np.asarray(part.cpu)).tolist():
            bundle(cpu, partial(_fill, part=part, cpu=cpu, names=dict(before)))


def _fill(events: Any, part: Trace, cpu: int, names: dict[int, tuple[str, int]]) -> None:
    for row in np.flatnonzero(np.asarray(part.cpu) == cpu).tolist():
        kind, name = part.event[row], part.name_of(row) or ""
        if kind not in (SWITCH, WAKING, IRQ_IN, IRQ_OUT, SOFTIRQ_IN, SOFTIRQ_OUT):
            continue
        one = events.event.add()
        one.timestamp, one.pid = part.time_ns[row], max(part.tid[row], 0)
        if kind == SWITCH:
            names[part.target[row]] = _name_and_priority(part, row)
            comm, prio = names.get(one.pid, (f"tid {one.pid}", _USUAL))
            switch = one.sched_switch
            switch.prev_comm, switch.prev_pid, switch.prev_prio = comm, one.pid, prio
            switch.prev_state = _HELD if part.value[row] == STOPPED else _STATES[part.state[row]]
            switch.next_pid = max(part.target[row], 0)
            switch.next_comm, switch.next_prio = names[part.target[row]]
        elif kind == WAKING:
            names[part.target[row]] = _name_and_priority(part, row)
            waking = one.sched_waking
            waking.pid, waking.success, waking.target_cpu = max(part.target[row], 0), 1, cpu
            waking.comm, waking.prio = names[part.target[row]]
        elif kind == IRQ_IN:
            one.irq_handler_entry.irq, one.irq_handler_entry.name = part.name[row], name
        elif kind == IRQ_OUT:
            one.irq_handler_exit.irq, one.irq_handler_exit.ret = part.name[row], 1
        elif kind == SOFTIRQ_IN:
            one.softirq_entry.vec = _vector(name)
        else:
            one.softirq_exit.vec = _vector(name)


def _name_and_priority(part: Trace, row: int) -> tuple[str, int]:
    priority = part.priority[row]
    return part.name_of(row) or f"tid {part.target[row]}", _USUAL if priority == NO_PRIORITY else priority


def _vector(name: str) -> int:
    return SOFTIRQS.index(name) if name in SOFTIRQS else len(SOFTIRQS)
