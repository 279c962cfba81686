"""Threads of the middleware, in the measured process itself, that come before the measured thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rtmeter.machine.finding import Finding, Grade, Kind
from rtmeter.model import Measurement
from rtmeter.values import Scheduling

BESIDE = Kind(
    "middleware_thread_at_or_above",
    "high",
    "when a release comes while such a thread works, the measured thread waits: for one of its own priority "
    "until that sleeps, for one above it at any time",
    "sched(7); docs/middleware-threads.md",
    "measure with --apply after_init, with --child-threads below --scheduling, or with --child-cpus",
)

KINDS = (BESIDE,)

_FEW = 5
_KEYS = ("tid", "name", "policy", "priority", "cpus")


def check(measurement: Measurement, threads: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Those in a process's audit (spec/probe.md, ``threads``) that may run on the measured thread's CPUs.

    In a wake-up nothing waits for the middleware; elsewhere some of its threads may carry the messages or
    call the timers that are measured, and the grade is medium.
    """
    measured = [thread for thread in threads if thread.get("role") == "measured"]
    own = [thread for thread in threads if thread.get("role") == "middleware"]
    before = [thread for thread in own if any(_comes_before(thread, one) for one in measured)]
    if before:
        named = [f"{t.get('name')} ({t.get('tid')}, {Scheduling.from_probe(t)})" for t in before[:_FEW]]
        named += [f"{len(before) - _FEW} more"] if len(before) > _FEW else []
        items = tuple({key: thread.get(key) for key in _KEYS} for thread in before)
        grade: Grade = "high" if measurement == "wakeup" else "medium"
        yield BESIDE.found(f"{len(before)} threads: {', '.join(named)}", grade=grade, items=items)


def _comes_before(thread: Mapping[str, Any], measured: Mapping[str, Any]) -> bool:
    rank = max(1, Scheduling.from_probe(measured).rank)
    meet = set(thread.get("cpus") or ()) & set(measured.get("cpus") or ())
    return Scheduling.from_probe(thread).rank >= rank and bool(meet)
