"""Where a thread is at every instant: on a CPU, runnable, asleep, or not known."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rtmeter.explain.cpus import BEGINNING, NOT_INSIDE
from rtmeter.explain.events import IRQ_OUT, LOST, NO_VALUE, RUNNABLE, STOPPED, SWITCH, SYS_IN, SYS_OUT, Trace
from rtmeter.explain.threads import IDLE, KnownTrace

_NO_ROW = -1

INTERRUPT, SOFTIRQ = "interrupt", "softirq"
"""What may end a wait besides a thread; a thread may have the name of any."""


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
    the interrupt that the row ``irq`` tells, NOT_INSIDE if none does."""

    cpu: int
    expiry_ns: int | None
    fired_ns: int
    irq: int


@dataclass(frozen=True, slots=True)
class Wait(StateSpan):
    """Ended by an interrupt or softirq of this ``name``, which of them says ``ended_by``, or by the thread
    ``waker``, else IDLE. ``waking``: the row that ends it; ``stopped``: by a signal or a debugger."""

    name: str | None
    ended_by: str | None
    waker: int
    waking: int
    stopped: bool


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
        if following is not None and _is_woken_at_once(known, thread, moves[place - 1], move, following):
            move = replace(move, to="woken")
        states.append(_state(known, thread, move, end_ns, following, ran_on))
        ran_on = move.cpu if move.to == "on" else -1 if move.to == "unknown" else ran_on
    return states


def _moves(known: KnownTrace, thread: int) -> Iterator[_Move]:
    trace = known.trace
    there = next((cpu for cpu, first in known.cpus.first.items() if first == thread), None)
    now = _Move(BEGINNING, "unknown") if there is None else _Move(BEGINNING, "on", there)
    yield now
    lost = _NO_ROW  # the first since then
    for row in sorted({*known.moves[thread], *known.lost}):
        to = _where_to(known, thread, now, row)
        if to is None and trace.event[row] == LOST:
            lost = row if lost == _NO_ROW else lost
        elif to is None and now.to in ("woken", "runnable") and lost != _NO_ROW:
            yield _Move(trace.time_ns[lost], "unknown", trace.cpu[lost], lost)
            to = "woken"  # it slept meanwhile
        if to is not None:
            now, lost = _Move(trace.time_ns[row], to, trace.cpu[row], row), _NO_ROW
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
        return _sleep(known, thread, move, end_ns, after.row)
    return StateSpan(start_ns, end_ns)


def _is_woken_at_once(known: KnownTrace, thread: int, before: _Move, move: _Move, after: _Move) -> bool:
    """Whether it went to sleep while a waking was on its way, so that none came once it slept: one from
    another CPU, after the last that it did on its own (else it went on running, and no sleep was ended)."""
    if (before.to, move.to, after.to) != ("on", "asleep", "on"):
        return False
    waking = _last_before(known.wakings[thread], move.row)
    did = [_last_before(rows, move.row) for rows in (known.system[thread], known.armed[thread])]
    if waking <= max(before.row, *did) or known.trace.cpu[waking] == move.cpu:
        return False
    pieces = (cpu.within(move.time_ns, after.time_ns) for cpu in known.cpus.of.values())
    return not any(piece.lost for of_one in pieces for piece in of_one)


def _sleep(known: KnownTrace, thread: int, left: _Move, end_ns: int | None, waking: int) -> StateSpan:
    trace, irq, softirq = known.trace, known.cpus.irq[waking], known.cpus.softirq[waking]
    start_ns, stopped = left.time_ns, trace.value[left.row] == STOPPED
    fired = _last_fired(known, thread, waking)
    if fired != _NO_ROW:
        expiry_ns = _expiry(trace, known, thread, fired)
        return TimerSleep(start_ns, end_ns, trace.cpu[fired], expiry_ns, trace.time_ns[fired], irq)
    if _may_have_fired(known, thread, waking):
        return StateSpan(start_ns, end_ns)
    if irq != NOT_INSIDE:
        return Wait(start_ns, end_ns, trace.name_of(irq), INTERRUPT, IDLE, waking, stopped)
    if softirq != NOT_INSIDE:
        return Wait(start_ns, end_ns, trace.name_of(softirq), SOFTIRQ, IDLE, waking, stopped)
    waker = known.threads[waking]
    name = known.name(waker, trace.time_ns[waking])
    return Wait(start_ns, end_ns, name, None, max(waker, IDLE), waking, stopped)


def _last_fired(known: KnownTrace, thread: int, waking: int) -> int:
    """The last firing of a timer of the thread in the interrupt in which it is woken; others may have fired
    elsewhere since. Where no interrupts are told: on that CPU, where no thread has done anything since."""
    cpus, rows = known.cpus, known.fired[thread]
    since = bisect_right(rows, _last_before(known.wakings[thread], waking))
    for row in reversed(rows[since : bisect_left(rows, waking)]):
        if cpus.irq[row] != cpus.irq[waking]:
            continue
        if cpus.irq[row] != NOT_INSIDE or _is_one_interrupt(known, row, waking):
            return row
    return _NO_ROW


def _may_have_fired(known: KnownTrace, thread: int, waking: int) -> bool:
    """Whether a timer of the thread may have fired in the interrupt in which it is woken, before a ``lost``:
    of that one nothing but its end is told."""
    irq, cpu = known.cpus.irq[waking], known.trace.cpu[waking]
    if irq == NOT_INSIDE or known.trace.event[irq] != IRQ_OUT:
        return False
    lost = known.lost[bisect_right(known.lost, _last_before(known.wakings[thread], waking)) :]
    return any(row < waking and known.trace.cpu[row] == cpu for row in lost)


def _is_one_interrupt(known: KnownTrace, fired: int, waking: int) -> bool:
    """Whether a waking may come in the interrupt, of which nothing tells, in which a timer fired."""
    trace, softirqs = known.trace, known.cpus.softirq
    here = (row for row in range(fired, waking) if trace.cpu[row] == trace.cpu[waking])
    return (
        trace.cpu[fired] == trace.cpu[waking]
        and softirqs[fired] == softirqs[waking] == NOT_INSIDE
        and not any(trace.event[row] in (SWITCH, SYS_IN, SYS_OUT, LOST) for row in here)
    )


def _expiry(trace: Trace, known: KnownTrace, thread: int, fired: int) -> int | None:
    """As the firing says it, else as the timer was armed last."""
    armed = _last_before(known.armed[thread], fired)
    values = (trace.value[row] for row in (fired, armed) if row != _NO_ROW)
    return next((value for value in values if value != NO_VALUE), None)


def _last_before(rows: Sequence[int], row: int) -> int:
    place = bisect_left(rows, row)
    return rows[place - 1] if place else _NO_ROW
