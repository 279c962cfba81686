"""A thread's sleeps → its jobs: what it does from one wake-up to the next sleep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from rtmeter.attach.sleeps import MESSAGE, Sleep

RELATIVE = ("nanosleep", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2")
"""System calls whose timeouts are told from now on, never as a time."""

PATIENCE = 10_000
"""So many sleeps tell whether timers pace a thread."""


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


def paced(timers: int, others: int) -> bool:
    """Whether timers pace a thread: they end two in five of its sleeps, or more. A loop that waits once for
    an answer in each cycle has one in two."""
    return timers > 0 and 2 * others <= 3 * timers


def jobs_of(sleeps: Iterable[Sleep]) -> Iterator[Job]:
    """Those that are seen whole, from the first sleep to the last.

    A thread that timers pace may wait for a lock within its work: a wait on a futex without a timeout ends
    no job of such a thread. Its first PATIENCE sleeps tell, which are held until then.
    """
    coming = iter(sleeps)
    first = list(islice(coming, PATIENCE))
    has_locks = _has_locks(first)
    began: Sleep | None = None
    waits, whole = 0, True
    for sleep in chain(first, coming):
        whole = whole and sleep.whole_before
        if began is not None and has_locks and _is_lock(sleep):
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


def _has_locks(sleeps: Sequence[Sleep]) -> bool:
    """Whether timers pace the thread beside its waits on futexes, and beside all else that it waits for: the
    waits are locks then. One that waits on a condition and sleeps now and then for a time has none."""
    known = [sleep for sleep in sleeps if sleep.known]
    timers, futexes = sum(sleep.due_ns is not None for sleep in known), sum(map(_is_lock, known))
    return paced(timers, futexes) and paced(timers, len(known) - timers - futexes)


def _is_lock(sleep: Sleep) -> bool:
    return sleep.call == "futex" and sleep.armed_ns is None and sleep.due_ns is None
