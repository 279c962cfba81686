"""A thread's sleeps → its jobs: what it does from one wake-up to the next sleep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from rtmeter.attach.asleep import MESSAGE, Rest, Sleep

RELATIVE = ("nanosleep", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2")
"""System calls whose timeouts are told from now on, never as a time."""

PATIENCE = 10_000
"""So many sleeps tell whether timers pace a thread."""

_TIMER, _LOCK, _OTHER = "timer", "lock", "other"


@dataclass(frozen=True, slots=True)
class Job:
    """From ``wake_ns`` to ``free_ns``, of which it had a CPU for ``busy_ns``. ``release_ns``: the expiry of
    the timer that ended the sleep, or the moment of the waking where something else did; ``kind``: which.
    ``armed_ns``: when the timer was armed in a system call of that sleep, if it was. ``waits``: how often
    it waited for a lock meanwhile. Of a job that is not ``known`` events were lost: its stamps are as far
    as they are told. One that has not ``ended`` was under way when the recording ended, at ``free_ns``; the
    last one's ``until_ns``: until when the thread is known to have served nothing else. ``tid``: the
    thread that ran it, of a callback."""

    release_ns: int
    wake_ns: int
    free_ns: int
    busy_ns: int
    kind: str
    armed_ns: int | None
    waits: int = 0
    known: bool = True
    ended: bool = True
    until_ns: int | None = None
    tid: int | None = None

    @property
    def by_timer(self) -> bool:
        """Whether a timer released it."""
        return self.kind != MESSAGE

    @property
    def is_back(self) -> bool:
        """Whether the thread had come back for it from its sleep."""
        return self.wake_ns < self.free_ns


def paced(timers: int, others: int) -> bool:
    """Whether timers pace a thread: they end two in five of its sleeps, or more. A loop that waits once for
    an answer in each cycle has one in two."""
    return timers > 0 and 2 * others <= 3 * timers


def jobs_of(sleeps: Iterable[Sleep], rest: Callable[[], Rest | None] = lambda: None) -> Iterator[Job]:
    """Those that are seen whole, from the first sleep to the last; and what ``rest``, asked after that, tells
    of the recording's end: the job that the last sleep ended, or that had not ended.

    A thread that timers pace may wait for a lock within its work: a wait on a futex without a timeout ends
    no job of such a thread, nor begins its first. Its first PATIENCE sleeps tell, which are held until then.
    A handler that ran in the midst of a job is a job within that one, which it does not end.
    """
    coming = iter(sleeps)
    first = list(islice(coming, PATIENCE))
    has_locks = _has_locks(first)
    began: Sleep | None = None
    within: list[Job] = []  # of handlers that ran in the midst of the job
    waits, whole = 0, True
    for sleep in chain(first, coming):
        whole = whole and sleep.whole_before
        if sleep.within:
            within.append(_job(sleep, sleep, 0, known=True))
            if began is None:
                yield within.pop()
            continue
        if has_locks and _is_lock(sleep):
            waits += 1
            continue
        if began is not None:
            yield _job(began, sleep, waits, known=whole)
            yield from within
        began, within, waits, whole = sleep, [], 0, True
    yield from within
    last = rest()
    if last is not None and last.handler is not None:
        yield _under_way(last.handler, last.end_ns, 0, known=True)
    if began is not None and last is not None:
        yield from _last_jobs(began, last, waits, known=whole and last.whole, has_locks=has_locks)


class EarlyJobs:
    """Tells of known jobs as they end: jobs_of() holds the first ones until it is known of them whether the
    thread waits for locks; here that goes by what it did until then."""

    def __init__(self, tell: Callable[[Job], None]) -> None:
        self._tell = tell
        self._ended: Counter[str | None] = Counter()
        self._began: Sleep | None = None
        self._whole = True

    def see(self, sleep: Sleep) -> None:
        """The next one."""
        if sleep.within:
            return
        self._ended[_what(sleep)] += 1
        self._whole = self._whole and sleep.whole_before
        if _is_lock(sleep) and _are_locks(self._ended):
            return
        if self._began is not None and self._began.known and self._whole:
            self._tell(_job(self._began, sleep, 0, known=True))
        self._began, self._whole = sleep, True


def _job(began: Sleep, then: Sleep, waits: int, *, known: bool) -> Job:
    """From one sleep to the next."""
    return Job(
        release_ns=began.woken_ns if began.due_ns is None else began.due_ns,
        wake_ns=began.wake_ns,
        free_ns=then.asleep_ns,
        busy_ns=then.ran_ns - began.ran_at_wake_ns,
        kind=began.kind,
        armed_ns=began.armed_ns,
        waits=waits,
        known=began.known and known,
    )


def _last_jobs(began: Sleep, rest: Rest, waits: int, *, known: bool, has_locks: bool) -> Iterator[Job]:
    """That of the last sleep that ended, and that of one which the thread was woken from but is not back."""
    end_ns, sleep = rest.end_ns, rest.sleep
    if sleep is None or (has_locks and _is_lock(sleep)):
        yield _under_way(began, end_ns, waits, known=known)
        return
    job = _job(began, sleep, waits, known=known)
    if rest.woken:
        yield job
        yield _under_way(replace(sleep, wake_ns=end_ns), end_ns, 0, known=True)
    else:
        yield replace(job, until_ns=job.free_ns if rest.later else end_ns)


def _under_way(began: Sleep, end_ns: int, waits: int, *, known: bool) -> Job:
    end = replace(began, asleep_ns=end_ns, ran_ns=began.ran_at_wake_ns)
    return replace(_job(began, end, waits, known=known), ended=False, until_ns=end_ns)


def _has_locks(sleeps: Sequence[Sleep]) -> bool:
    """Whether timers pace the thread beside its waits on futexes, and beside all else that it waits for: the
    waits are locks then. One that waits on a condition and sleeps now and then for a time has none."""
    return _are_locks(Counter(_what(sleep) for sleep in sleeps if not sleep.within))


def _are_locks(counts: Mapping[str | None, int]) -> bool:
    """By how many sleeps ended how."""
    timers = counts.get(_TIMER, 0)
    return all(paced(timers, counts.get(other, 0)) for other in (_LOCK, _OTHER))


def _what(sleep: Sleep) -> str | None:
    """What ended it; None: that is not known."""
    if not sleep.known:
        return None
    return _TIMER if sleep.due_ns is not None else _LOCK if _is_lock(sleep) else _OTHER


def _is_lock(sleep: Sleep) -> bool:
    return sleep.call == "futex" and sleep.armed_ns is None and sleep.due_ns is None
