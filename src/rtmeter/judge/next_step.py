"""The one step after a verdict that can help: a cause to look at, what is to be mended, or more releases."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from rtmeter.judge.rule import LEVEL_TOO_HIGH, NO_LEVEL
from rtmeter.model import GateFinding, Verdict
from rtmeter.results import condition_words, words
from rtmeter.results.cells import StoredCell
from rtmeter.results.record import CellRecord
from rtmeter.statistics.bounds import NS_PER_HOUR, releases_needed
from rtmeter.statistics.evidence import FEWEST_JUDGED, TOO_FEW
from rtmeter.statistics.extremes import FEWEST_RELEASES
from rtmeter.statistics.words import about
from rtmeter.trace.table import FILE
from rtmeter.values import format_duration

_ANEW = ", and measure anew: no length of run helps before"
_WHILE_LATER = f"find out what the machine did while releases were later (the plot over time), end it{_ANEW}"
_FREE = f"free the machine of others' work{_ANEW}"

_MENDED_BY: Mapping[str, str] = {
    "skips_unseen": "import the file again with --period: nothing has to be measured anew",
    "dropped": "measure again with a histogram that reaches further: no length of run helps before",
    "unlike": f"give all repeats the same settings{_ANEW}",
    "falls": "give it a longer warm-up: a delay that still falls says nothing of later ones; where it falls "
    f"all along, mend the rate of the clock that fires it{_ANEW}",
    "drift": f"find out why the delay grows, and mend that{_ANEW}",
    "overload": f"give the loop less to do, or a longer period{_ANEW}",
    "change_point": _WHILE_LATER,
    "stationarity": _WHILE_LATER,
}
"""By the type of what a gate found, ``falls`` and ``drift`` of any delay that does; of several the first one
here."""

SLOPE = "slope in ns/s"
"""The statistic of a delay that grows or falls."""

_WHERE_TO_LOOK = {
    ("", "late"): "look at when the late ones came: clusters point at throttling or another task, single "
    "ones at interrupts, idle states or page faults",
    ("", "skipped"): "see what kept the thread from being free at its releases, or lengthen the period",
    ("", "lost"): "find where messages are dropped, or ask for reliable delivery",
    ("timer", "lost"): "find out why shots never fired: see what the middleware printed",
}

_NO_ORDER = (
    "measure the same with rtmeter and --explain, which says why releases were late: these data do not even "
    "tell when"
)


def next_step(verdict: Verdict, runs: Sequence[StoredCell]) -> str | None:
    """What to do after a verdict on those runs of one condition, one at least; None: nothing."""
    if not verdict.n:
        remedies = [run.record.error.remedy for run in runs if run.record.error]
        more = "measure the cell again" if verdict.outcome == "error" else _measure(verdict, runs)
        return next((remedy for remedy in remedies if remedy), more)
    if verdict.outcome == "fail":
        return _look(verdict, runs)
    if verdict.outcome == "pass":
        return _rarer(verdict, runs[0].record)
    return _to_tell(verdict, runs)


def _to_tell(verdict: Verdict, runs: Sequence[StoredCell]) -> str:
    """After an inconclusive verdict."""
    asked = verdict.requirement
    refusing = _refusing(verdict)
    if mended := [step for kind, step in _MENDED_BY.items() if kind in refusing]:
        return _FREE if mended[0] is _WHILE_LATER and _others(runs) else mended[0]
    if asked.criticality == "hard" and (step := _of_the_level(verdict)):
        return step
    if verdict.misses / verdict.n > (asked.miss_ratio or 0.0):
        return _look(verdict, runs)
    if verdict.misses_between:
        return "ask for a deadline between two bins, or measure with a finer resolution"
    if verdict.more_samples:
        return _measure(verdict, runs)
    if not verdict.misses:
        return "allow more misses: no run shows that so few come"
    return _look(verdict, runs)


def _refusing(verdict: Verdict) -> set[str]:
    """What refuses a bound, by its kind in _MENDED_BY."""
    findings = verdict.support.findings if verdict.support else ()
    return {_kind(finding) for finding in findings if finding.consequence == "refuse"}


def _kind(finding: GateFinding) -> str:
    if finding.statistic != SLOPE or finding.type == "overload":
        return finding.type
    return "falls" if (finding.value or 0.0) < 0 else "drift"


def _others(runs: Sequence[StoredCell]) -> bool:
    """Whether others took much of the machine meanwhile."""
    return any(condition_words.taken_much(run.record.endured)[1] for run in runs)


def _of_the_level(verdict: Verdict) -> str | None:
    """What a hard deadline lacks of a return level below it; None if nothing."""
    level = verdict.support.return_level if verdict.support else None
    if verdict.support is None or level is None:
        return NO_LEVEL.do
    if level.upper_ns is not None:
        return None if level.upper_ns <= verdict.requirement.deadline_ns else LEVEL_TOO_HIGH.do
    refusing = {finding.type for finding in level.findings if finding.consequence == "refuse"}
    if verdict.n < FEWEST_RELEASES and refusing <= {TOO_FEW, "too_few_maxima"}:
        more = FEWEST_RELEASES - verdict.n
        return f"measure {more:,} more releases at least: a hard deadline is judged by the latest of many"
    if "within_the_run" in refusing:
        return "ask for a longer time (--once-in)"
    if refusing & {"mixture", "outlier"}:
        return "look at the latest releases: they have a cause of their own, which has to be found"
    return NO_LEVEL.do


def _look(verdict: Verdict, runs: Sequence[StoredCell]) -> str:
    """Why releases were late: a delay that grows, or what a trace tells; else how to get one, or where to
    look."""
    if grows := _refusing(verdict) & {"drift", "overload"}:
        return _MENDED_BY[min(grows)]
    record = runs[0].record
    unserved = verdict.unserved  # these were skipped: no message of theirs was dropped
    most = max(
        (verdict.late, "late"), (verdict.skipped + unserved, "skipped"), (verdict.lost - unserved, "lost")
    )[1]
    if most == "lost":
        return _WHERE_TO_LOOK.get((record.measurement, most)) or _WHERE_TO_LOOK["", most]
    if traced := [run.folder for run in runs if (run.folder / FILE).is_file()]:
        own, asked = record.requirement, verdict.requirement.deadline_ns
        command = to_explain_one(traced[0], None if own and own.deadline_ns == asked else asked)
        return f"type {command}: it says why each release was late"
    if verdict.support and verdict.support.growth == "unknown":
        return _NO_ORDER
    if record.imported or record.clock.get("id") == "scripted":
        return _WHERE_TO_LOOK["", most]
    return "measure again with --explain (in a campaign explain: true), which says why releases were late"


def to_explain_one(cell: Path, deadline_ns: int | None) -> str:
    """The command that explains a cell; ``deadline_ns``: what is late, if not by the cell's own deadline."""
    beyond = "" if deadline_ns is None else f" --deadline {format_duration(deadline_ns)}"
    return f"rtmeter explain {shlex.quote(str(cell))}{beyond}"


def _measure(verdict: Verdict, runs: Sequence[StoredCell]) -> str:
    """How much more to measure, in as many runs as it takes."""
    record, samples, several = runs[0].record, verdict.more_samples or 0, verdict.more_runs
    if not several:
        more = f"{samples:,} more {'release' if samples == 1 else 'releases'}{_time(record, samples)}"
        return f"measure {more}: if all are in time, it passes{_if_it_goes_on(verdict)}"
    each, of_a_run = samples // several, verdict.n // len(runs)
    short = min(run.record.n_of(verdict.quantity) for run in runs) < FEWEST_JUDGED
    if short or each > of_a_run:  # more such runs would leave those that are too short
        length = f"{several} runs of {each:,} releases each{_time(record, each)}"
        these = f"{of_a_run:,}" if each > of_a_run else "these"
        none = "no more of them miss" if verdict.misses else "none of them misses"
        return f"measure {length} instead of {these}: if {none}, it passes"
    what = "run such as these" if several == 1 else "runs such as these"
    none = "they miss as often" if verdict.misses else "none of them misses"
    return f"measure {several:,} more {what}{_time(record, samples)}: if {none}, it passes"


def _if_it_goes_on(verdict: Verdict) -> str:
    """What becomes of a run of which some missed, if that goes on."""
    support = verdict.support
    if not verdict.misses or support is None or support.more_hours is None:
        return ""
    if support.expected_hours is None:
        return "; if they miss as often, no length passes"
    return f"; if they miss as often, {about(support.expected_hours * NS_PER_HOUR)} more"


def _rarer(verdict: Verdict, record: CellRecord) -> str | None:
    """After a pass without a miss: what would show more."""
    if verdict.misses or not verdict.bound:
        return None
    rarer = 10.0 ** -len(str(int(1 / verdict.bound)))
    needed = releases_needed(0, rarer, verdict.requirement.confidence, verdict.design_effect)
    return (
        f"nothing for this requirement. To show that fewer than {words.one_in(rarer)} miss, "
        f"measure {needed:,} releases without a miss{_time(record, needed)}"
    )


def _time(record: CellRecord, releases: int) -> str:
    return f" ({words.span(releases * record.tick_ns / 1e9)})" if record.tick_ns else ""
