"""What mends a cause: the finding of a check of the machine that explains it, else what the trace tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rtmeter.explain.causes import Ranked
from rtmeter.explain.facts import NONE, CauseFacts
from rtmeter.explain.passed_over import Throttled
from rtmeter.explain.segments import Key
from rtmeter.explain.threads import is_kernels
from rtmeter.judge.advice import advice
from rtmeter.results.record import CellRecord
from rtmeter.values import harmless

_URGENT = ("task_at_or_above", "kernel_thread_at_or_above", "middleware_thread_at_or_above", "normal_policy")
_LIST_THREADS = _URGENT[:3]
_NAMES_WHO = {*_LIST_THREADS, "irq_on_cpu"}
"""Findings that list whom they are of."""

_ALL_MAY_MEET = {"virtual_machine", "emulated_processor", "steal", "deep_idle_states"}
_REAL_TIME_MEET = {"preemption_model", "kernel_not_preempt_rt", "rt_throttling", "fair_server"}
"""Findings that are of every thread of the machine, and of every one of fifo or rr."""

_NORMAL, _AS_NORMAL_POLICY_MENDS = 100, 19
"""Priorities as events print them: from here on normal tasks'; and fifo:80, which no thread of that or more
leaves the CPU to."""

_SHARED = ", "
"""Between the devices of a shared interrupt, as /proc/interrupts has them."""

_POINTS_AT: dict[tuple[str, str | None], tuple[str, ...]] = {
    ("displaced", "above"): _URGENT,
    ("displaced", "equal"): _URGENT,
    ("displaced", "below"): ("normal_policy", "preemption_model", "kernel_not_preempt_rt"),
    ("held_off", None): ("kernel_not_preempt_rt",),
    ("outside", None): ("virtual_machine", "emulated_processor", "steal"),
    ("timer_idle", None): ("deep_idle_states", "virtual_machine"),
    ("dispatch", None): ("deep_idle_states", "virtual_machine"),
    ("interrupt", None): ("irq_on_cpu",),
    ("armed_later", None): ("normal_policy",),
}
"""Category and relation → the findings of `rtmeter check` that explain it, the likeliest first."""

_POINTS_AT_SOFTIRQ = {"SCHED": ("cpu_not_isolated",)}
"""The same of softirqs, by their name. Of packets no finding tells whether they came by a device."""

_POINTS_AT_THROTTLED: dict[tuple[str, Throttled], tuple[str, ...]] = {
    ("displaced", Throttled.REAL_TIME): ("rt_group_limit", "rt_throttling", "fair_server"),
    ("dispatch", Throttled.REAL_TIME): ("rt_group_limit", "rt_throttling"),
    ("dispatch", Throttled.NORMAL): ("cpu_quota",),
}
"""The same of a thread that was throttled. The runtime of a deadline thread is its own affair."""

_SLACK_NS = 100_000
"""A normal thread's timers have 50 us of slack: who is later set its timer so."""

_NO_IDLE_EXIT_NS = 1_000_000
"""No CPU takes so long to leave its idle state."""

_POINTS_AT_LONG_IDLE = ("cpu_quota", "virtual_machine")
"""Of a thread that waits so long for an idle CPU: others of its group may have used up the quota before it
was woken."""

_SHARE = "normal tasks share the CPU, whatever their nice values"
"""Why a less urgent one runs although the kernel could be pre-empted."""

_SAY_NOTHING = ("info", "unknown")


def finding_for(
    key: Key,
    findings: Iterable[Mapping[str, Any]],
    *,
    throttled: Throttled | None = None,
    lateness_ns: int = 0,
    facts: CauseFacts = NONE,
) -> Mapping[str, Any] | None:
    """The finding of a check of the machine that explains a cause; None if it found nothing of the kind, or
    found others of the kind. ``throttled`` and ``facts``: as Segment has them; ``lateness_ns``: of a release
    that it is the cause of. Of another thread on a message's path findings of the whole machine say
    something, those of the measured one not."""
    found = {finding["id"]: finding for finding in findings if finding["grade"] not in _SAY_NOTHING}
    is_real_time = facts.waiting is not None and facts.waiting < _NORMAL
    meets = _ALL_MAY_MEET | (_REAL_TIME_MEET if is_real_time else set())
    for one in _points_at(key, throttled, lateness_ns):
        if key.of is not None and one not in meets:
            continue
        priority = _NORMAL if facts.priority is None else facts.priority
        if one == "normal_policy" and priority <= _AS_NORMAL_POLICY_MENDS:
            continue
        if one in found and (one not in _NAMES_WHO or _names(found[one], key.who, facts.tid)):
            return found[one]
    return None


def _points_at(key: Key, throttled: Throttled | None, lateness_ns: int) -> tuple[str, ...]:
    if throttled is not None:
        return _POINTS_AT_THROTTLED.get((key.category, throttled), ())
    if key.category == "softirq":
        return _POINTS_AT_SOFTIRQ.get(key.who or "", ())
    if key.category == "armed_later" and lateness_ns > _SLACK_NS:
        return ()
    if key.category == "dispatch" and lateness_ns >= _NO_IDLE_EXIT_NS:
        return _POINTS_AT_LONG_IDLE
    return _POINTS_AT.get((key.category, key.relation), ())


def mends(cause: Ranked, record: CellRecord) -> str:
    """The finding of the machine's check that explains the cause, and the command that mends it; else what
    the trace tells that mends it. Empty if nothing is known."""
    findings = [dict(one) for one in record.findings or ()]
    each_ns, facts = cause.lateness_ns // max(cause.releases, 1), cause.facts
    throttled = cause.throttled
    finding = finding_for(cause.key, findings, throttled=throttled, lateness_ns=each_ns, facts=facts)
    cpus, ours = record.machine.get("cpus_online") or 1, record.measurement == "wakeup"
    said = advice(cause, cpus, virtual=record.virtual_machine, ours=ours)
    if finding is None:
        return str(harmless(f"; {said}")) if said else ""
    fix = finding.get("fix") or ""
    if finding["id"] in _LIST_THREADS and not (fix and _is_of(fix, facts.tid)):
        fix = said or ""
    fix = f": {fix}" if fix else ""
    why = f" ({_SHARE})" if (finding["id"], cause.key.relation) == ("normal_policy", "below") else ""
    return str(harmless(f"; see {finding['id']}{why}{fix}"))


def mends_of_trace(cause: Ranked, cpus: int) -> str:
    """The same, of a trace without a cell; ``cpus``: how many the machine has at least."""
    said = advice(cause, cpus, virtual=False)
    return str(harmless(f"; {said}")) if said else ""


def _names(finding: Mapping[str, Any], who: str | None, tid: int | None) -> bool:
    """Whether the finding is of that thread or interrupt; others may have its name."""
    name = who[1:-1] if who and is_kernels(who) else who
    items = [item for item in finding["items"] if None in (tid, item.get("tid")) or item["tid"] == tid]
    names = [str(item.get("name")) for item in items]
    return any(name in (one, *one.split(_SHARED)) for one in names)


def _is_of(fix: str, tid: int | None) -> bool:
    """Whether the command of a finding that lists threads is of this one, too; one without ids is of all."""
    named = re.findall("[0-9]+", fix)
    return tid is None or not named or str(tid) in named
