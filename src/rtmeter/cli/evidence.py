"""A verdict's evidence in words and numbers: what its outcome rests on, and what would decide it."""

from __future__ import annotations

from collections.abc import Iterator

from rtmeter.judge.points import line_and_points
from rtmeter.model import ReturnLevel, Support, Verdict
from rtmeter.statistics.bounds import NS_PER_HOUR
from rtmeter.statistics.extremes import FEWEST_RELEASES
from rtmeter.statistics.words import about

Words = Iterator[tuple[str, str]]
"""(what, what is said of it)"""


def verdict_lines(verdict: Verdict, worst_ns: float | str | None, *, others: bool = False) -> list[str]:
    """A verdict: its line, outcome apart, then why, a point each, and the evidence, aligned. ``others``:
    whether others took much of the machine meanwhile."""
    line, points = line_and_points(verdict, worst_ns)
    because = [f"  {'' if number else 'because':<17}{point}" for number, point in enumerate(points)]
    return [line, *because, *_evidence(verdict, others)]


def _evidence(verdict: Verdict, others: bool) -> list[str]:
    """None if there is none."""
    if not verdict.n or verdict.support is None:
        return []
    support = verdict.support
    said = [*_of_misses(verdict, support), *_of_the_run(support), *_of_what_decides(verdict, support, others)]
    return [f"  {what:<17}{words}" for what, words in said]


def _of_misses(verdict: Verdict, support: Support) -> Words:
    sure = f"{100 * verdict.requirement.confidence:.10g} %"
    together = ""
    if verdict.misses and support.clusters is not None and support.longest_run is not None:
        clusters = f"{support.clusters:,} cluster{'' if support.clusters == 1 else 's'}"
        together = f" in {clusters}, longest run of consecutive misses {support.longest_run:,}"
    yield "misses", f"{verdict.missed}{together}"
    if support.median_lateness_ns is not None and support.largest_lateness_ns is not None:
        median, most = about(support.median_lateness_ns), about(support.largest_lateness_ns)
        yield "late by", f"{median} in the median, {most} at most"
    index = support.extremal_index
    theta = "not known: too few exceedances" if index is None else f"{index:.2f}"
    effect = f"extremal index {theta}, design effect {support.design_effect:.1f}"
    if support.clusters is None:
        effect = "taken as independent: their order is not known"
    yield "releases", f"n {verdict.n:,}, effective n {support.effective_n:,.0f} ({effect})"
    if support.lower is None or support.upper is None:
        yield "miss ratio", "no bound: see what refuses it below"
        return
    each = " each" if support.lower else ""
    yield "miss ratio", f"{_between(support.lower, support.upper)}, {sure} confidence{each}"
    if support.lower_per_hour is not None and support.upper_per_hour is not None:
        yield "misses an hour", _between(support.lower_per_hour, support.upper_per_hour)


def _between(lower: float, upper: float) -> str:
    least, most = (f"{end:,.0f}" if end >= 100 else f"{end:.3g}" for end in (lower, upper))
    return f"at least {least}, at most {most}" if lower else f"at most {most}"


def _of_the_run(support: Support) -> Words:
    level = support.return_level
    if level is not None:
        yield "return level", _level(level)
    slope, interval = support.slope_ns_per_s, support.slope_interval_ns_per_s
    grown = ""
    if slope is not None and interval is not None and support.accumulated_ns is not None:
        low, high = (f"{end / 1e3:.3g}" for end in interval)
        total = about(support.accumulated_ns)
        grown = f", {slope / 1e3:+.3g} us/s [{low}, {high}], {total} over the run"
    fitting = [cause.replace("_", " ") for cause in support.causes]
    causes = f", as by {' or '.join(fitting)}" if fitting else ""
    if slope is None and support.growth == "bounded":
        yield "delay", "not looked at: too few releases were served to see it grow"
    else:
        yield "delay", f"{support.growth}{grown}{causes}"
    for finding in support.findings:
        yield (
            finding.type.replace("_", " "),
            f"{finding.message} ({_CONSEQUENCES[finding.consequence]})",
        )


_CONSEQUENCES = {
    "info": "no effect on the bound",
    "deflate": "the bound is widened",
    "refuse": "no bound is stated",
}


def _level(level: ReturnLevel) -> str:
    once = f"once in {about(level.hours * NS_PER_HOUR)}"
    if level.level_ns is None or level.lower_ns is None or level.upper_ns is None:
        refusals = [f.message for f in level.findings if f.consequence == "refuse"]
        return f"{once}: not stated: {'; '.join(refusals)}"
    ends = f"[{about(level.lower_ns)}, {about(level.upper_ns)}]"
    shape = "" if level.shape is None else f", shape {level.shape:.2f}"
    heavy = "".join(f"; {f.message}" for f in level.findings if f.type == "heavy_tail")
    return f"{once}: {about(level.level_ns)} {ends}{shape}{heavy}"


def _of_what_decides(verdict: Verdict, support: Support, others: bool) -> Words:
    """How much longer to measure; without a bound no length decides."""
    if verdict.outcome != "inconclusive":
        return
    if support.more_hours is not None:
        yield "to pass", f"{_hours(support.more_hours)} more without a miss"
        expected = support.expected_hours
        if verdict.misses and expected is not None:
            yield "", f"{_hours(expected)} more if releases go on to miss as often"
        elif verdict.misses:
            yield "", "if releases go on to miss as often, no length passes"
    elif support.upper is None and verdict.more_samples:
        yield "to pass", f"{verdict.more_samples:,} more releases without a miss"
    elif support.upper is None:
        first = "free the machine of others' work" if others else "mend first what refuses the bound"
        yield "to pass", f"no length decides: {first}, then measure anew"
    elif verdict.requirement.criticality == "hard" and verdict.n < FEWEST_RELEASES:
        yield "to pass", f"{FEWEST_RELEASES - verdict.n:,} more releases at least, for the extremes"
    elif verdict.requirement.criticality == "hard":
        level = support.return_level
        if level is not None and level.level_ns is None:
            yield "to pass", "mend first what refuses the return level"
            return
        yield "to pass", "no length decides: a bound of the latest release has to come below the deadline"


def _hours(hours: float) -> str:
    return about(hours * NS_PER_HOUR)
