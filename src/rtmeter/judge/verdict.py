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
    MORE_MISSED,
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
from rtmeter.results.words import digits_beside, round_us, share, share_between
from rtmeter.statistics.bounds import NS_PER_HOUR, beyond_the_horizon, further_releases, miss_ratio_bounds
from rtmeter.statistics.evidence import fewest_further, too_few_alone
from rtmeter.statistics.judged import JudgedRun, judged_run
from rtmeter.statistics.order import pieces
from rtmeter.statistics.quantities import Chunks, judged_quantity
from rtmeter.statistics.support import support_of
from rtmeter.statistics.views import LATER
from rtmeter.statistics.words import about

Bounds = tuple[float, float]
"""The lower and the upper bound of a miss ratio."""

EMULATED_CPU = GateFinding(
    "emulated_cpu",
    "emulated CPU",
    1.0,
    "info",
    "measured on a processor that is a program: how long anything took there says nothing of a machine",
)

ONE_RUN = "one_run"
"""The finding of which of several runs a return level is."""

SPREAD = "spread"
"""The finding of what the runs of a condition say together, where they differ or may."""


@dataclass(frozen=True, slots=True)
class Misses:
    """How many of n releases missed a deadline on the judged quantity, each counted once: ``late``,
    ``skipped`` and ``lost``. In a round trip a skipped release is no miss by itself but late, lost or
    in time with the next ping; without a later one it is lost (``unserved`` of the lost). ``between``: the
    fewest and the most misses, where data without single values do not tell."""

    quantity: str
    n: int
    late: int
    skipped: int
    lost: int
    unserved: int = 0
    between: tuple[int, int] | None = None

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
        deadline = f"the deadline of {round_us(deadline_ns)} us on {self.quantity}"
        if self.between:
            least, most = self.between
            return f"{least:,} to {most:,} of {self.n:,} releases missed {deadline}"
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
        unserved=found.unserved,
        lower=lower,
        upper=upper,
        more_samples=more,
        support=support,
        misses_between=found.between,
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
    refused = support.findings if support and _refusing(support.findings) else ()
    lower, upper = bounds or _bounds(found, requirement, support)
    if allowed is not None and lower > allowed:
        return MISSES_TOO_OFTEN
    if allowed is not None and beyond_the_horizon(found.total, found.n, allowed, requirement.horizon):
        return BEYOND_THE_HORIZON
    if refused and not too_few_alone(refused):
        return REFUSED
    if allowed is not None and found.total / found.n > allowed:
        return MORE_MISSED
    if refused:
        return TOO_FEW
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
    digits = 3 if allowed is None else digits_beside(allowed, lower, upper)
    asked = "" if allowed is None else f", and {share(allowed, digits)} is allowed"
    sure = f"with {_percent(requirement)} confidence the miss ratio is"
    refused = refusals(support.findings) if support else ""
    no_bound = f"no bound of the miss ratio is stated: {refused}"
    proof = f"{_level(requirement, support)}; " if requirement.criticality == "hard" else ""
    chance = f"{MORE_MISSED.said}, which may be chance"
    match row.key:
        case "nothing_measured":
            return "nothing was measured", fewest_further(0, 0, requirement, effect)
        case "none_allowed":
            hard = requirement.criticality == "hard"
            return "a hard deadline allows none" if hard else "none allowed", None
        case "no_level" | "level_too_high":
            return proof.removesuffix("; "), None
        case "misses_too_often" if refused:
            seen = f"the lower bound of the miss ratio is {share(lower, digits)}{asked}"
            return f"{seen}; no upper bound is stated: {refused}", None
        case "misses_too_often":
            return f"{sure} at least {share(lower, digits)}{asked}", None
        case "beyond_the_horizon":
            times = f"{requirement.horizon:g} times as many releases"
            ratio = share(found.total / (requirement.horizon * found.n))
            return f"even in {times} without a further miss that is {ratio}{asked}", None
        case "too_few":
            return f"{proof}{no_bound}", fewest_further(found.total, found.n, requirement, effect)
        case "refused":
            nothing = "" if found.total else "that says nothing of other runs, and "
            return f"{proof}{nothing if allowed is None else ''}{no_bound}", None
        case "meets":
            ratio = "" if proof and allowed is None else f"{sure} at most {share(upper, digits)}{asked}"
            return f"{proof}{ratio}".removesuffix("; "), None
        case "more_missed" if refused:
            said, more = f"{chance}; {no_bound}", fewest_further
        case "more_missed":
            said, more = f"{sure} {share_between(lower, upper, digits)}{asked}; {chance}", _more
        case _:
            said, more = f"{sure} {share_between(lower, upper, digits)}{asked}: {row.said}", _more
    return f"{proof}{said}", more(found.total, found.n, requirement, effect)


def _level(requirement: Requirement, support: Support | None) -> str:
    """What is extrapolated for a hard deadline."""
    no_proof = "measurement cannot prove that a hard deadline is never missed"
    level = support.return_level if support else None
    if level is None:
        return f"the order of the releases is not known, so nothing is extrapolated; {no_proof}"
    if level.upper_ns is None:
        return f"nothing is extrapolated: {refusals(level.findings)}; {no_proof}"
    extrapolated = (
        f"with {_percent(requirement)} confidence what is passed once in {about(level.hours * NS_PER_HOUR)} "
        f"is at most {about(level.upper_ns)}"
    )
    of = "".join(f", {finding.message}" for finding in level.findings if finding.type == ONE_RUN)
    beyond = "" if level.upper_ns <= requirement.deadline_ns else ", beyond the deadline"
    return f"{extrapolated}{beyond}{of}; {no_proof}"


def _notes(found: Misses, requirement: Requirement, support: Support | None) -> Iterator[str]:
    """What else there is to say of the misses and of the bound."""
    if support is None:
        return
    if found.total > 1 and support.clusters is not None and support.longest_run is not None:
        run = f", at most {support.longest_run:,} of them consecutive" if support.longest_run > 1 else ""
        clusters = "one cluster" if support.clusters == 1 else f"{support.clusters:,} clusters"
        yield f"the misses come in {clusters}{run}"
    if requirement.criticality == "soft" and support.largest_lateness_ns is not None:
        median_ns, most = support.median_lateness_ns, about(support.largest_lateness_ns)
        if median_ns is None:  # of several runs: it is in none of them
            yield f"the late ones come within {most} after the deadline"
        else:
            half = f"half of the late ones come within {about(median_ns)} after the deadline"
            yield f"{half}, all within {most}"
    bounded = support.upper is not None and (requirement.miss_ratio is not None or found.total == 0)
    spread = any(finding.type == SPREAD for finding in support.findings)  # then that says what n is worth
    if bounded and support.design_effect > 1 and not spread:
        single = "a single one" if support.effective_n < 1.5 else f"{support.effective_n:,.0f} single ones"
        worth = f"{found.n:,} releases say as much as {single}"
        yield f"the latest releases hang together: {worth}"


def _refusing(findings: tuple[GateFinding, ...]) -> list[GateFinding]:
    return [finding for finding in findings if finding.consequence == "refuse"]


def refusals(findings: tuple[GateFinding, ...]) -> str:
    """What refuses a bound, in words; empty if nothing does."""
    return "; ".join(finding.message for finding in _refusing(findings))


def _percent(requirement: Requirement) -> str:
    return f"{100 * requirement.confidence:.10g} %"


def _more(misses: int, n: int, requirement: Requirement, design_effect: float) -> int | None:
    assert requirement.miss_ratio is not None
    return further_releases(misses, n, requirement.miss_ratio, requirement.confidence, design_effect)
