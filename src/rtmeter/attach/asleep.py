"""What is told of a thread's sleeps."""

from __future__ import annotations

from dataclasses import dataclass

MESSAGE = "message"
"""What wakes a thread that no timer wakes."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """``asleep_ns``: its beginning; ``due_ns``: the expiry of the timer that ended it, None: something else
    did, at ``woken_ns``; ``wake_ns``: the return to the thread's own code. ``kind``: the system call, or
    whose timer it was; ``armed_ns``: when a timeout was armed for it. ``ran_ns``: how long the thread had
    been on a CPU at its beginning, and ``ran_at_wake_ns`` at its end. ``known``: what ended it, and when,
    is told; ``whole_before``: so is all that the thread did since the sleep before. ``within``: it did not
    sleep: a timer's signal came in the midst of its work, whose handler ran from ``wake_ns`` until
    ``asleep_ns``."""

    asleep_ns: int
    woken_ns: int
    wake_ns: int
    due_ns: int | None
    kind: str
    call: str | None
    ran_ns: int
    ran_at_wake_ns: int
    armed_ns: int | None = None
    known: bool = True
    whole_before: bool = True
    within: bool = False


@dataclass(frozen=True, slots=True)
class Waking:
    """``timer``: the expiry and the function of the one that fired there; ``known``: whether one did is."""

    at_ns: int
    timer: tuple[int, str] | None
    known: bool


@dataclass(frozen=True, slots=True)
class ThreadSleeps:
    """All sleeps of a thread in order (none of a Reader's); ``events``: how many concern it; ``priorities``
    that it had on a CPU; ``held_ups``: how often the kernel held it up within its work;
    ``switches``: how often it came on a CPU; ``left``: how often it went to sleep; ``inferred``: how often
    its waking was not told, but the only timer that could have ended the sleep was; ``ended``: the thread
    has ended, ``replaced``: by exec; ``first_ns`` and ``last_ns``: of the events that are known of it;
    ``others``: how often a timer went on by itself while another of its kind was under way."""

    sleeps: list[Sleep]
    events: int
    priorities: frozenset[int]
    held_ups: int
    switches: int
    left: int
    inferred: int
    ended: bool
    replaced: bool
    first_ns: int
    last_ns: int
    others: int = 0


@dataclass(frozen=True, slots=True)
class Rest:
    """What a thread was about when the recording ended, at ``end_ns``: ``sleep``, of whose end nothing is
    told, or, None, its work. ``woken``: from that sleep, but it has not come back; ``later``: it is to end by
    a timer that was not due yet; ``whole``: nothing was lost since the sleep before; ``handler``: of a
    signal, that ran in the midst of its work."""

    end_ns: int
    sleep: Sleep | None
    woken: bool
    later: bool
    whole: bool
    handler: Sleep | None = None
