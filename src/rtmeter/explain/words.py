"""What a key means, as a person says it."""

from __future__ import annotations

from rtmeter.explain.causes import Cause, Ranked
from rtmeter.explain.passed_over import Throttled
from rtmeter.explain.segments import Key, Segment
from rtmeter.explain.states import SOFTIRQ
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
_STOPPED = "was stopped, by a signal or a debugger, until {who} let it go on"
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


def words_of(key: Key) -> str:
    """A key as a person says it."""
    return _said(key, None)


def words_of_one(one: Segment | Cause | Ranked) -> str:
    """What is said of its key, with what the trace tells beside it."""
    said = _said(one.key, one.throttled, stopped=bool(one.facts.stopped))
    if one.lent_by is None:
        return said
    return f"{said}; {visible(one.lent_by)} had lent {visible(one.key.who or '')} its priority"


def _said(key: Key, throttled: Throttled | None, *, stopped: bool = False) -> str:
    who = visible(key.who or "an unnamed one")
    if key.who in _SOFTIRQS and SOFTIRQ in (key.category, key.ended_by):
        who = f"{who} ({_SOFTIRQS[key.who]})"
    if key.ended_by is not None:
        who = f"the {key.ended_by} {who}" if key.who else f"an unnamed {key.ended_by}"
    if key.category == "blocked" and stopped:
        whom = "it" if key.of is None else f"{visible(key.of)}, on the message's path,"
        return f"{whom} {_STOPPED.format(who=who)}"
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
    said = words_of_one(cause)
    return f"{said}, with {cause.faults:,} page faults" if cause.faulted else said
