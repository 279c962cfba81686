"""What a key means, as a person says it."""

from __future__ import annotations

from rtmeter.explain.segments import OF, WOKE, Key
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
_RELATIONS = {
    "above": "more urgent than it",
    "equal": "of its priority",
    "below": "less urgent: the kernel could not be pre-empted, or had not looked yet",
}


def words_of(key: Key) -> str:
    """A key as a person says it."""
    if key.category == "own" and key.who:
        return f"{visible(key.who)}, on the message's path, ran its own code"
    if key.category == "own_kernel" and OF in (key.who or ""):
        return f"the message's path was in the system call {visible(key.who or '')}"
    if key.category == "blocked" and WOKE in (key.who or ""):
        return f"the message's path waited until {visible(key.who or '')}"
    said = _CATEGORIES[key.category].format(who=visible(key.who or "an unnamed one"))
    return f"{said}, {_RELATIONS[key.relation]}" if key.relation else said
