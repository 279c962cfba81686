"""The verdict of a group of many rigs: dependence within each run, spread between a rig's runs, and spread
between rigs. A fleet is not one long run: what is judged is the ratio of rigs like these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rtmeter.model import Requirement
from rtmeter.results.words import share
from rtmeter.statistics.bounds import beyond_the_horizon
from rtmeter.statistics.joint import RunMisses, joint


@dataclass(frozen=True, slots=True)
class FleetVerdict:
    """``lower`` and ``upper``: the bounds of the miss ratio (None: refused, or nothing was judged)."""

    outcome: Literal["pass", "fail", "inconclusive"]
    reason: str
    n: int
    misses: int
    lower: float | None
    upper: float | None


def judge_fleet(
    rigs: Mapping[str, Sequence[RunMisses]],
    asked: Requirement,
    refused: int = 0,
    unjudged: int = 0,
    unasked: int = 0,
) -> FleetVerdict:
    """By the runs of each rig; ``refused``: how many of them no bound holds of, ``unjudged``: cells that
    could not be judged at all, ``unasked``: cells that have no requirement."""
    each = [one for runs in rigs.values() if (one := as_one(runs, asked.confidence)).n]
    of = len(each)
    if of == 1:  # its runs are repeats: room is made for what few of them do not show
        each = [run for runs in rigs.values() for run in runs if run.n]
    n, misses = sum(one.n for one in each), int(sum(one.misses for one in each))
    if not n:
        return FleetVerdict("inconclusive", "nothing was judged", 0, 0, None, None)
    found = joint(each, asked.confidence)
    upper = None if refused else found.upper
    seen = f"{misses:,} of {n:,} releases of {of:,} rig{'s' * (of != 1)} missed"
    allowed = asked.miss_ratio
    if misses and (allowed is None or asked.criticality == "hard"):
        return FleetVerdict("fail", f"{seen}: none allowed", n, misses, found.lower, upper)
    if allowed is not None and (
        found.lower > allowed or beyond_the_horizon(misses, n, allowed, asked.horizon)
    ):
        why = f"at least {share(found.lower)}" if found.lower > allowed else f"{share(misses / n)} seen"
        said = f"{seen}: {why}, {share(allowed)} is allowed"
        return FleetVerdict("fail", said, n, misses, found.lower, upper)
    if asked.criticality == "hard":
        return FleetVerdict(
            "inconclusive", f"{seen}: hard deadlines are judged run by run", n, misses, None, None
        )
    if refused or unjudged or unasked:
        left = [f"of {refused:,} run{'s' * (refused != 1)} no bound holds"] * bool(refused)
        left += [f"{unjudged:,} cell{'s' * (unjudged != 1)} could not be judged"] * bool(unjudged)
        have = "has" if unasked == 1 else "have"
        left += [f"{unasked:,} cell{'s' * (unasked != 1)} {have} no requirement"] * bool(unasked)
        return FleetVerdict("inconclusive", f"{seen}: {', '.join(left)}", n, misses, None, None)
    if allowed is None:
        return FleetVerdict("pass", seen, n, misses, found.lower, found.upper)
    said = f"{seen}: at most {share(found.upper)}, {share(allowed)} is allowed"
    outcome: Literal["pass", "inconclusive"] = "pass" if found.upper <= allowed else "inconclusive"
    return FleetVerdict(outcome, said, n, misses, found.lower, found.upper)


def as_one(runs: Sequence[RunMisses], confidence: float) -> RunMisses:
    """The runs of a rig as one: what their misses vary by, by dependence within them or by how far they lie
    apart, whichever is more."""
    counted = [run for run in runs if run.n]
    if not counted:
        return RunMisses(0, 0, 1.0)
    if len(counted) == 1:
        return counted[0]
    found = joint(counted, confidence)
    return RunMisses(found.n, found.misses, max(1.0, found.within, found.dispersion))
