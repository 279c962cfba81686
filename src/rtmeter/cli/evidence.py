"""A verdict's evidence in words and numbers: what its outcome rests on, and what would decide it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rtmeter.judge.next_step import SLOPE
from rtmeter.judge.points import line_and_points
from rtmeter.judge.verdict import ONE_RUN, SPREAD
from rtmeter.model import ReturnLevel, Support, Verdict
from rtmeter.results.words import TELLING, share_between
from rtmeter.statistics.bounds import NS_PER_HOUR
from rtmeter.statistics.words import about

Words = Iterator[tuple[str, str]]
"""(what, what is said of it)"""


def verdict_lines(
    verdict: Verdict, worst_ns: float | str | None, step: str | None = None, runs: int = 1
) -> list[str]:
    """A verdict: its line, outcome apart, then why, a point each, the ``step`` to take, and the evidence,
    aligned; nothing twice. ``runs``: of how many it is."""
    line, points = line_and_points(verdict, worst_ns)
    said = [("" if number else "because", point) for number, point in enumerate(points)]
    said += [("next", step)] if step else []
    if verdict.n and (support := verdict.support):
        said += [*_of_misses(verdict, support), *_of_the_run(verdict, support, worst_ns, runs)]
    return [line, *(f"  {what:<17}{words}" for what, words in said)]


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
    apart = any(finding.type == SPREAD for finding in support.findings)  # the lower bound has its own
    bound = " of the upper bound, with how far runs differ" if apart else ""
    effect = f"extremal index {theta}, design effect {support.design_effect:.1f}{bound}"
    if support.clusters is None:
        effect = "taken as independent: their order is not known"
    yield "releases", f"n {verdict.n:,}, effective n {support.effective_n:,.0f} ({effect})"
    if support.lower is None or support.upper is None:
        yield "miss ratio", "no bound: see what refuses it"
        return
    ratio = share_between(support.lower, support.upper)
    yield "miss ratio", f"{ratio}, {sure} confidence{' each' if ratio.startswith('at least') else ''}"
    if support.lower_per_hour is not None and support.upper_per_hour is not None:
        yield "misses an hour", _between(support.lower_per_hour, support.upper_per_hour)


def _between(lower: float, upper: float) -> str:
    least, most = (f"{end:,.0f}" if end >= 100 else f"{end:.3g}" for end in (lower, upper))
    return f"at least {least}, at most {most}" if lower > TELLING * upper else f"at most {most}"


def _of_the_run(verdict: Verdict, support: Support, worst_ns: float | str | None, runs: int) -> Words:
    if support.return_level is not None:
        reached_ns = math.inf if isinstance(worst_ns, str) else worst_ns or 0.0
        an_hour = (support.upper_per_hour or 0.0) / (support.upper or 1.0)
        run_hours = verdict.n / runs / an_hour if an_hour else 0.0
        yield "return level", _level(support.return_level, verdict, support, reached_ns, run_hours)
    yield "delay", _delay(verdict, support, runs)
    yield from found_besides(verdict)


def found_besides(verdict: Verdict) -> Words:
    """What the gates found that the reason does not say, and what follows for the bound."""
    for finding in verdict.support.findings if verdict.support else ():
        if finding.message not in verdict.reason:
            follows = _CONSEQUENCES[finding.consequence]
            yield finding.type.replace("_", " "), f"{finding.message} ({follows})"


def _delay(verdict: Verdict, support: Support, runs: int) -> str:
    """What became of the delay, with its slope where so many releases tell it."""
    slope, interval = support.slope_ns_per_s, support.slope_interval_ns_per_s
    if slope is None or interval is None or (total := support.accumulated_ns) is None:
        why = {
            "bounded": "not looked at: too few releases were served to see it grow",
            "unknown": "not looked at: the order of the releases is not known",
        }
        return why.get(support.growth, support.growth)
    growth = support.growth
    if growth == "bounded" and any(finding.statistic == SLOPE for finding in support.findings):
        growth = "rising" if slope > 0 else "falling"
    fitting = [cause.replace("_", " ") for cause in support.causes]
    causes = f", as by {' or '.join(fitting)}" if fitting else ""
    low, high = interval
    reach_ns = max(-low, high) * abs(total / slope) if slope else 0.0
    if not causes and low <= 0 <= high and reach_ns > verdict.requirement.deadline_ns:
        return f"{growth}; its slope cannot be told"
    each = "" if runs == 1 else ", where it changes most"
    grown = f"{slope / 1e3:+.3g} us/s [{low / 1e3:.3g}, {high / 1e3:.3g}], {about(total)} over the run{each}"
    return f"{growth}, {grown}{causes}"


_CONSEQUENCES = {
    "info": "no effect on the bound",
    "deflate": "the bound is widened",
    "refuse": "no bound is stated",
}


def _level(
    level: ReturnLevel, verdict: Verdict, support: Support, reached_ns: float, run_hours: float
) -> str:
    """What is passed once in so long, or why that is not stated, each reason once; of a run of so many hours
    that reached so much."""
    once = f"once in {about(level.hours * NS_PER_HOUR)}"
    if level.level_ns is None or level.lower_ns is None or level.upper_ns is None:
        refusing = {f.type for f in support.findings if f.consequence == "refuse"}
        own = [f.message for f in level.findings if f.consequence == "refuse" and f.type not in refusing]
        if any(message in verdict.reason for message in own):
            return f"{once}: not stated: see above"
        return f"{once}: not stated: {'; '.join(own) or 'what refuses the bound refuses it too'}"
    more = "".join(f"; {f.message}" for f in level.findings if f.type in ("heavy_tail", ONE_RUN))
    if reached_ns > level.level_ns and level.hours >= run_hours:
        return f"{once}: at most {about(level.upper_ns)}; the run itself reached more than is likeliest{more}"
    ends = f"[{about(level.lower_ns)}, {about(level.upper_ns)}]"
    shape = "" if level.shape is None else f", shape {level.shape:.2f}"
    return f"{once}: {about(level.level_ns)} {ends}{shape}{more}"
