"""What a key means, as a person says it."""

from __future__ import annotations

from rtmeter.explain.causes import Ranked
from rtmeter.explain.passed_over import Throttled
from rtmeter.explain.segments import Key
from rtmeter.values import visible

_CATEGORIES = {
    "own": "its own code ran",
    "own_kernel": "it was in the system call {who}",
    "interrupt": "the interrupt {who}",
    "softirq": "the softirq {who}",
    "displaced": "waited for the CPU: {who} ran",
    "dispatch": "its CPU was idle and had yet to switch to it",
    "armed_later": "its timer was set to later",
    "held_off": "its timer was held off: {who} was in the kernel",
    "outside": "its timer was late while user code ran: hypervisor, firmware or an NMI",
    "timer_idle": "its timer was late on an idle CPU: idle exit, or outside Linux",
    "blocked": "waited until {who} woke it",
    "unknown": "unknown",
}
_ON_A_PATH = {
    "own": "{of}, on the message's path, ran its own code",
    "own_kernel": "the message's path was in the system call {who} of {of}",
    "blocked": "the message's path waited until {who} woke {of}",
}
_RELATIONS = {
    "above": "more urgent than it",
    "equal": "of its priority",
    "below": "less urgent: the kernel could not be pre-empted, or had not looked yet",
}

_CHOSEN = {
    Throttled.REAL_TIME: "throttling, or the reserve of normal threads",
    Throttled.DEADLINE: "the runtime of the deadline thread was used up",
}
_USED_UP = {
    Throttled.NORMAL: "the CPU time of its control group",
    Throttled.REAL_TIME: "the time of real-time threads",
    Throttled.DEADLINE: "its runtime as a deadline thread",
}
_SOFTIRQS = {
    "NET_RX": "packets that came",
    "NET_TX": "packets that were sent",
    "BLOCK": "a disk that was done",
    "TIMER": "the kernel's coarse timers",
    "RCU": "what the kernel frees",
    "SCHED": "threads moved between CPUs",
}


def words_of(key: Key, *, throttled: Throttled | None = None, lent_by: str | None = None) -> str:
    """A key as a person says it; ``throttled`` and ``lent_by``: as Segment has them."""
    said = _said(key, throttled)
    if lent_by is None:
        return said
    return f"{said}; {visible(lent_by)} had lent {visible(key.who or '')} its priority"


def _said(key: Key, throttled: Throttled | None) -> str:
    who = visible(key.who or "an unnamed one")
    if key.who in _SOFTIRQS and key.category in ("softirq", "blocked"):
        who = f"{'the softirq ' * (key.category == 'blocked')}{who} ({_SOFTIRQS[key.who]})"
    if key.of is not None:
        of = visible(key.of)
        if key.category in _ON_A_PATH:
            return _ON_A_PATH[key.category].format(who=who, of=of)
        return f"{of}, on the message's path: {_said(key._replace(of=None), throttled)}"
    if throttled and key.category == "dispatch":
        return f"its CPU was idle: it was throttled, {_USED_UP[throttled]} used up"
    said = _CATEGORIES[key.category].format(who=who)
    if throttled in _CHOSEN and key.relation == "below":
        return f"{said}, less urgent, but the kernel's choice: {_CHOSEN[throttled]}"
    return f"{said}, {_RELATIONS[key.relation]}" if key.relation else said


def words_of_cause(cause: Ranked) -> str:
    """A ranked cause, also the page faults, which cost the thread time without being its own code."""
    said = words_of(cause.key, throttled=cause.throttled, lent_by=cause.lent_by)
    return f"{said}, with {cause.faults:,} page faults" if cause.faulted else said
