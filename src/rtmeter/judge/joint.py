"""The verdict of a condition: all repeats of a cell together, from the verdict of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rtmeter.judge.environment import differences
from rtmeter.judge.rule import BEYOND_THE_HORIZON, MISSES_TOO_OFTEN, MORE_MISSED, TOO_FEW, UNDECIDED
from rtmeter.judge.verdict import ONE_RUN, SPREAD, Misses, judge_misses, row_of
from rtmeter.model import GateFinding, ReturnLevel, Support, Verdict
from rtmeter.results.record import CellRecord
from rtmeter.statistics.evidence import FEWEST_JUDGED, lost_finding
from rtmeter.statistics.joint import Joint, RunMisses, joint, releases_needed, runs_needed

_DECIDES_ALONE = ("error", "inconclusive")


def judge_condition(records: Sequence[CellRecord], verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of the repeats of a cell, one at least, by the verdict of each."""
    named = [(record.id, verdict) for record, verdict in zip(records, verdicts, strict=True)]
    return judge_joint(named, tuple(unlike(records)))


def unlike(records: Sequence[CellRecord]) -> Iterator[GateFinding]:
    """What was in effect of one repeat and not of another: then they are not one condition."""
    first, *others = records
    for other in others:
        if other.effective != first.effective:
            for one in differences(first, other):
                if one.name.startswith("effective."):
                    message = f"{one.name} differs: {one.a} of {first.id}, {one.b} of {other.id}"
                    yield GateFinding("unlike", "settings", 1.0, "refuse", message)
                    return


def judge_joint(runs: Sequence[tuple[str, Verdict]], known: tuple[GateFinding, ...] = ()) -> Verdict:
    """The verdict of named runs of one condition, one at least, all by the same requirement; ``known``:
    findings that no run shows by itself.

    A run that could not be judged decides: what it would have said is not known. Else their misses are
    counted together, and what refuses the bound of one run refuses that of all.
    """
    if len(runs) == 1:
        return runs[0][1]
    for outcome in _DECIDES_ALONE:
        left = [(name, one) for name, one in runs if one.outcome == outcome and one.n == 0]
        if left:
            return _unjudged(runs, left)
    verdicts = [verdict for _, verdict in runs]
    ends = [one.misses_between or (one.misses, one.misses) for one in verdicts]
    least, most = (sum(side) for side in zip(*ends, strict=True))
    if least == most:
        return _together(runs, [one.misses for one in verdicts], known)
    sure, possible = (_together(runs, side, known, (least, most)) for side in zip(*ends, strict=True))
    if sure.outcome == "fail":
        return sure
    if possible.outcome == "pass":
        return possible
    why = possible.reason
    if possible.outcome == "fail":
        why = why.partition(": ")[0] + ": whether the requirement is met is not known"
    reason = f"{why}; of some releases it is not known whether they missed"
    return replace(possible, outcome="inconclusive", reason=reason)


def _unjudged(runs: Sequence[tuple[str, Verdict]], left: Sequence[tuple[str, Verdict]]) -> Verdict:
    """By the first run that could not be judged; what the others measured stays in their own verdicts."""
    name, first = left[0]
    of = "one" if len(left) == 1 else str(len(left))
    reason = f"{of} of {len(runs)} runs could not be judged: {name}: {first.reason}"
    return replace(first, reason=reason)


def _together(
    runs: Sequence[tuple[str, Verdict]],
    missed: Sequence[int],
    known: tuple[GateFinding, ...],
    between: tuple[int, int] | None = None,
) -> Verdict:
    verdicts = [verdict for _, verdict in runs]
    asked = verdicts[0].requirement
    each = [RunMisses(one.n, misses, one.design_effect) for one, misses in zip(verdicts, missed, strict=True)]
    found = joint(each, asked.confidence)
    lost, skipped, unserved = (
        sum(getattr(one, kind) for one in verdicts) for kind in ("lost", "skipped", "unserved")
    )
    total = round(found.misses)
    skipped = min(skipped, total - lost)  # of what missed surely not all that may have been skipped
    late = total - lost - skipped
    misses = Misses(verdicts[0].quantity, found.n, late, skipped, lost, unserved, between)
    if any(one.support is None for one in verdicts):
        return judge_misses(misses, asked)
    support = _support(runs, found, known)
    bounds = found.lower, found.upper
    verdict = judge_misses(misses, asked, support, bounds)
    row = row_of(misses, asked, support, bounds)
    if row is TOO_FEW:
        return _longer_runs(verdict, verdicts, found)
    if row is UNDECIDED:
        return _more_runs(verdict, found)
    if row is MORE_MISSED:
        verdict = replace(verdict, more_samples=None)  # none make up for it, if runs go on to miss so
    if row in (MISSES_TOO_OFTEN, BEYOND_THE_HORIZON) or not found.apart:
        return verdict
    return replace(verdict, reason=f"{verdict.reason}; {_apart(found)}")


def _longer_runs(verdict: Verdict, verdicts: Sequence[Verdict], found: Joint) -> Verdict:
    """Runs that are too short by themselves stay so, however many there are."""
    runs, short = len(verdicts), sum(one.n < FEWEST_JUDGED for one in verdicts)
    total = verdict.n + (verdict.more_samples or 0) if verdict.misses else _without_a_miss(verdict, found)
    each = max(FEWEST_JUDGED, -(-total // runs))
    head = verdict.reason.partition(": ")[0]
    said = f"{short} of {runs} runs are too short to look at dependence and stationarity"
    reason = f"{head}: {said}: each takes {FEWEST_JUDGED:,} releases"
    return replace(verdict, reason=reason, more_samples=runs * each, more_runs=runs)


def _more_runs(verdict: Verdict, found: Joint) -> Verdict:
    """More runs tell how far runs differ; where nothing missed, and it takes more than as many again, longer
    ones tell as much."""
    asked = verdict.requirement
    assert asked.miss_ratio is not None
    needed = runs_needed(found, asked.miss_ratio, asked.confidence)
    more = None if needed is None else needed - found.runs
    samples = None if more is None else round(more * found.n / found.runs)
    if not verdict.misses and (more is None or more > found.runs):
        more = found.runs
        samples = more * -(-_without_a_miss(verdict, found) // more)
    why = _apart(found) if found.apart else _may_differ(found)
    return replace(verdict, reason=f"{verdict.reason}; {why}", more_samples=samples, more_runs=more)


def _without_a_miss(verdict: Verdict, found: Joint) -> int:
    """How many releases pass in as many runs as there are, measured anew."""
    asked = verdict.requirement
    if asked.miss_ratio is None:
        return found.runs * FEWEST_JUDGED
    return releases_needed(found.runs, asked.miss_ratio, asked.confidence, found.within)


def _apart(found: Joint) -> str:
    return f"the {found.runs} runs differ more than dependence within them explains"


def _may_differ(found: Joint) -> str:
    share = f"{100 * found.spread:.0f} % of the ratio"
    room = "as much as the ratio itself" if found.spread > 0.95 else share
    return f"{found.runs} runs do not show how far runs differ: room is made for {room}"


def _support(runs: Sequence[tuple[str, Verdict]], found: Joint, known: tuple[GateFinding, ...]) -> Support:
    """What the joint verdict rests on: sums, extremes and all findings of the runs, each with its run."""
    supports = [(name, one.support) for name, one in runs if one.support is not None]
    findings = [*known, *_findings(supports)]
    lost = sum(one.value or 0 for _, support in supports for one in support.findings if one.type == "lost")
    findings = [lost_finding(round(lost), found.n) if one.type == "lost" else one for one in findings]
    if found.spread:
        why = _apart(found) if found.apart else _may_differ(found)
        message = f"{why}: n counts as n / {found.design_effect:.1f}"
        findings.append(GateFinding(SPREAD, "dispersion", found.dispersion, "deflate", message))
    all_of = [support for _, support in supports]
    effect, upper, lower = found.design_effect, None, None
    if not any(finding.consequence == "refuse" for finding in findings):
        lower, upper = found.lower, found.upper
    per_hour = _releases_per_hour(runs)
    clusters = [one.clusters for one in all_of]
    return replace(
        max(all_of, key=lambda one: abs(one.slope_ns_per_s or 0.0)),
        clusters=None if None in clusters else sum(one or 0 for one in clusters),
        longest_run=max((one.longest_run for one in all_of if one.longest_run is not None), default=None),
        median_lateness_ns=None,
        largest_lateness_ns=max(
            (one.largest_lateness_ns for one in all_of if one.largest_lateness_ns is not None), default=None
        ),
        extremal_index=min((i for one in all_of if (i := one.extremal_index) is not None), default=None),
        design_effect=max(1.0, effect),
        effective_n=found.n / max(1.0, effect),
        lower=lower,
        upper=upper,
        lower_per_hour=None if lower is None or per_hour is None else lower * per_hour,
        upper_per_hour=None if upper is None or per_hour is None else upper * per_hour,
        more_hours=None,
        expected_hours=None,
        growth=_worst_growth(all_of),
        causes=tuple(dict.fromkeys(cause for one in all_of for cause in one.causes)),
        return_level=_worst_level(supports),
        findings=tuple(findings),
    )


def _worst_level(supports: Sequence[tuple[str, Support]]) -> ReturnLevel | None:
    """The highest of the runs' return levels, or that of a run which has none; with the run's name."""
    named = [(name, support.return_level) for name, support in supports]
    refused = [(name, level) for name, level in named if level is None or level.upper_ns is None]
    name, level = refused[0] if refused else max(named, key=lambda one: (one[1] and one[1].upper_ns) or 0)
    if level is None:
        return None
    if refused:
        findings = [replace(finding, message=f"{name}: {finding.message}") for finding in level.findings]
        return replace(level, findings=tuple(findings))
    message = f"in {name}, the highest of {len(named)} runs, each by itself"
    return replace(
        level, findings=(*level.findings, GateFinding(ONE_RUN, "runs", len(named), "info", message))
    )


def _findings(supports: Sequence[tuple[str, Support]]) -> list[GateFinding]:
    """Each finding of the runs: what several of them have once, with how many; else with its run."""
    found: dict[tuple[str, str], list[tuple[str, GateFinding]]] = {}
    for name, support in supports:
        for finding in support.findings:
            found.setdefault((finding.type, finding.consequence), []).append((name, finding))
    findings = []
    for having in found.values():
        name, first = max(having, key=lambda one: _size(one[1]))
        runs = len({one for one, _ in having})  # a run may have two of one type
        which = name if runs == 1 else f"{runs} of {len(supports)} runs, as in {name}"
        if len({finding.message for _, finding in having}) == 1 and runs == len(supports):
            which = "each run" if any(map(str.isdigit, first.message)) else ""
        findings.append(replace(first, message=f"{which}: {first.message}") if which else first)
    return findings


def _size(finding: GateFinding) -> float:
    return math.inf if finding.value is None else abs(finding.value)


def _releases_per_hour(runs: Sequence[tuple[str, Verdict]]) -> float | None:
    """By the first run that says both a bound and what that is an hour."""
    for _, verdict in runs:
        support = verdict.support
        if support and support.upper and support.upper_per_hour:
            return support.upper_per_hour / support.upper
    return None


def _worst_growth(supports: Sequence[Support]) -> str:
    said = [one.growth for one in supports]
    return next((growth for growth in said if growth != "bounded"), said[0])
