"""An explanation as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rtmeter.explain.causes import Cause, Explained, Explanation, Ranked
from rtmeter.explain.events import SOFTIRQS
from rtmeter.explain.messages import CPUS_OWN
from rtmeter.explain.segments import Key, Segment
from rtmeter.explain.states import INTERRUPT, SOFTIRQ

_Kinds = Mapping[str, set[str]]
"""Which of threads, interrupts and softirqs have a name."""


def explanation_json(explanation: Explanation, releases: Iterable[Explained]) -> dict[str, Any]:
    """Releases with their segments; the causes of all by the lateness they carry, most first."""
    kinds = _kinds(one.key for each in explanation.releases for one in each.segments)
    return {
        "releases": [_release(each, kinds) for each in releases],
        "causes": [
            _key(row.key, kinds) | {"releases": row.releases, "lateness_ns": row.lateness_ns} | _beside(row)
            for row in explanation.causes
        ],
        "unknown_ns": explanation.unknown_ns,
    }


def _kinds(keys: Iterable[Key]) -> _Kinds:
    """Of the names of all keys, and of those that the kernel has on every machine."""
    found = {name: {SOFTIRQ} for name in SOFTIRQS}
    found |= {name: {INTERRUPT} for name in CPUS_OWN}
    for key in keys:
        if key.who is not None and key.category != "own_kernel":
            found.setdefault(key.who, set()).add(_kind(key))
    return found


def _kind(key: Key) -> str:
    return key.category if key.category in (INTERRUPT, SOFTIRQ) else key.ended_by or "thread"


def _release(each: Explained, kinds: _Kinds) -> dict[str, Any]:
    cause = each.cause
    return {
        "k": each.release.k,
        "lateness_ns": each.release.lateness_ns,
        "segments": [
            {"start_ns": one.start_ns, "end_ns": one.end_ns} | _key(one.key, kinds) | _beside(one)
            for one in each.segments
        ],
        "cause": None if cause is None else _key(cause.key, kinds) | {"share": cause.share} | _beside(cause),
    }


def _key(key: Key, kinds: _Kinds) -> dict[str, Any]:
    """``ended_by``: what ended a wait, where its name does not tell."""
    of = {} if key.of is None else {"of": key.of}
    ambiguous = key.category == "blocked" and len(kinds.get(key.who or "", ())) > 1
    ended_by = {"ended_by": _kind(key)} if ambiguous else {}
    return {"category": key.category, "who": key.who, "relation": key.relation} | of | ended_by


def _beside(one: Segment | Cause | Ranked) -> dict[str, Any]:
    """Whose priority was lent, and whether the thread was stopped; nothing where that was not."""
    lent = {} if one.lent_by is None else {"lent_by": one.lent_by}
    return lent | ({"stopped": True} if one.facts.stopped else {})
