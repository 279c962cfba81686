"""Who sent what ends a wait: a wait for a message is followed to the thread that sends it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from rtmeter.explain.events import IRQ_IN, LOST, SOFTIRQ_OUT, SYS_IN, SYS_OUT, Trace
from rtmeter.explain.states import SOFTIRQ, Wait
from rtmeter.explain.threads import IDLE, Call, KnownTrace

RECEIVING = {
    *("read", "readv", "preadv2", "recvfrom", "recvmsg", "recvmmsg", "mq_timedreceive", "msgrcv"),
    *("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", "io_uring_enter"),
}
"""System calls in which a thread waits for a message: who sends it is followed."""

SENDING = {"write", "writev", "sendto", "sendmsg", "sendmmsg", "pwritev2", "sendfile", "io_uring_enter"}

CPUS_OWN = {"local_timer", "reschedule", "call_function", "call_function_single", "irq_work", "ipi"}
"""Interrupts of the CPU itself: none of them brings a message from another host."""

_FUTEX, _FOR_A_WAKE = "futex", (9, 11)
"""FUTEX_WAIT_BITSET and FUTEX_WAIT_REQUEUE_PI (linux/futex.h): what glibc's condition variables and
semaphores wait with. Its mutexes wait with others: whoever wakes from those had the lock."""

NETWORK = ("NET_RX", "NET_TX")
TIMEOUT = "TIMER"
"""The softirq of the kernel's coarse timers, which ends a receive that may take no longer."""


def is_receiving(call: Call | None, *, paths: bool) -> bool:
    """Whether a wait within the call is one for a message; ``paths``: also within a process, by a condition
    or a semaphore."""
    if call is None:
        return False
    return call.name in RECEIVING or (paths and call.name == _FUTEX and call.asked in _FOR_A_WAKE)


def telling_of_senders(trace: Trace) -> npt.NDArray[np.bool_]:
    """Of each row, whether it tells who sent what a softirq of the network delivers on its CPU: a thread
    sends, such a softirq has run, a device interrupts, events are lost."""
    events, names = np.asarray(trace.event), np.asarray(trace.name)

    def is_among(some: Collection[str]) -> npt.NDArray[np.bool_]:
        return np.isin(names, [place for place, name in enumerate(trace.names) if name in some])

    sends = np.isin(events, (SYS_IN, SYS_OUT)) & is_among(SENDING)
    runs = (events == SOFTIRQ_OUT) & is_among(NETWORK)
    interrupts = (events == IRQ_IN) & ~is_among(CPUS_OWN)
    found: npt.NDArray[np.bool_] = sends | runs | interrupts | (events == LOST)
    return found


class Senders:
    """Who sent the messages that the network's softirqs deliver."""

    def __init__(self, known: KnownTrace) -> None:
        self._known = known
        self._telling: dict[int, list[int]] = {}

    def of(self, wait: Wait) -> int:
        """The thread whose message a softirq delivered, if no device interrupted: the one in whose system
        call it ran; else the only one that had sent on that CPU between two runs of the softirq, the last in
        which anyone had: it may take what was sent in several rounds. IDLE if none is told."""
        known, trace, waking = self._known, self._known.trace, wait.waking
        if wait.ended_by != SOFTIRQ or wait.name not in NETWORK:
            return IDLE
        rows, found = self._on(trace.cpu[waking]), set[int]()
        for row in reversed(rows[: bisect_left(rows, waking)]):
            kind = trace.event[row]
            if kind in (LOST, IRQ_IN):
                return IDLE
            if kind == SYS_IN and known.threads[row] == known.threads[waking] and not found:
                return known.threads[row]
            if kind != SOFTIRQ_OUT:
                found.add(known.threads[row])
            elif trace.name_of(row) == wait.name and found:
                break
        return found.pop() if len(found) == 1 else IDLE

    def _on(self, cpu: int) -> list[int]:
        if not self._telling:
            trace = self._known.trace
            telling = np.flatnonzero(telling_of_senders(trace))
            cpus = np.asarray(trace.cpu)[telling]
            self._telling = {one: telling[cpus == one].tolist() for one in np.unique(cpus).tolist()}
        return self._telling.get(cpu, [])
