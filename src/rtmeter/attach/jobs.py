"""A thread's sleeps → its jobs: what it does from one wake-up to the next sleep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from rtmeter.attach.sleeps import MESSAGE, Sleep

RELATIVE = ("nanosleep", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2")
"""System calls whose timeouts are told from now on, never as a time."""

PATIENCE = 10_000
"""So many sleeps without a timer are those of a thread that timers do not pace."""


@dataclass(frozen=True, slots=True)
class Job:
    """From ``wake_ns`` to ``free_ns``, of which it had a CPU for ``busy_ns``. ``release_ns``: the expiry of
    the timer that ended the sleep, or the moment of the waking where something else did; ``kind``: which.
    ``armed_ns``: when the timer was armed in a system call of that sleep, if it was. ``waits``: how often
    it waited for a lock meanwhile. Of a job that is not ``known`` events were lost: its stamps are as far
    as they are told."""

    release_ns: int
    wake_ns: int
    free_ns: int
    busy_ns: int
    kind: str
    armed_ns: int | None
    waits: int = 0
    known: bool = True

    @property
    def by_timer(self) -> bool:
        """Whether a timer released it."""
        return self.kind != MESSAGE


def jobs_of(sleeps: Iterable[Sleep]) -> Iterator[Job]:
    """Those that are seen whole, from the first sleep to the last.

    A thread that sleeps on timers may wait for a lock within its work: a wait on a futex without a timeout
    ends no job of such a thread. What it sleeps on its first sleeps tell, up to PATIENCE of them.
    """
    coming = iter(sleeps)
    first: list[Sleep] = []
    by_timers = False
    while not by_timers and len(first) < PATIENCE and (sleep := next(coming, None)) is not None:
        first.append(sleep)
        by_timers = sleep.due_ns is not None
    began: Sleep | None = None
    waits, whole = 0, True
    for sleep in chain(first, coming):
        by_timers = by_timers or sleep.due_ns is not None
        whole = whole and sleep.whole_before
        if began is not None and by_timers and _is_lock(sleep):
            waits += 1
            continue
        if began is not None:
            yield Job(
                release_ns=began.woken_ns if began.due_ns is None else began.due_ns,
                wake_ns=began.wake_ns,
                free_ns=sleep.asleep_ns,
                busy_ns=sleep.ran_ns - began.ran_at_wake_ns,
                kind=began.kind,
                armed_ns=began.armed_ns,
                waits=waits,
                known=began.known and whole,
            )
        began, waits, whole = sleep, 0, True


def _is_lock(sleep: Sleep) -> bool:
    return sleep.call == "futex" and sleep.armed_ns is None and sleep.due_ns is None
