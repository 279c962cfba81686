"""An explanation as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rtmeter.explain.causes import Cause, Explained, Explanation, Ranked
from rtmeter.explain.segments import Key, Segment


def explanation_json(explanation: Explanation, releases: Iterable[Explained]) -> dict[str, Any]:
    """Releases with their segments; the causes of all by the lateness they carry, most first."""
    return {
        "releases": [_release(each) for each in releases],
        "causes": [
            _key(row.key) | {"releases": row.releases, "lateness_ns": row.lateness_ns} | _beside(row)
            for row in explanation.causes
        ],
        "unknown_ns": explanation.unknown_ns,
    }


def _release(each: Explained) -> dict[str, Any]:
    cause = each.cause
    return {
        "k": each.release.k,
        "lateness_ns": each.release.lateness_ns,
        "segments": [
            {"start_ns": one.start_ns, "end_ns": one.end_ns} | _key(one.key) | _beside(one)
            for one in each.segments
        ],
        "cause": None if cause is None else _key(cause.key) | {"share": cause.share} | _beside(cause),
    }


def _key(key: Key) -> dict[str, Any]:
    of = {} if key.of is None else {"of": key.of}
    return {"category": key.category, "who": key.who, "relation": key.relation} | of


def _beside(one: Segment | Cause | Ranked) -> dict[str, Any]:
    """Whose priority was lent, and whether the thread was stopped; nothing where that was not."""
    lent = {} if one.lent_by is None else {"lent_by": one.lent_by}
    return lent | ({"stopped": True} if one.facts.stopped else {})
