"""Whether a thread that could run was passed over: not because the kernel could not switch to it, but because
its time was used up (throttling, a quota) or kept for others (the fair server).

The kernel looks for the most urgent thread at each switch, and when it returns from an interrupt to a
program's own code or to the idle CPU. Who is there then, less urgent, it has chosen.
"""

from __future__ import annotations

from enum import StrEnum

from rtmeter.explain.cpus import NOT_INSIDE, Piece
from rtmeter.explain.events import NOBODY
from rtmeter.explain.states import Runnable
from rtmeter.explain.threads import IDLE, KnownTrace, is_kernels

_HEARD_NS = 1_000_000
"""So long after its waking a thread's CPU has heard of it; and so far apart are two looks."""

_LOOKS = 2
"""After so many interrupts the one on the CPU was chosen; within the first the thread may have been woken."""

_DEADLINE, _REAL_TIME = range(-1, 0), range(100)
"""Priorities of deadline threads, and of fifo and rr, as events print them."""


class Throttled(StrEnum):
    """By its policy, what time of a thread that is passed over was used up, or kept for others."""

    DEADLINE = "deadline"
    REAL_TIME = "real_time"
    NORMAL = "normal"


class PassedOver:
    """Goes through the pieces of the CPU that a thread waits for, from the beginning of its wait on. Of a
    thread that ran on another CPU before nothing is said: it may have waited there."""

    def __init__(self, known: KnownTrace, thread: int, state: Runnable) -> None:
        self._known, self._thread, self._state = known, thread, state
        self._priority = known.priority(thread, state.start_ns)
        self._by = Throttled.NORMAL
        if self._priority in _DEADLINE:
            self._by = Throttled.DEADLINE
        elif self._priority in _REAL_TIME:
            self._by = Throttled.REAL_TIME
        self._told = state.stays and not self._gives_up()
        self._on: int | None = None
        self._looked_ns, self._looks = state.start_ns, 0
        self._is = False

    @property
    def now(self) -> Throttled | None:
        """Whether it is passed over as the piece seen last begins."""
        return self._by if self._is else None

    def _gives_up(self) -> bool:
        """Whether it is a deadline thread that leaves the rest of its runtime, until it is given it anew."""
        call = self._known.call_at(self._thread, self._state.start_ns)
        return self._by is Throttled.DEADLINE and call is not None and call.name == "sched_yield"

    def see(self, piece: Piece) -> None:
        """The next piece."""
        if piece.lost or piece.thread == NOBODY or not self._told:
            self._on, self._looks, self._is = None, 0, False
            return
        since_ns = piece.start_ns - self._state.start_ns
        if piece.thread != self._on:
            instead = self._state.left and self._on is None and since_ns == 0
            chosen = instead or (self._on is not None and since_ns >= _HEARD_NS)
            self._is = self._may_not_be(piece) and (chosen or self._is)
            self._on, self._looks, self._looked_ns = piece.thread, 0, piece.start_ns
        elif piece.irq != NOT_INSIDE and piece.start_ns - self._looked_ns >= _HEARD_NS:
            if self._may_not_be(piece) and self._can_be_left(piece):
                self._looks, self._looked_ns = self._looks + 1, piece.start_ns
            self._is = self._is or self._looks >= _LOOKS

    def _may_not_be(self, piece: Piece) -> bool:
        """Whether the one on the CPU would not be there if the thread could have it: less urgent than one of
        deadline, fifo or rr (normal ones share), or none, of one that left this CPU and waits for none."""
        if piece.thread == IDLE:
            return self._state.left
        theirs = self._known.priority(piece.thread, piece.start_ns)
        if self._by is Throttled.NORMAL or self._priority is None:
            return False
        return theirs is not None and theirs > self._priority

    def _can_be_left(self, piece: Piece) -> bool:
        known, now = self._known, piece.start_ns
        if piece.thread == IDLE:
            return True
        in_kernel = is_kernels(known.name(piece.thread, now)) or known.call_at(piece.thread, now) is not None
        return not in_kernel and known.is_told_of(piece.thread, now)
