"""Which events of a trace tell something of a thread."""

from __future__ import annotations

import numpy as np

from rtmeter.explain import events
from rtmeter.explain.events import Trace

SLEEPER = "hrtimer_wakeup"
"""The function of timers that wake a sleeping thread."""

_SLEEPERS = (
    None,
    *("alarmtimer_fired", "io_cqring_timer_wakeup", "io_cqring_min_timer_wakeup", "io_timeout_fn"),
)
"""As if they were that one: where functions are not told, sleeps by a clock that wakes the machine too
(CLOCK_BOOTTIME_ALARM), and io_uring's."""

BUDGET = "dl_task_timer"
"""The function of timers that give a deadline thread its budget: they name no thread."""

TIMERFD = "timerfd_tmrproc"
KINDS = {TIMERFD: "timerfd", "posix_timer_fn": "posix_timer", "it_real_fn": "itimer", BUDGET: "deadline"}
SETS = ("timerfd_settime", "timer_settime", "setitimer", "alarm")
"""System calls that set a timer. Armed by anything else, one that goes on by itself was armed anew as the
thread took the expiry before: it read it, or got its signal."""
INTERRUPTED = range(-516, -511)
"""What a system call returns within the kernel, where a signal interrupted it: ERESTARTSYS and its kin."""
RESTART = "restart_syscall"
SIGRETURN = ("rt_sigreturn", "sigreturn")
DELIVER = (*SIGRETURN, "rt_sigprocmask", "sigprocmask")
"""As they return, signals come that waited until then."""
DELIVERED_NS = 50_000
"""So long a thread runs at most until it has them."""
BECOMES = ("execve", "execveat")
"""Another program goes on in its place."""

NOBODY_WAITED_NS = 10**9
"""In the machine's first second no program waited for a time yet."""

BEGINNING = -(2**62)
"""Before all events."""


def rows_of(trace: Trace, tid: int) -> list[int]:
    """The events that say something of it."""
    event, its, target = (np.asarray(getattr(trace, name)) for name in ("event", "tid", "target"))
    own = (its == tid) & np.isin(event, (events.SWITCH, events.SYS_IN, events.SYS_OUT, events.TIMER_ARMED))
    of_it = (target == tid) & np.isin(event, (events.SWITCH, events.WAKING, events.TIMER_FIRED))
    names = [place for place, name in enumerate(trace.names) if name == BUDGET]
    budget = (event == events.TIMER_FIRED) & np.isin(np.asarray(trace.name), names)
    found: list[int] = np.flatnonzero(own | of_it | budget | (event == events.LOST)).tolist()
    return found


def function_of(trace: Trace, row: int) -> str | None:
    """That of a timer's event; SLEEPER where functions are not told, None for one that ends no sleep."""
    name = trace.name_of(row)
    if name == events.OTHERS_TIMER:
        return None
    return SLEEPER if name in _SLEEPERS else name


def before_lost(trace: Trace, complete_ns: int) -> dict[int, int]:
    """For each row that tells of lost events the time of the last event before it on its CPU, or until when
    all are known to be there."""
    found = {}
    for row in np.flatnonzero(np.asarray(trace.event) == events.LOST).tolist():
        before = row - 1
        while before >= 0 and trace.cpu[before] != trace.cpu[row]:
            before -= 1
        found[row] = max(trace.time_ns[before] if before >= 0 else BEGINNING, complete_ns)
    return found
