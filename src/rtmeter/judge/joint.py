"""The verdict of a condition: all repeats of a cell together, from the verdict of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rtmeter.judge.environment import differences
from rtmeter.judge.rule import BEYOND_THE_HORIZON, MISSES_TOO_OFTEN, TOO_FEW, UNDECIDED
from rtmeter.judge.verdict import SPREAD, Misses, judge_misses, row_of
from rtmeter.model import GateFinding, Requirement, Support, Verdict
from rtmeter.results.record import CellRecord
from rtmeter.statistics.evidence import FEWEST_JUDGED
from rtmeter.statistics.joint import Joint, RunMisses, joint, runs_needed

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
    most = _together(runs, [one.misses for one in verdicts], known)
    between = [one.misses_between or (one.misses, one.misses) for one in verdicts]
    least, upmost = (sum(ends) for ends in zip(*between, strict=True))
    if least == upmost:
        return most
    sure, possible = (_together(runs, [ends[side] for ends in between], known) for side in (0, 1))
    if sure.outcome == "fail":
        return replace(sure, misses_between=(least, upmost), reason=f"at least {sure.reason}")
    if possible.outcome == "pass":
        return replace(possible, misses_between=(least, upmost), reason=f"at most {possible.reason}")
    reason = f"{possible.reason}; of some releases it is not known whether they missed"
    return replace(possible, outcome="inconclusive", misses_between=(least, upmost), reason=reason)


def _unjudged(runs: Sequence[tuple[str, Verdict]], left: Sequence[tuple[str, Verdict]]) -> Verdict:
    """By the first run that could not be judged; what the others measured stays in their own verdicts."""
    name, first = left[0]
    of = "one" if len(left) == 1 else str(len(left))
    reason = f"{of} of {len(runs)} runs could not be judged: {name}: {first.reason}"
    return replace(first, reason=reason)


def _together(
    runs: Sequence[tuple[str, Verdict]], missed: Sequence[int], known: tuple[GateFinding, ...]
) -> Verdict:
    verdicts = [verdict for _, verdict in runs]
    asked = verdicts[0].requirement
    each = [RunMisses(one.n, misses, one.design_effect) for one, misses in zip(verdicts, missed, strict=True)]
    found = joint(each, asked.confidence)
    lost, skipped = (sum(getattr(one, kind) for one in verdicts) for kind in ("lost", "skipped"))
    misses = Misses(verdicts[0].quantity, found.n, max(0, found.misses - lost - skipped), skipped, lost)
    if any(one.support is None for one in verdicts):
        return judge_misses(misses, asked)
    support = _support(runs, found, known)
    bounds = found.lower, found.upper
    verdict = judge_misses(misses, asked, support, bounds)
    row = row_of(misses, asked, support, bounds)
    if row is TOO_FEW:
        return _more_of_each(verdict, verdicts)
    if row is UNDECIDED and asked.miss_ratio is not None:
        return _more_runs(verdict, found, asked)
    if row in (MISSES_TOO_OFTEN, BEYOND_THE_HORIZON) or not found.apart:
        return verdict
    return replace(verdict, reason=f"{verdict.reason}; {_apart(found)}")


def _more_of_each(verdict: Verdict, verdicts: Sequence[Verdict]) -> Verdict:
    """Runs that are too short by themselves stay so, however many there are."""
    short = sum(one.n < FEWEST_JUDGED for one in verdicts)
    further = max(verdict.more_samples or 0, sum(max(0, FEWEST_JUDGED - one.n) for one in verdicts))
    reason = verdict.reason.partition(": ")[0]
    said = f"{short} of {len(verdicts)} runs are too short to look at dependence and stationarity: each takes"
    more = f"{further:,} further samples in all, none late, would pass"
    return replace(
        verdict, reason=f"{reason}: {said} {FEWEST_JUDGED:,} releases; {more}", more_samples=further
    )


def _more_runs(verdict: Verdict, found: Joint, asked: Requirement) -> Verdict:
    """More runs tell how far runs differ; longer ones do not."""
    assert asked.miss_ratio is not None
    head = verdict.reason.partition(": ")[0]
    sure = f"with {100 * asked.confidence:.10g} % confidence the miss ratio is at most {found.upper:.3g}"
    needed = runs_needed(found, asked.miss_ratio, asked.confidence)
    tell = (
        "no number of such runs passes"
        if needed is None
        else f"{needed - found.runs:,} further run{'s' * (needed - found.runs > 1)} such as these would pass"
    )
    why = _apart(found) if found.apart else _may_differ(found)
    reason = f"{head}: {sure} and at least {found.lower:.3g}, and {asked.miss_ratio:g} is allowed"
    more = None if needed is None else round((needed - found.runs) * found.n / found.runs)
    return replace(verdict, reason=f"{reason}; {why}; {tell}", more_samples=more)


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
    levels = [one.return_level for one in all_of]
    refused = [level for level in levels if level is None or level.upper_ns is None]
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
        return_level=refused[0]
        if refused
        else max(levels, key=lambda level: (level and level.upper_ns) or 0),
        findings=tuple(findings),
    )


def _findings(supports: Sequence[tuple[str, Support]]) -> list[GateFinding]:
    """Each finding of the runs: what several of them have once, with how many; else with its run."""
    found: dict[tuple[str, str], list[tuple[str, GateFinding]]] = {}
    for name, support in supports:
        for finding in support.findings:
            found.setdefault((finding.type, finding.consequence), []).append((name, finding))
    findings = []
    for having in found.values():
        name, first = max(having, key=lambda one: one[1].value or 0.0)
        runs = len({one for one, _ in having})  # a run may have two of one type
        which = name if runs == 1 else f"{runs} of {len(supports)} runs, as in {name}"
        alike = len({finding.message for _, finding in having}) == 1 and runs == len(supports)
        findings.append(first if alike else replace(first, message=f"{which}: {first.message}"))
    return findings


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
