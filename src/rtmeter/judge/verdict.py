"""The verdict of a cell: does it meet its requirement, and how sure is that?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rtmeter.model import GateFinding, Requirement, Support, Verdict
from rtmeter.statistics.bounds import NS_PER_HOUR, further_releases, miss_ratio_bounds
from rtmeter.statistics.judged import JudgedRun, judged_run
from rtmeter.statistics.order import pieces
from rtmeter.statistics.quantities import judged_quantity
from rtmeter.statistics.summary import Chunks
from rtmeter.statistics.support import support_of
from rtmeter.statistics.views import LATER
from rtmeter.statistics.words import about
from rtmeter.values import format_duration

Decided = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Misses:
    """How many of n releases missed a deadline on the judged quantity, each counted once: ``late``,
    ``skipped`` and ``lost``. In a round trip a skipped release is no miss by itself but late, lost or
    in time with the next ping."""

    quantity: str
    n: int
    late: int
    skipped: int
    lost: int

    @property
    def total(self) -> int:
        """All misses."""
        return self.late + self.skipped + self.lost

    def words(self, deadline_ns: int) -> str:
        """The misses as a clause, by kind."""
        kinds = {"late": self.late, "skipped": self.skipped, "lost": self.lost}
        found = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
        deadline = f"the deadline of {format_duration(deadline_ns)} on {self.quantity}"
        missed = f"{self.total:,} of {self.n:,} releases missed {deadline}"
        return f"{missed} ({found})" if found else missed


def misses(run: JudgedRun, deadline_ns: int) -> Misses:
    """Counts the misses of a run."""
    n, late, skipped, lost = len(run.values), 0, 0, 0
    start = 0
    for values in pieces(run.values):
        over = values > deadline_ns
        if run.skipped is not None and run.skips_miss:
            passed_over = run.skipped[start : start + len(values)]
            skipped += int(np.count_nonzero(passed_over))
            over &= ~passed_over
        gone = int(np.count_nonzero(values == LATER))
        late += int(np.count_nonzero(over)) - gone
        lost += gone
        start += len(values)
    return Misses(run.quantity, n, late, skipped, lost)


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
    virtual_machine = bool(meta.get("virtual_machine"))
    return judge_run(judged_run(meta, chunks), requirement, virtual_machine, horizon_hours=horizon_hours)


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


def judge_misses(found: Misses, requirement: Requirement, support: Support | None = None) -> Verdict:
    """The verdict by the number of misses and by what supports it, if anything does.

    With a miss ratio P: pass if the upper bound is at most P, fail if the lower bound is above P, else
    inconclusive. Without: any miss fails. The bounds are one-sided and exact (Clopper and Pearson, 1934),
    for as many releases as dependence leaves; where gates refuse them nothing passes.
    """
    lower, upper = miss_ratio_bounds(found.total, found.n, requirement.confidence)
    outcome, why, more = _outcome(found, requirement, support)
    notes = "".join(f"; {note}" for note in _notes(found, requirement, support))
    return Verdict(
        outcome=outcome,
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


def _outcome(
    found: Misses, requirement: Requirement, support: Support | None
) -> tuple[Decided, str, int | None]:
    """The outcome, why, and the fewest further samples that would pass."""
    allowed, effect = requirement.miss_ratio, support.design_effect if support else 1.0
    if found.n == 0:
        return "inconclusive", "nothing was measured", 1 if allowed is None else _more(found, requirement)
    if requirement.criticality == "hard":
        outcome, why = _hard(found, requirement, support)
        if outcome != "pass" or allowed is None:
            return outcome, why, None
        tolerated = replace(requirement, criticality="firm")  # what a hard deadline is besides
        outcome, ratio, more = _outcome(found, tolerated, support)
        return outcome, f"{why}; {ratio}", more
    lower, upper = miss_ratio_bounds(found.total, found.n, requirement.confidence, effect)
    sure = f"with {_percent(requirement)} confidence the miss ratio is"
    refused = _refusals(support.findings) if support else ""
    no_bound = f"no bound of the miss ratio is stated: {refused}"
    if allowed is None:
        if found.total:
            return "fail", "none is allowed", None
        if refused:
            return "inconclusive", f"that says nothing of other runs, and {no_bound}", None
        return "pass", f"{sure} at most {upper:.3g}", None
    if lower > allowed and refused:
        seen = f"{found.total / found.n:.3g} of this run's releases missed, and {allowed:g} is allowed"
        return "fail", f"{seen}; {no_bound}", None
    if lower > allowed:
        return "fail", f"{sure} at least {lower:.3g}, and {allowed:g} is allowed", None
    if refused:
        return "inconclusive", no_bound, None
    if upper <= allowed:
        return "pass", f"{sure} at most {upper:.3g}, and {allowed:g} is allowed", None
    more = _more(found, requirement, effect)
    further = "more than 10^15" if more is None else f"{more:,}"
    takes = f" ({about(support.more_hours * NS_PER_HOUR)})" if support and support.more_hours else ""
    why = f"{sure} at most {upper:.3g} and at least {lower:.3g}, and {allowed:g} is allowed"
    return "inconclusive", f"{why}; {further} further samples{takes}, all in time, would pass", more


def _hard(found: Misses, requirement: Requirement, support: Support | None) -> tuple[Decided, str]:
    """A hard deadline: no miss is seen, and what is extrapolated stays below it."""
    no_proof = "measurement cannot prove that a hard deadline is never missed"
    if found.total:
        return "fail", "a hard deadline allows none"
    level = support.return_level if support else None
    if level is None:
        return (
            "inconclusive",
            f"the order of the releases is not known, so nothing is extrapolated; {no_proof}",
        )
    if level.upper_ns is None:
        return "inconclusive", f"nothing is extrapolated: {_refusals(level.findings)}; {no_proof}"
    extrapolated = (
        f"with {_percent(requirement)} confidence what is passed once in {about(level.hours * NS_PER_HOUR)} "
        f"is at most {about(level.upper_ns)}"
    )
    if level.upper_ns <= requirement.deadline_ns:
        return "pass", f"{extrapolated}; {no_proof}"
    return "inconclusive", f"{extrapolated}, beyond the deadline; {no_proof}"


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
    if bounded and support.design_effect > 1:
        single = "a single one" if support.effective_n < 1.5 else f"{support.effective_n:,.0f} single ones"
        worth = f"{found.n:,} releases say as much as {single}"
        yield f"late releases hang together: {worth}"


def _refusals(findings: tuple[GateFinding, ...]) -> str:
    return "; ".join(finding.message for finding in findings if finding.consequence == "refuse")


def _percent(requirement: Requirement) -> str:
    return f"{100 * requirement.confidence:.10g} %"


def _more(found: Misses, requirement: Requirement, design_effect: float = 1.0) -> int | None:
    assert requirement.miss_ratio is not None
    return further_releases(
        found.total, found.n, requirement.miss_ratio, requirement.confidence, design_effect
    )
