"""What mends a cause by what the trace itself tells, where no finding of a check explains it."""

from __future__ import annotations

import re

from rtmeter.explain.causes import Ranked
from rtmeter.explain.facts import CauseFacts
from rtmeter.explain.messages import CPUS_OWN, RECEIVING, SENDING
from rtmeter.explain.passed_over import Throttled
from rtmeter.explain.states import SOFTIRQ
from rtmeter.explain.threads import is_kernels
from rtmeter.trace.events import VECTORS
from rtmeter.values import cpu_mask, format_cpus, visible

_LOCK_MEMORY = "touch all memory before the loop, and lock it: mlockall(MCL_CURRENT | MCL_FUTURE)"

_SOFTIRQS = {
    "NET_RX": "move off its CPU what packets come by: their device's interrupt (echo CPUS > "
    "/proc/irq/N/smp_affinity_list), and senders of this machine, which deliver on their own CPU",
    "RCU": "boot with rcu_nocbs= and its CPU",
    "BLOCK": "let a thread of less priority read and write files",
}
"""By name, of the kernel's work that ran, or that ended a wait."""

_OF_A_CATEGORY = {
    "outside": "look for firmware and hypervisors that take the CPU: rtla hwnoise, or hwlatdetect",
    "armed_later": "let the program sleep until the release itself, an absolute time (TIMER_ABSTIME)",
}

_OF_OURS = {
    "own": _OF_A_CATEGORY["outside"],
    "armed_later": "give this thread a real-time priority: the timers of normal tasks have 50 us of slack",
}
"""The same where the measured thread's code is rtmeter's, which nobody makes shorter."""

_SLEEPING = {"futex", "clock_nanosleep", "nanosleep", "pause", "sched_yield", "rt_sigtimedwait"}
_OF_A_LOOP = (RECEIVING | SENDING | _SLEEPING) - {"write", "writev"}
"""System calls that a loop is there for: to wait, to receive and to send. A write may be one to a disk."""

_LOCKED, _INHERITING = (0,), (6, 13)
"""What a futex is asked by who waits for a lock: FUTEX_WAIT; FUTEX_LOCK_PI and FUTEX_LOCK_PI2."""

_NORMAL, _MOST_URGENT = 100, 0
"""Priorities as events print them: from here on normal tasks; 99 of fifo and rr."""

_OF_AN_IRQ = re.compile(r"\[irq/([0-9]+)-.*\]")
_OF_A_CPU = re.compile(r"\[.*/([0-9]+(:.*)?|R-.*)\]")
_UNBOUND = re.compile(r"\[kworker/u.*\]")
"""Kernel threads, by name: of an interrupt; of a CPU, or of nowhere else, which taskset cannot move; those
that only all together have CPUs."""


def advice(cause: Ranked, cpus: int, *, virtual: bool, ours: bool = False) -> str | None:
    """What mends it, of a machine of so many ``cpus``, ``virtual`` or not; None if that is not known.
    ``ours``: the measured thread's own code is rtmeter's, a few lines after an absolute sleep."""
    key = cause.key
    whom = "this thread" if key.of is None else visible(key.of)
    if cause.throttled is Throttled.DEADLINE:
        return f"give {whom} more runtime as a deadline thread"
    if cause.throttled is not None:
        return None
    if key.category == "displaced":
        return _displaced(cause, cpus, whom)
    if key.category in ("own", "own_kernel") and cause.faulted:
        return _LOCK_MEMORY
    if ours and key.of is None and key.category in _OF_OURS:
        return _OF_OURS[key.category]
    if key.category == "own":
        besides = "; a hypervisor that has the CPU meanwhile looks the same" if virtual else ""
        return f"see what {whom} does then (perf record), and give it less to do{besides}"
    if key.category == "own_kernel":
        return _called(key.who, whom)
    if key.category == "blocked":
        return _blocked(cause, whom)
    if key.category in ("softirq", "interrupt") and cpus < 2 and key.who != "BLOCK":
        return None
    if key.category == "softirq":
        return _SOFTIRQS.get(key.who or "")
    if key.category == "interrupt" and key.who and key.who not in {*CPUS_OWN, *VECTORS.values()}:
        number = f"N of {visible(key.who)} in /proc/interrupts"
        return f"move it to another CPU: echo CPUS > /proc/irq/N/smp_affinity_list, {number}"
    return _OF_A_CATEGORY.get(key.category) if key.of is None or key.category == "outside" else None


def _displaced(cause: Ranked, cpus: int, whom: str) -> str | None:
    """Another had the CPU."""
    key, facts = cause.key, cause.facts
    who = visible(key.who or "")
    if cause.lent_by is not None:
        return f"let {who} hold the lock for less long that {visible(cause.lent_by)} waits for"
    if key.relation == "below":
        normal = facts.waiting is not None and facts.waiting >= _NORMAL
        return f"give {whom} a real-time priority: normal tasks share the CPU" if normal else None
    if key.relation is None:
        return None
    moved = _moved(who, facts, cpus)
    raised = None
    if facts.priority is not None and facts.priority >= _NORMAL:
        raised = f"give {whom} a real-time priority"
    elif facts.priority is not None and facts.priority > _MOST_URGENT:
        raised = f"give {whom} a real-time priority above it"
    return ", or ".join(filter(None, (moved, raised))) or None


def _moved(who: str, facts: CauseFacts, cpus: int) -> str | None:
    """What moves the one that had the CPU; None: it belongs there, or nowhere else is there room."""
    about = [f"thread {facts.tid}"] if facts.tid is not None and not is_kernels(who) else []
    if facts.priority is not None:
        about += [_priority(facts.priority)]
    named = f"{who} ({', '.join(about)})" if about else who
    irq = _OF_AN_IRQ.fullmatch(who)
    if (_OF_A_CPU.fullmatch(who) and not irq) or cpus < 2:
        return None
    others = set(range(cpus)) - {facts.cpu}
    rest = format_cpus(others) if facts.cpu is not None else "CPUS"
    off = f" off CPU {facts.cpu}" if facts.cpu is not None else " to another CPU"
    if irq:
        return f"move {named}{off} (echo {rest} > /proc/irq/{irq[1]}/smp_affinity_list)"
    if _UNBOUND.fullmatch(who):
        mask = cpu_mask(others) if facts.cpu is not None else "MASK"
        return f"move {named}{off} (echo {mask} > /sys/devices/virtual/workqueue/cpumask)"
    command = f" (taskset -pc {rest} {facts.tid})" if facts.tid is not None else ""
    return f"move {named}{off}{command}"


def _priority(printed: int) -> str:
    if printed < _MOST_URGENT:
        return "deadline"
    return f"real-time priority {99 - printed}" if printed < _NORMAL else f"nice {printed - 120}"


def _blocked(cause: Ranked, whom: str) -> str | None:
    """Another ended the wait, or the kernel."""
    key, facts = cause.key, cause.facts
    who = visible(key.who or "")
    if facts.stopped:
        return f"find what stops {whom}: a debugger, or a signal (perf record -a -e signal:signal_generate)"
    if facts.tid is None:
        return _SOFTIRQS["BLOCK"] if (key.ended_by, key.who) == (SOFTIRQ, "BLOCK") else None
    if facts.call == "futex" and facts.asked in _INHERITING:
        return f"let {who} hold the lock for less long"
    if facts.call == "futex" and (facts.asked in _LOCKED or facts.asked is None) and cause.lent_by is None:
        lock = f"if it is a lock that {who} held"
        return f"{lock}, make it one of PTHREAD_PRIO_INHERIT, and hold it for less long"
    return _called(facts.call, whom)


def _called(name: str | None, whom: str) -> str | None:
    """A system call took long, or waited."""
    if name is None or name in _OF_A_LOOP:
        return None
    return f"let {whom} call {visible(name)} before its loop, or another thread of less priority"
