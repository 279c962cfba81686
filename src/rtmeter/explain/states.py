"""Where a thread is at every instant: on a CPU, runnable, asleep, or not known."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtmeter.explain.cpus import BEGINNING, NOT_INSIDE
from rtmeter.explain.events import LOST, NO_VALUE, RUNNABLE, SWITCH, Trace
from rtmeter.explain.threads import IDLE, KnownTrace

_NO_ROW = -1


@dataclass(frozen=True, slots=True)
class StateSpan:
    """A span; ``end_ns`` None: to the end. Of itself it says that nothing is known."""

    start_ns: int
    end_ns: int | None


@dataclass(frozen=True, slots=True)
class OnCpu(StateSpan):
    cpu: int


@dataclass(frozen=True, slots=True)
class Runnable(StateSpan):
    """``cpu`` is the one that it runs on next; ``stays``: it ran there before, too; ``left``: it left that
    one so (else it was woken)."""

    cpu: int
    stays: bool = False
    left: bool = False


@dataclass(frozen=True, slots=True)
class TimerSleep(StateSpan):
    """Ended by a timer that was due at ``expiry_ns`` (None: not told), fired on ``cpu`` at ``fired_ns`` in
    the interrupt that the row ``irq`` tells."""

    cpu: int
    expiry_ns: int | None
    fired_ns: int
    irq: int


@dataclass(frozen=True, slots=True)
class Wait(StateSpan):
    """Ended by an interrupt or softirq of this ``name``, or by the thread ``waker``, else IDLE. ``softirq``:
    the row that tells the softirq, else NOT_INSIDE; ``waking``: the row that ends it."""

    name: str | None
    waker: int
    softirq: int
    waking: int


@dataclass(frozen=True, slots=True)
class _Move:
    """A change: ``to`` is ``on``, ``runnable``, ``woken``, ``asleep`` or ``unknown``; ``row`` its event."""

    time_ns: int
    to: str
    cpu: int = -1
    row: int = -1


def states_of(known: KnownTrace, thread: int) -> list[StateSpan]:
    """From the trace's beginning to its end, without a gap."""
    moves = list(_moves(known, thread))
    ends = [move.time_ns for move in moves[1:]]
    states = []
    ran_on = -1
    for place, move in enumerate(moves):
        end_ns = ends[place] if place < len(ends) else None
        following = moves[place + 1] if place + 1 < len(moves) else None
        states.append(_state(known, thread, move, end_ns, following, ran_on))
        ran_on = move.cpu if move.to == "on" else -1 if move.to == "unknown" else ran_on
    return states


def _moves(known: KnownTrace, thread: int) -> Iterator[_Move]:
    trace = known.trace
    there = next((cpu for cpu, first in known.cpus.first.items() if first == thread), None)
    now = _Move(BEGINNING, "unknown") if there is None else _Move(BEGINNING, "on", there)
    yield now
    for row in sorted({*known.moves[thread], *known.lost}):
        to = _where_to(known, thread, now, row)
        if to is not None:
            now = _Move(trace.time_ns[row], to, trace.cpu[row], row)
            yield now


def _where_to(known: KnownTrace, thread: int, now: _Move, row: int) -> str | None:
    """What the event makes of the thread's state; None: nothing."""
    trace = known.trace
    if trace.event[row] == LOST:
        if known.cpus.after[row][1] == thread:
            return "on"
        return "unknown" if now.to == "on" and now.cpu == trace.cpu[row] else None
    if trace.event[row] != SWITCH:
        return "woken" if now.to in ("asleep", "unknown") else None
    if known.targets[row] == thread:
        return "on"
    if trace.state[row] == RUNNABLE:
        return "runnable"
    return "asleep" if trace.state[row] in (2, 3) else "unknown"


def _state(
    known: KnownTrace, thread: int, move: _Move, end_ns: int | None, after: _Move | None, ran_on: int
) -> StateSpan:
    """What it was becomes known by what comes next: a sleep by the waking, waiting for a CPU by that CPU.
    ``ran_on``: the CPU before."""
    start_ns = move.time_ns
    if move.to == "on":
        return OnCpu(start_ns, end_ns, move.cpu)
    if after is not None and move.to in ("runnable", "woken") and after.to == "on":
        return Runnable(start_ns, end_ns, after.cpu, after.cpu == ran_on, move.to == "runnable")
    if after is not None and move.to == "asleep" and after.to == "woken":
        return _sleep(known, thread, start_ns, end_ns, after.row)
    return StateSpan(start_ns, end_ns)


def _sleep(known: KnownTrace, thread: int, start_ns: int, end_ns: int | None, waking: int) -> StateSpan:
    trace, irq, softirq = known.trace, known.cpus.irq[waking], known.cpus.softirq[waking]
    if irq != NOT_INSIDE:
        woken_before = _last_before(known.wakings[thread], waking)
        fired = _last_fired(known, thread, irq, woken_before, waking)
        if fired != _NO_ROW:
            expiry_ns = _expiry(trace, known, thread, fired)
            return TimerSleep(start_ns, end_ns, trace.cpu[fired], expiry_ns, trace.time_ns[fired], irq)
        return Wait(start_ns, end_ns, trace.name_of(irq), IDLE, NOT_INSIDE, waking)
    if softirq != NOT_INSIDE:
        return Wait(start_ns, end_ns, trace.name_of(softirq), IDLE, softirq, waking)
    waker = known.threads[waking]
    name = known.name(waker, trace.time_ns[waking])
    return Wait(start_ns, end_ns, name, max(waker, IDLE), NOT_INSIDE, waking)


def _last_fired(known: KnownTrace, thread: int, irq: int, after: int, before: int) -> int:
    """The last firing in an interrupt of a timer of the thread; others may have fired elsewhere since."""
    rows = known.fired[thread]
    between = rows[bisect_right(rows, after) : bisect_left(rows, before)]
    return next((row for row in reversed(between) if known.cpus.irq[row] == irq), _NO_ROW)


def _expiry(trace: Trace, known: KnownTrace, thread: int, fired: int) -> int | None:
    """As the firing says it, else as the timer was armed last."""
    armed = _last_before(known.armed[thread], fired)
    values = (trace.value[row] for row in (fired, armed) if row != _NO_ROW)
    return next((value for value in values if value != NO_VALUE), None)


def _last_before(rows: Sequence[int], row: int) -> int:
    place = bisect_left(rows, row)
    return rows[place - 1] if place else _NO_ROW
