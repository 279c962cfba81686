"""What to do where a verdict is inconclusive and no length of run helps: what refuses it, removed."""

from __future__ import annotations

from collections.abc import Mapping

from rtmeter.judge.rule import LEVEL_TOO_HIGH, NO_LEVEL, REFUSED
from rtmeter.model import Verdict

_WHILE_LATER = "find out what the machine did while releases were later (the plot over time), end it"

_MENDED_BY: Mapping[str, str] = {
    "change_point": _WHILE_LATER,
    "stationarity": _WHILE_LATER,
    "drift": "find out why the delay grows, and mend that",
    "overload": "give the loop less to do, or a longer period",
    "unlike": "give all repeats the same settings",
}
"""By the type of what a gate found."""


def mend(verdict: Verdict, *, others: bool) -> str:
    """The step after an inconclusive verdict that asks for no further samples. ``others``: whether others
    took much of the machine meanwhile."""
    if others:
        return "free the machine of others' work, and measure anew: no length of run helps before."
    support = verdict.support
    refusing = [f.type for f in support.findings if f.consequence == "refuse"] if support else []
    if verdict.requirement.criticality == "hard" and not refusing:
        level = support.return_level if support else None
        stated = level is not None and level.upper_ns is not None
        return f"{(LEVEL_TOO_HIGH if stated else NO_LEVEL).do}."
    known = [_MENDED_BY[kind] for kind in refusing if kind in _MENDED_BY]
    return f"{known[0]}, and measure anew: no length of run helps before." if known else f"{REFUSED.do}."
