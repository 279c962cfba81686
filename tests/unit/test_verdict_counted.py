"""Verdicts of histograms and intervals: by the misses that are sure, and by those that are possible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rtmeter.cli.evidence import verdict_lines
from rtmeter.judge.counted import judge_counted
from rtmeter.judge.joint import judge_joint
from rtmeter.model import Requirement, Verdict
from rtmeter.statistics.bounds import miss_ratio_bounds
from rtmeter.statistics.counted_data import PERIOD_UNKNOWN, CountedData, Histogram, Intervals

META = {"measurement": "imported", "config": {"quantity": "latency"}, "period_ns": 1_000_000}
DATA = Histogram(np.array([0, 1_000, 2_000]), 1_000, np.array([9_000, 990, 10]))
"""Bins of 1 us."""


def judged(deadline_ns: int, miss_ratio: float | None = None, data: CountedData = DATA) -> Verdict:
    return judge_counted(META, data, Requirement(deadline_ns, miss_ratio))


def test_at_a_bins_edge_all_is_told() -> None:
    found = judged(2_999, 1e-3)
    assert (found.outcome, found.n, found.misses, found.misses_between) == ("pass", 10_000, 0, None)
    assert found.upper == miss_ratio_bounds(0, 10_000, 0.95)[1] and found.lower == 0
    assert "0 of 10,000 releases missed" in found.reason and " to 0 of" not in found.reason
    assert found.support is not None and found.support.findings[0].message in found.reason
    one = judged(1_999, 1e-2)
    assert (one.outcome, one.misses, one.late, one.misses_between) == ("pass", 10, 10, None)


def test_a_deadline_within_a_bin_passes_by_what_is_possible() -> None:
    found = judged(2_500, 1e-2)
    assert (found.outcome, found.misses, found.misses_between) == ("pass", 10, (0, 10))
    assert found.reason.startswith("0 to 10 of 10,000 releases missed")
    assert (found.lower, found.upper) == (0, miss_ratio_bounds(10, 10_000, 0.95)[1])


def test_it_fails_by_what_is_sure() -> None:
    found = judged(1_500, 1e-4)
    assert (found.outcome, found.misses, found.misses_between) == ("fail", 10, (10, 1_000))
    assert found.reason.startswith("10 to 1,000 of 10,000 releases missed")
    assert found.upper == miss_ratio_bounds(1_000, 10_000, 0.95)[1]
    assert judged(1_999, 1e-4).reason.startswith("10 of 10,000 releases missed")


@pytest.mark.parametrize("miss_ratio", [None, 1e-4])
def test_between_them_nothing_is_said(miss_ratio: float | None) -> None:
    found = judged(2_500, miss_ratio)
    assert (found.outcome, found.misses_between) == ("inconclusive", (0, 10))
    assert found.reason.startswith(
        "0 to 10 of 10,000 releases missed the deadline of 2.5 us on latency: values are known to 1 us"
    )


def test_what_lies_beyond_the_bins_is_known_by_its_number() -> None:
    found = judged(5_000, 1e-4, replace(DATA, over=7, over_from_ns=3_000))
    assert (found.outcome, found.misses_between) == ("inconclusive", (0, 7))
    assert "those beyond 3 us only by their number" in found.reason


def test_a_tool_that_drops_values_leaves_no_bound() -> None:
    found = judged(2_999, 1e-3, replace(DATA, dropped=True))
    assert found.outcome == "inconclusive" and "no bound of the miss ratio is stated" in found.reason
    assert judged(999, 1e-3, replace(DATA, dropped=True)).outcome == "fail"


def test_of_what_a_file_leaves_out_the_misses_are_told_as_everywhere() -> None:
    """The line, its share and the evidence state the same, and why nothing is told."""
    data = replace(DATA, skips_after_ns=PERIOD_UNKNOWN)
    found = judged(2_500, 1e-4, data)
    assert (found.outcome, found.misses_between) == ("inconclusive", (0, 10))
    assert found.reason.startswith("0 to 10 of 10,000 releases missed the deadline of 2.5 us on latency: no")
    assert "import it again with --period" in found.reason and "values are known to 1 us" in found.reason
    line, *more = verdict_lines(found, 2_000)
    assert line.endswith("on latency: 0 % to 0.1 %, 0.01 % allowed, worst 2.000 us")
    assert "  misses           0 to 10" in more
    assert judged(1_999, 1e-2, data).reason.startswith("10 of 10,000 releases missed")


def test_repeats_fail_by_what_is_sure_of_all_of_them() -> None:
    data = Histogram(np.array([0, 1_000]), 1_000, np.array([9_980, 10]), over=10, over_from_ns=400_000)
    data = replace(data, below_ns=1_501_000, skips_after_ns=META["period_ns"])
    one, stricter = judged(1_200_000, 7e-5, data), judged(1_200_000, 1e-5, data)
    assert (one.outcome, one.misses_between, one.skipped) == ("inconclusive", (2, 20), 10)
    both = judge_joint([("r1", one), ("r2", one)])
    assert (both.outcome, both.misses_between) == ("inconclusive", (4, 40))
    assert both.misses == both.late + both.skipped + both.lost == 40
    assert stricter.outcome == "fail"
    failed = judge_joint([("r1", stricter), ("r2", stricter)])
    assert (failed.outcome, failed.misses, failed.misses_between) == ("fail", 4, (4, 40))
    mixed = judge_joint([("r1", one), ("r2", replace(stricter, requirement=one.requirement))])
    assert (mixed.outcome, mixed.misses_between) == ("inconclusive", (4, 40))


def test_of_an_interval_the_latest_message_is_known() -> None:
    data = Intervals(np.array([100, 100]), np.array([0, 2]), np.array([5_000, 900]))
    found = judged(1_000, 0.1, data)
    assert (found.outcome, found.n, found.misses_between) == ("inconclusive", 202, (3, 102))
    assert (found.misses, found.lost, found.late) == (102, 2, 100)
    assert "whether more than the latest message of an interval was late is not known" in found.reason


@pytest.mark.parametrize(
    "data", [replace(DATA, counts=np.array([0, 0, 0])), Intervals(*np.zeros((3, 1), int))]
)
def test_nothing_measured_is_inconclusive(data: CountedData) -> None:
    found = judged(1_000, 1e-3, data)
    assert (found.outcome, found.n, found.support, found.misses_between) == ("inconclusive", 0, None, None)
    assert "nothing was measured" in found.reason


@pytest.mark.parametrize("miss_ratio", [None, 0.5])
def test_a_short_histogram_is_too_short_to_pass(miss_ratio: float | None) -> None:
    found = judged(2_999, miss_ratio, replace(DATA, counts=np.array([900, 90, 9])))
    assert (found.outcome, found.misses, found.more_samples) == ("inconclusive", 0, 1)
    assert found.reason.count("999 releases are too few") == 1
    assert found.support is not None and found.support.more_hours == pytest.approx(1e-3 / 3600)
    assert judged(2_999, miss_ratio, replace(DATA, counts=np.array([900, 90, 10]))).outcome == "pass"
    assert judged(999, 1e-3, replace(DATA, counts=np.array([900, 90, 9]))).outcome == "fail"
