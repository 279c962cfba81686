"""The verdict of a cell: does it meet its requirement, and how sure is that?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rtmeter.judge.rule import (
    BEYOND_THE_HORIZON,
    LEVEL_TOO_HIGH,
    MEETS,
    MISSES_TOO_OFTEN,
    NO_LEVEL,
    NONE_ALLOWED,
    NOTHING_MEASURED,
    REFUSED,
    TOO_FEW,
    UNDECIDED,
    RuleRow,
)
from rtmeter.model import GateFinding, Requirement, Support, Verdict
from rtmeter.results.condition_words import EMULATED
from rtmeter.statistics.bounds import NS_PER_HOUR, beyond_the_horizon, further_releases, miss_ratio_bounds
from rtmeter.statistics.evidence import fewest_further, too_few_alone
from rtmeter.statistics.judged import JudgedRun, judged_run
from rtmeter.statistics.order import pieces
from rtmeter.statistics.quantities import Chunks, judged_quantity
from rtmeter.statistics.support import support_of
from rtmeter.statistics.views import LATER
from rtmeter.statistics.words import about
from rtmeter.values import format_duration

Bounds = tuple[float, float]
"""The lower and the upper bound of a miss ratio."""

EMULATED_CPU = GateFinding(
    "emulated_cpu",
    "emulated CPU",
    1.0,
    "info",
    "measured on a processor that is a program: how long anything took there says nothing of a machine",
)

SPREAD = "spread"
"""The finding of what the runs of a condition say together, where they differ or may."""


@dataclass(frozen=True, slots=True)
class Misses:
    """How many of n releases missed a deadline on the judged quantity, each counted once: ``late``,
    ``skipped`` and ``lost``. In a round trip a skipped release is no miss by itself but late, lost or
    in time with the next ping; without a later one it is lost (``unserved`` of the lost)."""

    quantity: str
    n: int
    late: int
    skipped: int
    lost: int
    unserved: int = 0

    @property
    def total(self) -> int:
        """All misses."""
        return self.late + self.skipped + self.lost

    def words(self, deadline_ns: int) -> str:
        """The misses as a clause, by kind."""
        kinds = {"late": self.late, "skipped": self.skipped, "lost": self.lost}
        found = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
        if self.unserved:
            which = "all" if self.unserved == self.lost else f"{self.unserved:,}"
            served = "it" if self.unserved == 1 else "them"
            of = "" if self.lost == 1 else f" {which} of them"
            found += f",{of} skipped with no later ping to serve {served}"
        deadline = f"the deadline of {format_duration(deadline_ns)} on {self.quantity}"
        missed = f"{self.total:,} of {self.n:,} releases missed {deadline}"
        return f"{missed} ({found})" if found else missed


def misses(run: JudgedRun, deadline_ns: int) -> Misses:
    """Counts the misses of a run."""
    n, late, skipped, lost, unserved = len(run.values), 0, 0, 0, 0
    start = 0
    for values in pieces(run.values):
        gone = values == LATER
        passed = np.zeros_like(gone)
        if run.skipped is not None:
            passed = run.skipped[start : start + len(values)]
        if run.skips_miss:
            skipped += int(np.count_nonzero(passed))
            gone &= ~passed
            late += int(np.count_nonzero((values > deadline_ns) & ~passed & ~gone))
        else:
            unserved += int(np.count_nonzero(gone & passed))
            late += int(np.count_nonzero((values > deadline_ns) & ~gone))
        lost += int(np.count_nonzero(gone))
        start += len(values)
    return Misses(run.quantity, n, late, skipped, lost, unserved)


def judge(
    meta: Mapping[str, Any],
    chunks: Chunks,
    requirement: Requirement,
    invalid: str | None = None,
    horizon_hours: float | None = None,
) -> Verdict:
    """The verdict of a cell by its samples; ``invalid`` says why they must not be judged, if so.

    ``meta`` and ``chunks`` as in ``summarise``; ``virtual_machine`` in meta is among the findings.
    ``horizon_hours``: once in how many the return level is passed (None: ten times the run).
    """
    if invalid is not None:
        return refuse(meta, requirement, invalid)
    kind = meta.get("virtual_machine")
    known = (EMULATED_CPU,) if kind == EMULATED else ()
    return judge_run(
        judged_run(meta, chunks), requirement, bool(kind) and not known, known, horizon_hours=horizon_hours
    )


def judge_run(
    run: JudgedRun,
    requirement: Requirement,
    virtual_machine: bool,
    known: tuple[GateFinding, ...] = (),
    horizon_hours: float | None = None,
) -> Verdict:
    """The verdict of a run in memory; ``known`` are findings that are not to be seen in it alone."""
    found = misses(run, requirement.deadline_ns)
    if found.n == 0:
        return judge_misses(found, requirement)
    evidence = run.examine(requirement.deadline_ns, virtual_machine=virtual_machine)
    evidence = replace(evidence, findings=(*known, *evidence.findings))
    return judge_misses(found, requirement, support_of(run, evidence, requirement, horizon_hours))


def refuse(meta: Mapping[str, Any], requirement: Requirement, reason: str) -> Verdict:
    """The verdict of a cell that failed or whose data are invalid: error."""
    return Verdict("error", reason, requirement, judged_quantity(meta).name, 0, 0, 0, 0, 0, None, None)


def judge_misses(
    found: Misses, requirement: Requirement, support: Support | None = None, bounds: Bounds | None = None
) -> Verdict:
    """The verdict by the number of misses and by what supports it, if anything does: the first row of
    ``rule.ROWS`` that holds.

    The ``bounds``, if none are given, are one-sided and exact (Clopper and Pearson, 1934), for as many
    releases as dependence leaves; where gates refuse them nothing passes.
    """
    lower, upper = miss_ratio_bounds(found.total, found.n, requirement.confidence)
    row = row_of(found, requirement, support, bounds)
    why, more = _why(row, found, requirement, support, bounds)
    notes = "".join(f"; {note}" for note in _notes(found, requirement, support))
    return Verdict(
        outcome=row.outcome,
        reason=f"{found.words(requirement.deadline_ns)}: {why}{notes}",
        requirement=requirement,
        quantity=found.quantity,
        n=found.n,
        misses=found.total,
        late=found.late,
        skipped=found.skipped,
        lost=found.lost,
        lower=lower,
        upper=upper,
        more_samples=more,
        support=support,
    )


def row_of(
    found: Misses, requirement: Requirement, support: Support | None, bounds: Bounds | None = None
) -> RuleRow:
    """The row of the rule that decides."""
    allowed, hard = requirement.miss_ratio, requirement.criticality == "hard"
    if found.n == 0:
        return NOTHING_MEASURED
    if found.total and (hard or allowed is None):
        return NONE_ALLOWED
    if hard:
        level = support.return_level if support else None
        if level is None or level.upper_ns is None:
            return NO_LEVEL
        if level.upper_ns > requirement.deadline_ns:
            return LEVEL_TOO_HIGH
    refused = bool(support and _refusing(support.findings))
    lower, upper = bounds or _bounds(found, requirement, support)
    if allowed is not None and lower > allowed:
        return MISSES_TOO_OFTEN
    if allowed is not None and beyond_the_horizon(found.total, found.n, allowed, requirement.horizon):
        return BEYOND_THE_HORIZON
    if support and refused:
        return TOO_FEW if too_few_alone(support.findings) else REFUSED
    return MEETS if allowed is None or upper <= allowed else UNDECIDED


def _bounds(found: Misses, requirement: Requirement, support: Support | None) -> Bounds:
    effect = support.design_effect if support else 1.0
    return miss_ratio_bounds(found.total, found.n, requirement.confidence, effect)


def _why(
    row: RuleRow, found: Misses, requirement: Requirement, support: Support | None, bounds: Bounds | None
) -> tuple[str, int | None]:
    """Why, in words, and the fewest further samples that would pass."""
    allowed, effect = requirement.miss_ratio, support.design_effect if support else 1.0
    lower, upper = bounds or _bounds(found, requirement, support)
    sure = f"with {_percent(requirement)} confidence the miss ratio is"
    refused = _refusals(support.findings) if support else ""
    no_bound = f"no bound of the miss ratio is stated: {refused}"
    proof = f"{_level(requirement, support)}; " if requirement.criticality == "hard" else ""
    match row.key:
        case "nothing_measured":
            return "nothing was measured", fewest_further(0, 0, requirement, effect)
        case "none_allowed":
            hard = requirement.criticality == "hard"
            return "a hard deadline allows none" if hard else "none allowed", None
        case "no_level" | "level_too_high":
            return proof.removesuffix("; "), None
        case "misses_too_often" if refused:
            seen = f"{found.total / found.n:.3g} of this run's releases missed, and {allowed:g} is allowed"
            return f"{seen}; {no_bound}", None
        case "misses_too_often":
            return f"{sure} at least {lower:.3g}, and {allowed:g} is allowed", None
        case "beyond_the_horizon":
            times = f"{requirement.horizon:g} times as many releases"
            ratio = f"{found.total / (requirement.horizon * found.n):.3g}"
            return f"even in {times} without a further miss that is {ratio}, and {allowed:g} is allowed", None
        case "too_few":
            further = fewest_further(found.total, found.n, requirement, effect)
            said = "more than 10^15" if further is None else f"{further:,}"
            passes = f"{said} further {_samples(further)}{_takes(support)}, all in time, would pass"
            return f"{proof}{no_bound}; {passes}", further
        case "refused":
            nothing = "" if found.total else "that says nothing of other runs, and "
            return f"{proof}{nothing if allowed is None else ''}{no_bound}", None
        case "meets":
            asked = "" if allowed is None else f", and {allowed:g} is allowed"
            ratio = "" if proof and allowed is None else f"{sure} at most {upper:.3g}{asked}"
            return f"{proof}{ratio}".removesuffix("; "), None
    further = _more(found, requirement, effect)
    said = "more than 10^15" if further is None else f"{further:,}"
    why = f"{sure} at most {upper:.3g} and at least {lower:.3g}, and {allowed:g} is allowed"
    return (
        f"{proof}{why}; {said} further {_samples(further)}{_takes(support)}, all in time, would pass",
        further,
    )


def _samples(count: int | None) -> str:
    return "sample" if count == 1 else "samples"


def _takes(support: Support | None) -> str:
    return f" ({about(support.more_hours * NS_PER_HOUR)})" if support and support.more_hours else ""


def _level(requirement: Requirement, support: Support | None) -> str:
    """What is extrapolated for a hard deadline."""
    no_proof = "measurement cannot prove that a hard deadline is never missed"
    level = support.return_level if support else None
    if level is None:
        return f"the order of the releases is not known, so nothing is extrapolated; {no_proof}"
    if level.upper_ns is None:
        return f"nothing is extrapolated: {_refusals(level.findings)}; {no_proof}"
    extrapolated = (
        f"with {_percent(requirement)} confidence what is passed once in {about(level.hours * NS_PER_HOUR)} "
        f"is at most {about(level.upper_ns)}"
    )
    beyond = "" if level.upper_ns <= requirement.deadline_ns else ", beyond the deadline"
    return f"{extrapolated}{beyond}; {no_proof}"


def _notes(found: Misses, requirement: Requirement, support: Support | None) -> Iterator[str]:
    """What else there is to say of the misses and of the bound."""
    if support is None:
        return
    if found.total > 1 and support.clusters is not None and support.longest_run is not None:
        run = f", at most {support.longest_run:,} of them consecutive" if support.longest_run > 1 else ""
        clusters = "one cluster" if support.clusters == 1 else f"{support.clusters:,} clusters"
        yield f"the misses come in {clusters}{run}"
    if requirement.criticality == "soft" and support.largest_lateness_ns is not None:
        half, most = about(support.median_lateness_ns or 0), about(support.largest_lateness_ns)
        yield f"half of the late ones come within {half} after the deadline, all within {most}"
    bounded = support.upper is not None and (requirement.miss_ratio is not None or found.total == 0)
    spread = any(finding.type == SPREAD for finding in support.findings)  # then that says what n is worth
    if bounded and support.design_effect > 1 and not spread:
        single = "a single one" if support.effective_n < 1.5 else f"{support.effective_n:,.0f} single ones"
        worth = f"{found.n:,} releases say as much as {single}"
        yield f"late releases hang together: {worth}"


def _refusing(findings: tuple[GateFinding, ...]) -> list[GateFinding]:
    return [finding for finding in findings if finding.consequence == "refuse"]


def _refusals(findings: tuple[GateFinding, ...]) -> str:
    return "; ".join(finding.message for finding in _refusing(findings))


def _percent(requirement: Requirement) -> str:
    return f"{100 * requirement.confidence:.10g} %"


def _more(found: Misses, requirement: Requirement, design_effect: float = 1.0) -> int | None:
    assert requirement.miss_ratio is not None
    return further_releases(
        found.total, found.n, requirement.miss_ratio, requirement.confidence, design_effect
    )
