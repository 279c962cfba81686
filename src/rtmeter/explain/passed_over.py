"""Whether a thread that could run was passed over: not because the kernel could not switch to it, but because
its time was used up (throttling, a quota) or kept for others (the fair server).

The kernel looks for the most urgent thread at each switch, and when it returns from an interrupt to a
program's own code or to the idle CPU. Who is there then, less urgent, it has chosen.
"""

from __future__ import annotations

from rtmeter.explain.cpus import NOT_INSIDE, Piece
from rtmeter.explain.events import NOBODY
from rtmeter.explain.states import Runnable
from rtmeter.explain.threads import IDLE, KnownTrace, is_kernels

_HEARD_NS = 1_000_000
"""So long after its waking a thread's CPU has heard of it; and so far apart are two looks."""

_LOOKS = 2
"""After so many interrupts the one on the CPU was chosen; within the first the thread may have been woken."""

_REAL_TIME = range(100)
"""Priorities of fifo and rr, as events print them."""


class PassedOver:
    """Goes through the pieces of the CPU that a thread waits for, from the beginning of its wait on. Of a
    thread that ran on another CPU before nothing is said: it may have waited there."""

    def __init__(self, known: KnownTrace, thread: int, state: Runnable) -> None:
        self._known, self._state = known, state
        self._priority = known.priority(thread, state.start_ns)
        self._on: int | None = None
        self._looked_ns, self._looks = state.start_ns, 0
        self.now = False
        """Whether it is passed over as the piece seen last begins."""

    def see(self, piece: Piece) -> None:
        """The next piece."""
        if piece.lost or piece.thread == NOBODY or not self._state.stays:
            self._on, self._looks, self.now = None, 0, False
            return
        since_ns = piece.start_ns - self._state.start_ns
        if piece.thread != self._on:
            instead = self._state.left and self._on is None and since_ns == 0
            chosen = instead or (self._on is not None and since_ns >= _HEARD_NS)
            self.now = self._may_not_be(piece) and (chosen or self.now)
            self._on, self._looks, self._looked_ns = piece.thread, 0, piece.start_ns
        elif piece.irq != NOT_INSIDE and piece.start_ns - self._looked_ns >= _HEARD_NS:
            if self._may_not_be(piece) and self._can_be_left(piece):
                self._looks, self._looked_ns = self._looks + 1, piece.start_ns
            self.now = self.now or self._looks >= _LOOKS

    def _may_not_be(self, piece: Piece) -> bool:
        """Whether the one on the CPU would not be there if the thread could have it: less urgent than one of
        fifo or rr (normal ones share), or none, of one that left this CPU and so waits for no other."""
        if piece.thread == IDLE:
            return self._state.left
        theirs = self._known.priority(piece.thread, piece.start_ns)
        return self._priority in _REAL_TIME and theirs is not None and theirs > (self._priority or 0)

    def _can_be_left(self, piece: Piece) -> bool:
        known, now = self._known, piece.start_ns
        if piece.thread == IDLE:
            return True
        in_kernel = is_kernels(known.name(piece.thread, now)) or known.call_at(piece.thread, now) is not None
        return not in_kernel and known.is_told_of(piece.thread)
