"""The verdict of a cell without samples: by its sure misses, and by those that are possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rtmeter.judge.verdict import Misses, judge_misses, refusals
from rtmeter.model import Requirement, Verdict
from rtmeter.statistics.counted import support_of_counted
from rtmeter.statistics.counted_data import CountedData, Histogram
from rtmeter.statistics.quantities import judged_quantity
from rtmeter.statistics.words import about


def judge_counted(
    meta: Mapping[str, Any], data: CountedData, requirement: Requirement, horizon_hours: float | None = None
) -> Verdict:
    """The verdict of a histogram or of intervals: fails by what surely missed, passes by what possibly
    did, which are its ``misses`` unless it fails. ``meta`` as in ``judge``; its period may be None."""
    missed = data.misses(requirement.deadline_ns)
    support = None
    if missed.n:
        support = support_of_counted(data, requirement, meta["period_ns"], horizon_hours)
    certain = missed.surely == missed.possibly
    between = None if certain else (missed.surely, missed.possibly)

    def by(misses: int, skipped: int) -> Verdict:
        late = misses - missed.lost - skipped
        name = judged_quantity(meta).name
        found = Misses(name, missed.n, late, skipped, missed.lost, between=between)
        return judge_misses(found, requirement, support)

    sure, possible = by(missed.surely, missed.skipped[0]), by(missed.possibly, missed.skipped[1])
    if support is None:
        return sure
    if sure.outcome == "fail":
        return replace(sure, upper=possible.upper)
    outcome, reason, why = possible.outcome, possible.reason, support.findings[0].message
    if not certain and outcome != "pass":
        outcome, head = "inconclusive", reason.partition(": ")[0]
        refused = refusals(support.findings)
        no_bound = f"no bound of the miss ratio is stated: {refused}; " if refused else ""
        reason = f"{head}: {no_bound}{_coarse(data)}"
    if why not in reason:
        reason = f"{reason}; {why}"
    return replace(possible, outcome=outcome, lower=sure.lower, reason=reason)


def _coarse(data: CountedData) -> str:
    """Why misses are not told apart."""
    if not isinstance(data, Histogram):
        return "whether more than the latest message of an interval was late is not known"
    beyond = f", and those beyond {about(data.over_from_ns)} only by their number" if data.over else ""
    return f"values are known to {about(data.width_ns)}{beyond}"
