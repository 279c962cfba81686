"""What is true of a thread at every instant, from what a scheduler's threads and CPUs did.

Imports nothing of rtmeter.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise

from scheduler import Scheduler, Thread

Key = tuple[str, str | None, str | None]
Span = tuple[int, int, Key, int | None]
"""From, until, what, and the CPU that this depends on."""

UNKNOWN: Key = ("unknown", None, None)


@dataclass(frozen=True)
class Truth:
    """Of one run."""

    run: Scheduler

    def at(self, tid: int, time_ns: int) -> Thread | None:
        """Who has the id up to a time, or has it next."""
        return next((t for t in self.run.threads if t.tid == tid and not _over(t, time_ns)), None)

    def segments(self, thread: Thread | None, from_ns: int, until_ns: int) -> list[tuple[int, int, Key]]:
        """The segments of a span, neighbours of one kind as one."""
        found: list[tuple[int, int, Key]] = []
        for start, end, key, cpu in self._spans(thread, from_ns, until_ns):
            for part in self._with_gaps(start, end, key, cpu):
                if found and found[-1][2] == part[2]:
                    found[-1] = (found[-1][0], part[1], part[2])
                else:
                    found.append(part)
        return found

    def _with_gaps(self, start: int, end: int, key: Key, cpu: int | None) -> list[tuple[int, int, Key]]:
        inner = {t for number, a, b in self.run.gaps if number == cpu for t in (a, b) if start < t < end}
        bounds = [start, *sorted(inner), end]
        lost = [(a, b) for number, a, b in self.run.gaps if number == cpu]
        return [
            (a, b, UNKNOWN if any(x <= a and b <= y for x, y in lost) else key) for a, b in pairwise(bounds)
        ]

    def _spans(self, thread: Thread | None, from_ns: int, until_ns: int) -> list[Span]:
        found: list[Span] = []
        told_ns = from_ns
        for begun, ended, did in thread.was if thread else ():
            start, end = max(begun, from_ns), min(ended, until_ns)
            if start >= end:
                continue
            if told_ns < start:
                found.append((told_ns, start, UNKNOWN, None))
            assert thread is not None
            found += self._did(thread, begun, start, end, did)
            told_ns = end
        if told_ns < until_ns:
            found.append((told_ns, until_ns, UNKNOWN, None))
        return found

    def _did(self, thread: Thread, begun: int, start: int, end: int, did: tuple[object, ...]) -> list[Span]:
        kind = did[0]
        if kind == "untold":
            return [(start, end, UNKNOWN, None)]
        if kind == "wait":
            name, waker = did[1:]
            if waker is not None and _call(thread, begun) is not None:
                return self._spans(waker, start, end)
            return [(start, end, ("blocked", name, None), None)]
        number: int = did[1]
        times = {start, end, *self._changes(number, thread, start, end)}
        times |= {t for _, *gap in self.run.gaps for t in gap if start < t < end}
        if kind == "timer":
            times |= {t for t in did[2:4] if start < t < end}
        bounds = sorted(times)
        says = {"cpu": self._running, "ready": self._ready, "early": self._ready, "timer": self._timed}
        say = says[str(kind)]
        return [(a, b, say(thread, a, did), number) for a, b in pairwise(bounds)]

    def _changes(self, number: int, thread: Thread, start: int, end: int) -> set[int]:
        was = self.run.cpus[number].was
        first = max(bisect_right(was, start, key=_when) - 1, 0)
        within = was[first : bisect_left(was, end, key=_when)]
        logs = [
            within,
            *(log for one in {thread, *(what[2] for _, what in within if what[2])} for log in one.logs),
        ]
        return {t for log in logs for t, _ in log if start < t < end}

    def _on(self, number: int, time_ns: int) -> tuple[str | None, str | None, Thread | None]:
        return _last(self.run.cpus[number].was, time_ns)

    def _running(self, thread: Thread, time_ns: int, did: tuple[object, ...]) -> Key:
        if (key := self._interrupted(did[1], time_ns)) is not None:
            return key
        call = _call(thread, time_ns)
        return ("own", None, None) if call is None else ("own_kernel", str(call), None)

    def _ready(self, thread: Thread, time_ns: int, did: tuple[object, ...]) -> Key:
        if (key := self._interrupted(did[1], time_ns)) is not None:
            return key
        other = self._on(did[1], time_ns)[2]
        if other is None:
            return ("dispatch", None, None)
        mine, theirs = _last(thread.prints, time_ns), _last(other.prints, time_ns)
        relation = "equal" if mine == theirs else "above" if theirs < mine else "below"
        return ("displaced", other.name, relation)

    def _timed(self, thread: Thread, time_ns: int, did: tuple[object, ...]) -> Key:
        number, expiry_ns, fired_ns, irq = did[1:]
        if time_ns < expiry_ns:
            return ("armed_later", None, None)
        if time_ns >= fired_ns:
            return ("interrupt", str(irq), None)
        if (key := self._interrupted(number, time_ns)) is not None:
            return key
        other = self._on(number, time_ns)[2]
        if other is None:
            return ("timer_idle", None, None)
        if other.kernel or _call(other, time_ns) is not None:
            return ("held_off", other.name, None)
        return ("outside", None, None) if _is_told(other, time_ns) else UNKNOWN

    def _interrupted(self, number: object, time_ns: int) -> Key | None:
        irq, softirq, _ = self._on(number, time_ns)
        if irq is not None:
            return ("interrupt", irq, None)
        return None if softirq is None else ("softirq", softirq, None)


def _since_the_loss(thread: Thread, rows: list[int], time_ns: int) -> list[int]:
    """Of these rows those between the thread's last loss before a time and the next."""
    place = bisect_right(thread.losses, time_ns, key=lambda loss: loss[1])
    since, until = [-1, *(row for row, _ in thread.losses), rows[-1] + 1 if rows else 0][place : place + 2]
    return [row for row in rows if since < row < until]


def _call(thread: Thread, time_ns: int) -> object:
    """The system call that it is in; None: its own code, which is also what is told after a loss of one that
    enters and leaves none since."""
    is_first = not thread.losses or time_ns < thread.losses[0][1]
    told = is_first or _since_the_loss(thread, thread.calls, time_ns)
    return _last(thread.mode, time_ns) if told else None


def _is_told(thread: Thread, time_ns: int) -> bool:
    """Whether it may be said that it is in its own code: not after a loss, unless something tells of it
    since, or it calls the kernel nowhere."""
    if not thread.losses or time_ns < thread.losses[0][1] or not thread.calls:
        return True
    return bool(_since_the_loss(thread, sorted([*thread.calls, *thread.in_own_code]), time_ns))


def _over(thread: Thread, time_ns: int) -> bool:
    return thread.ended_ns is not None and thread.ended_ns < time_ns


def _last(log: list[tuple[int, object]], time_ns: int) -> object:
    """What holds at a time; None before the first."""
    place = bisect_right(log, time_ns, key=_when)
    return log[place - 1][1] if place else None


def _when(entry: tuple[int, object]) -> int:
    return entry[0]
