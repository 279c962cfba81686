"""What a verdict rests on besides the number of misses, from what the gates saw of a run."""

from __future__ import annotations

import numpy as np

from rtmeter.model import GateFinding, Requirement, ReturnLevel, Support
from rtmeter.statistics.bounds import (
    NS_PER_HOUR,
    expected_releases_needed,
    further_releases,
    hours,
    miss_ratio_bounds,
    per_hour,
)
from rtmeter.statistics.clusters import decluster, longest_run
from rtmeter.statistics.evidence import Evidence, fewest_further, too_few_alone
from rtmeter.statistics.extremes import MOST_FACTOR, extremes
from rtmeter.statistics.judged import JudgedRun
from rtmeter.statistics.views import LATER
from rtmeter.statistics.words import about


def support_of(
    run: JudgedRun, evidence: Evidence, requirement: Requirement, horizon_hours: float | None = None
) -> Support:
    """The support of a run of at least one release; the return level is that of ``horizon_hours``, or
    for the longest time that may be extrapolated to."""
    misses, n, effect = len(evidence.misses), evidence.n, evidence.design_effect
    bounds = None if evidence.refusals else miss_ratio_bounds(misses, n, requirement.confidence, effect)
    lower, upper = bounds or (None, None)
    more = expected = None
    allowed = requirement.miss_ratio
    if too_few_alone(evidence.findings) and requirement.criticality != "hard":
        more = fewest_further(misses, n, requirement, effect)
    if allowed is not None and upper is not None and upper > allowed:
        more = further_releases(misses, n, allowed, requirement.confidence, effect)
        total = expected_releases_needed(misses, n, allowed, requirement.confidence, effect)
        expected = None if total is None else total - n
    trend = evidence.drift.trend
    lateness = _lateness(run, evidence, requirement.deadline_ns)
    return Support(
        clusters=decluster(evidence.misses, max(1, evidence.dependence.clusters.run_length)).count,
        longest_run=longest_run(evidence.misses),
        median_lateness_ns=lateness[0],
        largest_lateness_ns=lateness[1],
        extremal_index=evidence.dependence.extremal_index,
        design_effect=effect,
        effective_n=evidence.effective_n,
        lower=lower,
        upper=upper,
        lower_per_hour=None if lower is None else per_hour(lower, run.period_ns),
        upper_per_hour=None if upper is None else per_hour(upper, run.period_ns),
        more_hours=None if more is None else hours(more, run.period_ns),
        expected_hours=None if expected is None else hours(expected, run.period_ns),
        growth=evidence.drift.growth,
        causes=evidence.drift.causes,
        slope_ns_per_s=trend.slope_ns_per_s if trend else None,
        slope_interval_ns_per_s=(trend.lower_ns_per_s, trend.upper_ns_per_s) if trend else None,
        accumulated_ns=trend.accumulated_ns if trend else None,
        rhythm_s=evidence.rhythm.period_s if evidence.rhythm else None,
        return_level=return_level(run, evidence, requirement, horizon_hours),
        findings=evidence.findings,
    )


def return_level(
    run: JudgedRun, evidence: Evidence, requirement: Requirement, horizon_hours: float | None = None
) -> ReturnLevel:
    """The level that the run passes once in that many hours; None: in the most that may be said. A hard
    deadline asks what lies beyond the run: once in a shorter time is refused."""
    length = hours(len(run.values), run.period_ns)
    asked = horizon_hours or MOST_FACTOR * length
    if requirement.criticality == "hard" and asked < length * (1 - 1e-9):
        message = (
            f"once in {about(asked * NS_PER_HOUR)} is shorter than the run of {about(length * NS_PER_HOUR)}, "
            "and a hard deadline asks what lies beyond it: ask for a longer time"
        )
        refusal = GateFinding("within_the_run", "factor", asked / length, "refuse", message)
        return ReturnLevel(asked, None, None, None, None, None, (refusal,))
    found = extremes(run.values, run.period_ns, asked, evidence, requirement.confidence)
    best = found.best
    if best is None or found.refusals:
        return ReturnLevel(asked, None, None, None, None, None, found.findings)
    return ReturnLevel(
        hours=asked,
        level_ns=best.level_ns,
        lower_ns=best.level_interval_ns[0],
        upper_ns=best.level_interval_ns[1],
        shape=best.shape,
        shape_interval=best.shape_interval,
        findings=found.findings,
    )


def _lateness(run: JudgedRun, evidence: Evidence, deadline_ns: int) -> tuple[float | None, float | None]:
    """Median and largest lateness beyond the deadline, of the releases that were late and not lost."""
    values = run.values[evidence.misses].astype(np.int64)
    late = values[(values > deadline_ns) & (values != LATER)] - deadline_ns
    return (float(np.median(late)), float(late.max())) if len(late) else (None, None)
