"""Who sent what ends a wait: a wait for a message is followed to the thread that sends it."""

from __future__ import annotations

from rtmeter.explain.events import IRQ_IN, LOST, SOFTIRQ_OUT, SYS_IN, SYS_OUT
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

_NETWORK = ("NET_RX", "NET_TX")
TIMEOUT = "TIMER"
"""The softirq of the kernel's coarse timers, which ends a receive that may take no longer."""

_LOOK_BACK = 10_000
"""Rows in which a sender is looked for."""


def is_receiving(call: Call | None, *, paths: bool) -> bool:
    """Whether a wait within the call is one for a message; ``paths``: also within a process, by a condition
    or a semaphore."""
    if call is None:
        return False
    return call.name in RECEIVING or (paths and call.name == _FUTEX and call.asked in _FOR_A_WAKE)


def sender_of(known: KnownTrace, wait: Wait) -> int:
    """The thread whose message a softirq of the network delivered, if no device interrupted: the one
    in whose system call it ran; else the only one that had sent on that CPU between two runs of the softirq,
    the last in which anyone had: it may take what was sent in several rounds. IDLE if none is told."""
    trace, cpu, waking = known.trace, known.trace.cpu[wait.waking], wait.waking
    if wait.ended_by != SOFTIRQ or wait.name not in _NETWORK:
        return IDLE
    here, found = known.threads[waking], set[int]()
    for row in range(waking - 1, max(waking - _LOOK_BACK, 0) - 1, -1):
        if trace.cpu[row] != cpu:
            continue
        kind, name = trace.event[row], trace.name_of(row)
        if kind == LOST or (kind == IRQ_IN and name not in CPUS_OWN):
            return IDLE
        if kind == SYS_IN and name in SENDING and known.threads[row] == here and not found:
            return here
        if kind == SOFTIRQ_OUT and name == wait.name and found:
            break
        if kind in (SYS_IN, SYS_OUT) and name in SENDING:
            found.add(known.threads[row])
    return found.pop() if len(found) == 1 else IDLE
