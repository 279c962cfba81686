"""Does the probe describe itself validly?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rtmeter.model import TWO_ENDS
from rtmeter.selftest.adapter.check import Check, CheckOutcome, failed, passed
from rtmeter.selftest.adapter.running import CheckedProbe, ways

_TEXTS = ("name", "version", "middleware", "middleware_version")
_MEASURES = (
    "wakeup",
    "timer.one_shot",
    "timer.periodic",
    "roundtrip",
    "request",
    "cycle",
    "chain",
    "discovery",
)
_LISTS = {
    "drives": ("timer", "cycle"),
    "receives": ("roundtrip", "request", "cycle", "chain", "discovery"),
}
_VALUES = {
    "drives": ("spin", "sleep_then_spin_some", "poll"),
    "receives": ("spin", "spin_once", "listener", "poll", "call"),
}
_REMEDY = "mend describe: core/include/rtmeter/adapter.h lists its keys"


def checks(subject: CheckedProbe) -> Iterator[Check]:
    """Of what is known before the start."""
    yield Check("describe.before_start", lambda: _before(subject))
    yield Check("describe.after_start", lambda: _after(subject))


def _before(subject: CheckedProbe) -> CheckOutcome:
    wrong = list(_faults(subject))
    if wrong:
        return failed("; ".join(wrong), _REMEDY)
    facts = subject.facts
    return passed(f"{facts['middleware']} {facts['middleware_version']}, {', '.join(facts['measures'])}")


def _faults(subject: CheckedProbe) -> Iterator[str]:
    facts = subject.facts
    yield from (f"{key} is missing" for key in _TEXTS if not isinstance(facts.get(key), str))
    if facts.get("name") != subject.probe.name:
        yield f"it calls itself {facts.get('name')!r}, and its file {subject.probe.name!r}"
    wire = facts.get("wire", facts.get("name"))
    if not isinstance(wire, str) or not wire.strip():
        yield f"its wire is {wire!r}: name one, once, or leave it out"
    measures = facts.get("measures", [])
    if not measures:
        yield "measures names nothing"
    yield from (f"measures names {name!r}, which is none" for name in measures if name not in _MEASURES)
    kinds = {name.partition(".")[0] for name in measures}
    for key, of in _LISTS.items():
        lists: dict[str, Any] = facts.get(key, {})
        yield from (f"{key}.{kind}: there is no such measurement" for kind in lists if kind not in of)
        yield from (
            f"{key}.{kind}, but not in measures" for kind in lists if kind in of and kind not in kinds
        )
        for kind, names in lists.items():
            yield from (
                f"{key}.{kind} names {name!r}, which is none" for name in names if name not in _VALUES[key]
            )
    interfaces = facts.get("interfaces", [])
    if bool(interfaces) != ("request" in kinds) or not set(interfaces) <= {"service", "action"}:
        yield f"interfaces are {interfaces}: name service or action, or both, where measures names request"
    matches = facts.get("matches", [])
    if (matches and "discovery" not in kinds) or not set(matches) <= {"publisher", "subscriber"}:
        yield f"matches are {matches}: name publisher or subscriber, or both, where measures names discovery"
    for name, about in facts.get("option", {}).items():
        if not isinstance(about, str) or not about.strip():
            yield f"option.{name} does not say what it is"


def _after(subject: CheckedProbe) -> CheckOutcome:
    """What is known before stays true, and what is in effect comes to it."""
    way = ways(subject.facts)[-1]
    _, run = subject.complete(way.config)
    reported = run.until("ready", 0)["adapter"]
    changed = [key for key in _TEXTS if reported.get(key) != subject.facts.get(key)]
    if changed:
        return failed(f"once started it says otherwise of {', '.join(changed)}", _REMEDY)
    sends = way.measurement in (*TWO_ENDS, "cycle") and not subject.probe.scripted
    if sends and not isinstance(reported.get("qos"), dict):
        return failed(
            "it sends messages and names no quality of service in effect",
            "put qos.<policy> (reliability, history, depth) in describe, as the middleware reports it",
        )
    return passed(
        ", ".join(f"{key} = {value}" for key, value in reported.get("qos", {}).items()) or "no messages"
    )
