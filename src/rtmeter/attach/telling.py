"""Which events of a trace tell something of a thread."""

from __future__ import annotations

import numpy as np

from rtmeter.explain.events import (
    LOST,
    OTHERS_TIMER,
    SWITCH,
    SYS_IN,
    SYS_OUT,
    TIMER_ARMED,
    TIMER_FIRED,
    WAKING,
    Trace,
)

SLEEPER = "hrtimer_wakeup"
"""The function of timers that wake a sleeping thread."""

_ALARM = "alarmtimer_fired"
"""That of sleeps by a clock that wakes the machine too (CLOCK_BOOTTIME_ALARM)."""

BUDGET = "dl_task_timer"
"""The function of timers that give a deadline thread its budget: they name no thread."""

BEGINNING = -(2**62)
"""Before all events."""


def rows_of(trace: Trace, tid: int) -> list[int]:
    """The events that say something of it."""
    event, its, target = (np.asarray(getattr(trace, name)) for name in ("event", "tid", "target"))
    own = (its == tid) & np.isin(event, (SWITCH, SYS_IN, SYS_OUT, TIMER_ARMED))
    of_it = (target == tid) & np.isin(event, (SWITCH, WAKING, TIMER_FIRED))
    names = [place for place, name in enumerate(trace.names) if name == BUDGET]
    budget = (event == TIMER_FIRED) & np.isin(np.asarray(trace.name), names)
    found: list[int] = np.flatnonzero(own | of_it | budget | (event == LOST)).tolist()
    return found


def function_of(trace: Trace, row: int) -> str | None:
    """That of a timer's event; SLEEPER where functions are not told, None for one that ends no sleep."""
    name = trace.name_of(row)
    if name == OTHERS_TIMER:
        return None
    return SLEEPER if name in (None, _ALARM) else name


def before_lost(trace: Trace, complete_ns: int) -> dict[int, int]:
    """For each row that tells of lost events the time of the last event before it on its CPU, or until when
    all are known to be there."""
    found = {}
    for row in np.flatnonzero(np.asarray(trace.event) == LOST).tolist():
        before = row - 1
        while before >= 0 and trace.cpu[before] != trace.cpu[row]:
            before -= 1
        found[row] = max(trace.time_ns[before] if before >= 0 else BEGINNING, complete_ns)
    return found
