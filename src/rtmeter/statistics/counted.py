"""What can be said of a histogram, and of the maxima of intervals: summary, support, estimates.

Times are lower edges of bins, as the tools that made them print them; a value is later by less than the
bin's width. What needs the order of releases is not looked at, and a finding says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from rtmeter.model import GateFinding, Requirement, ReturnLevel, Support
from rtmeter.statistics import gates
from rtmeter.statistics.blocks import A_BLOCK, MOST_BLOCKS
from rtmeter.statistics.bounds import further_releases, hours, miss_ratio_bounds, per_hour
from rtmeter.statistics.counted_data import PERIOD_UNKNOWN, CountedData, Histogram, Intervals
from rtmeter.statistics.counts import check_identities
from rtmeter.statistics.estimates import Estimates, each_of
from rtmeter.statistics.evidence import (
    MOST_TAIL,
    TAIL_SHARE,
    fewest_further,
    lost_finding,
    too_few_alone,
    too_short,
)
from rtmeter.statistics.modes import second_mode
from rtmeter.statistics.order import QUANTILES, statistics
from rtmeter.statistics.quantiles import Estimate, interval_ends
from rtmeter.statistics.ranks import quantile_index, share_of
from rtmeter.statistics.views import LATER
from rtmeter.statistics.words import about

_NEEDS_ORDER = "clusters, warm-up, drift, changes and rhythm of the latest releases could not be looked at"


def summarise_counted(data: CountedData) -> dict[str, Any]:
    """The summary of a cell without samples; ``resolution_ns``: the width of its bins, None if the single
    values are not known at all. A quantile beyond the last bin is None."""
    lost = 0 if isinstance(data, Histogram) else int(data.lost.sum())
    counts = {"released": data.n, "served": data.n - lost, "lost": lost, "warm_up": 0}
    served = _view(data, data.n - lost, 0)
    views = {"per_release": _view(data, data.n, lost), "as_served": served, "corrected": None}
    return {
        "counts": counts,
        "identity": check_identities({"measurement": "imported"}, counts)[0],
        "quantities": {"latency": views},
        "resolution_ns": data.width_ns if isinstance(data, Histogram) else None,
    }


def _view(data: CountedData, n: int, lost: int) -> dict[str, Any]:
    """``n`` releases, the last ``lost`` of them in ascending order lost."""
    quantiles = {}
    for name, share in QUANTILES:
        index = quantile_index(n, share)
        quantiles[name] = LATER if n and index >= n - lost else _at(data, index) if n else None
    least = _at(data, 0) if n > lost else None
    return statistics(n, least, None, None, quantiles, LATER if lost else data.max_ns if n else None, None)


def _at(data: CountedData, index: int) -> int | None:
    """Lower edge of the bin of the value at an index; None if it is in none."""
    if not isinstance(data, Histogram):
        return None
    lower, beyond = data.at(index)
    return lower if beyond is not None and beyond - lower == data.width_ns else None


def support_of_counted(
    data: CountedData, requirement: Requirement, period_ns: int | None, horizon_hours: float | None = None
) -> Support:
    """What a verdict rests on that knows no order: the bounds take misses as single ones. Per hour
    and in hours only with a period. A return level that is asked for, of ``horizon_hours``, is refused."""
    missed = data.misses(requirement.deadline_ns)
    findings = _findings(data, period_ns)
    lower = miss_ratio_bounds(missed.surely, missed.n, requirement.confidence)[0]
    upper: float | None = None
    if not any(finding.consequence == "refuse" for finding in findings):
        upper = miss_ratio_bounds(missed.possibly, missed.n, requirement.confidence)[1]
    allowed, more = requirement.miss_ratio, None
    if allowed is not None and upper is not None and upper > allowed:
        more = further_releases(missed.possibly, missed.n, allowed, requirement.confidence)
    if too_few_alone(tuple(findings)) and requirement.criticality != "hard":
        more = fewest_further(missed.possibly, missed.n, requirement, 1.0)
    return Support(
        clusters=None,
        longest_run=None,
        median_lateness_ns=None,
        largest_lateness_ns=None,
        extremal_index=None,
        design_effect=1.0,
        effective_n=float(missed.n),
        lower=lower,
        upper=upper,
        lower_per_hour=None if period_ns is None else per_hour(lower, period_ns),
        upper_per_hour=None if period_ns is None or upper is None else per_hour(upper, period_ns),
        more_hours=None if period_ns is None or more is None else hours(more, period_ns),
        expected_hours=None,
        growth="unknown",
        causes=(),
        slope_ns_per_s=None,
        slope_interval_ns_per_s=None,
        accumulated_ns=None,
        rhythm_s=None,
        return_level=None if horizon_hours is None else _no_level(data, horizon_hours),
        findings=tuple(findings),
    )


def _no_level(data: CountedData, horizon_hours: float) -> ReturnLevel:
    message = "the order of the releases is not known"
    refusal = GateFinding("no_order", "releases", float(data.n), "refuse", message)
    return ReturnLevel(horizon_hours, None, None, None, None, None, (refusal,))


def _findings(data: CountedData, period_ns: int | None) -> list[GateFinding]:
    found = _seen(data)
    if period_ns is None:
        message = "the period is not known: nothing is said per hour"
        found.append(GateFinding("no_period", "releases", float(data.n), "info", message))
    return found


def _seen(data: CountedData) -> list[GateFinding]:
    return [
        *too_short(data.n),
        *(_of_histogram(data) if isinstance(data, Histogram) else _of_intervals(data)),
    ]


def _of_histogram(data: Histogram) -> list[GateFinding]:
    message = f"a histogram has no order: {_NEEDS_ORDER}, and the bound takes misses as single ones"
    findings = [GateFinding("no_order", "releases", float(data.n), "info", message)]
    if data.dropped:
        message = f"the tool left out values beyond {about(data.over_from_ns)}, and how many is not known"
        findings.append(GateFinding("dropped", "last bin in ns", float(data.over_from_ns), "refuse", message))
    if data.skips_beyond:
        message = (
            f"how late the values beyond {about(data.over_from_ns)} were is not known, and so how many "
            "releases the tool passed over after them is not"
        )
        findings.append(GateFinding("dropped", "last bin in ns", float(data.over_from_ns), "refuse", message))
    if data.skips_after_ns == PERIOD_UNKNOWN:
        message = (
            "releases that the tool passed over after a late one are not in the file, and cannot be counted "
            "without the period: import it again with --period"
        )
        findings.append(GateFinding("skips_unseen", "releases", float(data.n), "refuse", message))
    if len(data.counts) == 1 and not data.over and not data.dropped:
        message = f"all values are in one bin of {about(data.width_ns)}: nothing is known of how they vary"
        return [*findings, GateFinding("constant", "bin in ns", float(data.lower_ns[0]), "info", message)]
    tail = data.largest(min(data.n // TAIL_SHARE, A_BLOCK * MOST_BLOCKS) + 1)
    if len(tail) > A_BLOCK:
        excess = float((tail[1:] - tail[0])[(len(tail) - 1) // 2])
        coarse = gates.quantisation(data.width_ns, excess / math.log(2))
        message = f"bins of {about(data.width_ns)} are coarse against the tail: few of them hold it"
        findings += [replace(finding, message=message) for finding in coarse]
    top = data.largest(min(data.n // TAIL_SHARE, MOST_TAIL))
    return findings + gates.modes(second_mode(top, data.width_ns))


def _of_intervals(data: Intervals) -> list[GateFinding]:
    message = f"of each interval only the latest value is known: {_NEEDS_ORDER}"
    findings = [GateFinding("intervals_only", "intervals", float(len(data.received)), "info", message)]
    lost = int(data.lost.sum())
    return findings + ([lost_finding(lost, data.n)] if lost else [])


def refusals_counted(data: CountedData) -> tuple[GateFinding, ...]:
    """Why there is no upper bound of the miss ratio; empty if there is one."""
    found = _seen(data)
    return tuple(finding for finding in found if finding.consequence == "refuse")


def estimates_counted(
    data: CountedData, deadline_ns: int | None, confidence: float, percents: Sequence[str]
) -> Estimates:
    """What a comparison needs of data without order, as ``estimates.estimates``: intervals reach from the
    lower edge of a bin to the upper one, and take releases as independent. NaN where nothing is known.
    A miss ratio of which only the least is known says so; NaN if that is none."""
    shared = each_of(confidence, len(percents) + (deadline_ns is not None))
    found = {f"p{percent}": _quantile(data, share_of(percent), shared) for percent in percents}
    if deadline_ns is not None:
        missed, sided = data.misses(deadline_ns), (1 + shared) / 2
        lower = miss_ratio_bounds(missed.surely, missed.n, sided)[0]
        upper = miss_ratio_bounds(missed.possibly, missed.n, sided)[1]
        if isinstance(data, Histogram) and data.uncounted:
            upper = math.nan
        known = missed.surely == missed.possibly and not math.isnan(upper)
        value = missed.surely / missed.n if missed.n and (known or missed.surely) else math.nan
        found["miss_ratio"] = Estimate(value, lower, upper, 1.0, known)
    return Estimates(data.n, confidence, found)


def _quantile(data: CountedData, share: Fraction, confidence: float) -> Estimate:
    if not isinstance(data, Histogram) or not data.n or data.dropped:
        return Estimate(math.nan, math.nan, math.nan, 1.0)
    value = _at(data, quantile_index(data.n, share))
    first, last = interval_ends(data.n, share, confidence)
    lower = math.nan if first is None else float(data.at(first)[0])
    beyond = None if last is None else data.at(last)[1]
    centre = math.nan if value is None else float(value)
    return Estimate(centre, lower, math.nan if beyond is None else float(beyond), 1.0)
