"""Histograms and intervals against the single values that they were made of."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rtmeter.model import Requirement
from rtmeter.statistics.bounds import miss_ratio_bounds
from rtmeter.statistics.compare import compare
from rtmeter.statistics.counted import estimates_counted, summarise_counted, support_of_counted
from rtmeter.statistics.counted_data import PERIOD_UNKNOWN, Histogram, Intervals, PossibleMisses
from rtmeter.statistics.effects import runs_apart
from rtmeter.statistics.estimates import estimates
from rtmeter.statistics.gate import judge_gate, parse_gate
from rtmeter.statistics.order import QUANTILES
from rtmeter.statistics.quantiles import COMPARED
from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.ranks import quantile_index

US = 1000


def histogram(values: Ints, last: int = 10**9, width_ns: int = US) -> Histogram:
    """As tools make them: bins below ``last``, and the largest value to the bin's width."""
    bins, counts = np.unique(values[values < last] // width_ns, return_counts=True)
    below = (int(values.max()) // width_ns + 1) * width_ns if len(values) else None
    over = int(np.count_nonzero(values >= last))
    return Histogram(bins * width_ns, width_ns, counts, over, last if over else 0, below)


@pytest.mark.parametrize("last", [10**9, 300_000, 100_000])
def test_misses_lie_between_the_sure_and_the_possible_ones(last: int, generator: np.random.Generator) -> None:
    values = (50_000 + generator.exponential(40_000, 5000)).astype(np.int64)
    data = histogram(values, last)
    assert data.n == 5000
    for deadline in [
        0,
        50_123,
        99_999,
        100_000,
        123_456,
        300_000,
        int(values.max()) - 1,
        int(values.max()),
        10**8,
    ]:
        found, missed = data.misses(deadline), int(np.count_nonzero(values > deadline))
        assert found.surely <= missed <= found.possibly, deadline
        if deadline < last and deadline % US == US - 1:
            assert found.surely == missed == found.possibly, deadline


@pytest.mark.parametrize(("deadline", "possibly"), [(3_998, 2), (3_999, 0)])
def test_nothing_is_later_than_what_lies_above_all_values(deadline: int, possibly: int) -> None:
    data = Histogram(np.array([0, 1_000]), US, np.array([5, 1]), 2, over_from_ns=2_000, below_ns=4_000)
    assert data.misses(deadline) == PossibleMisses(8, 0, possibly)


def test_the_latest_message_of_an_interval_in_which_none_came_says_nothing() -> None:
    data = Intervals(np.array([2, 0]), np.array([0, 1]), np.array([5, 10**9]))
    assert data.misses(10) == PossibleMisses(3, 1, 1, lost=1)
    assert data.max_ns == 5


def test_a_bound_that_is_just_low_enough_needs_no_further_releases() -> None:
    data = Histogram(np.array([0]), US, np.array([5_000]), below_ns=US)
    bound = miss_ratio_bounds(0, 5_000, 0.95)[1]
    for allowed, more in ((bound, None), (math.nextafter(bound, 0), 1 / 3.6e6)):
        found = support_of_counted(data, Requirement(US, allowed), 1_000_000)
        assert (found.upper, found.more_hours) == (bound, more)


def test_the_largest_value_beyond_the_bins_is_known() -> None:
    data = histogram(np.array([10_500, 700_100, 800_200]), last=400_000)
    assert data.max_ns == 800_000
    assert data.misses(500_000) == PossibleMisses(3, 1, 2)
    assert data.misses(800_100) == PossibleMisses(3, 0, 2)
    assert data.misses(801_000) == PossibleMisses(3, 0, 0)


def test_releases_that_a_late_one_kept_from_running_are_misses() -> None:
    values = np.array([50_000] * 10 + [1_200_000, 3_700_000])
    plain, cut = histogram(values), histogram(values, last=1_000_000)
    skipped = {"skips_after_ns": 1_000_000}
    assert replace(plain, **skipped).misses(500_000) == PossibleMisses(16, 6, 6, skipped=(4, 4))
    assert replace(plain, **skipped).misses(5_000_000) == PossibleMisses(16, 4, 4, skipped=(4, 4))
    assert replace(cut, **skipped).misses(500_000) == PossibleMisses(18, 6, 8, skipped=(4, 6))


def test_a_summary_states_the_bins_that_quantiles_are_in(generator: np.random.Generator) -> None:
    values = (50_000 + generator.exponential(40_000, 5000)).astype(np.int64)
    ordered = np.sort(values)
    summary = summarise_counted(histogram(values))
    view = summary["quantities"]["latency"]["per_release"]
    expected = {name: int(ordered[quantile_index(5000, share)]) // US * US for name, share in QUANTILES}
    assert {name: view[name] for name in expected} == expected
    assert (view["n"], view["min_ns"], view["max_ns"]) == (
        5000,
        ordered[0] // US * US,
        ordered[-1] // US * US,
    )
    assert (view["mean_ns"], view["stddev_ns"], view["max_at_k"]) == (None, None, None)
    assert summary["identity"] == "released = served + lost: 5000 = 5000 + 0"
    assert summary["resolution_ns"] == US


def test_a_quantile_beyond_the_bins_is_not_made_up(generator: np.random.Generator) -> None:
    values = np.append(generator.integers(10_000, 20_000, 998), [500_000, 900_000])
    view = summarise_counted(histogram(values, last=100_000))["quantities"]["latency"]["per_release"]
    assert view["p99_ns"] is not None
    assert view["p99_9_ns"] is None  # the smaller of two beyond the last bin
    assert view["p99_99_ns"] == view["max_ns"] == 900_000


def test_nothing_measured_has_no_values() -> None:
    empty = histogram(np.empty(0, dtype=np.int64))
    view = summarise_counted(empty)["quantities"]["latency"]["per_release"]
    assert view.pop("n") == 0
    assert set(view.values()) == {None}


def intervals(received: list[int], lost: list[int], maxima_ns: list[int]) -> Intervals:
    return Intervals(*(np.array(values, dtype=np.int64) for values in (received, lost, maxima_ns)))


def test_lost_messages_are_later_than_any() -> None:
    summary = summarise_counted(intervals([1000, 998], [0, 2], [90_000, 70_000]))
    assert summary["counts"] == {"released": 2000, "served": 1998, "lost": 2, "warm_up": 0}
    view = summary["quantities"]["latency"]
    assert (view["per_release"]["max_ns"], view["as_served"]["max_ns"]) == ("lost", 90_000)
    assert (view["per_release"]["p99_9_ns"], view["per_release"]["p99_99_ns"]) == (None, "lost")


def test_all_lost() -> None:
    data = intervals([0, 0], [5, 5], [0, 0])
    view = summarise_counted(data)["quantities"]["latency"]["per_release"]
    assert (view["n"], view["min_ns"], view["p50_ns"], view["max_ns"]) == (10, None, "lost", "lost")
    assert data.misses(1) == PossibleMisses(10, 10, 10, 10)


def test_a_value_passed_over_as_many_releases_as_periods_fit_into_it() -> None:
    """Bins of half a period: those from 1 on passed over one, those from 2.5 on two."""
    data = Histogram(np.array([500, 1_000, 2_500]), 500, np.array([4, 2, 1]), skips_after_ns=1_000)
    assert data.misses(10_000).skipped == (4, 4)
    wide = Histogram(np.array([500]), 1_000, np.array([3]), skips_after_ns=1_000)
    assert wide.misses(10_000).skipped == (0, 3)
    beyond = Histogram(np.array([0]), 500, np.array([1]), 2, 4_000, below_ns=6_000, skips_after_ns=1_000)
    assert beyond.misses(10_000).skipped == (4 + 5, 5 + 5)


def findings(data: Histogram | Intervals, period_ns: int | None = 1_000_000) -> dict[str, str]:
    support = support_of_counted(data, Requirement(1_000_000, 1e-3), period_ns)
    assert (support.design_effect, support.effective_n) == (1, data.misses(1).n)  # taken for independent
    return {finding.type: finding.consequence for finding in support.findings}


def test_what_cannot_be_looked_at_is_a_finding(generator: np.random.Generator) -> None:
    values = (50_000 + generator.exponential(40_000, 5000)).astype(np.int64)
    assert findings(histogram(values)) == {"no_order": "info"}
    assert findings(histogram(values), None) == {"no_order": "info", "no_period": "info"}
    assert findings(intervals([5000], [0], [7])) == {"intervals_only": "info"}
    assert findings(intervals([5000], [3], [7])) == {"intervals_only": "info", "lost": "info"}


def test_gates_that_need_no_order_are_kept(generator: np.random.Generator) -> None:
    values = (50_000 + generator.exponential(40_000, 100_000)).astype(np.int64)
    assert findings(histogram(values, width_ns=100_000)) == {"no_order": "info", "quantisation": "info"}
    values[:2000] = 2_000_000 + generator.integers(0, 50_000, 2000)
    assert findings(histogram(values)) == {"no_order": "info", "mixture": "info"}
    assert findings(histogram(np.full(5000, 7_500))) == {"no_order": "info", "constant": "info"}
    few = histogram(np.array([7_500, 9_500, 11_000]))
    assert findings(few) == {"no_order": "info", "too_few_samples": "refuse"}


def test_what_a_tool_dropped_refuses_the_bound() -> None:
    data = Histogram(np.array([3000]), US, np.array([100]), over_from_ns=1_000_000, dropped=True)
    assert findings(data)["dropped"] == "refuse"
    assert support_of_counted(data, Requirement(2_000_000, 0.1), None).upper is None
    assert data.max_ns is None


def test_skips_that_cannot_be_counted_refuse_the_bound() -> None:
    data = replace(histogram(np.array([50_000] * 2000 + [23_000_000])), skips_after_ns=PERIOD_UNKNOWN)
    assert data.misses(1_000_000) == PossibleMisses(2001, 1, 1)
    assert findings(data)["skips_unseen"] == "refuse"
    support = support_of_counted(data, Requirement(1_000_000, 0.1), None)
    assert support.upper is None and support.lower is not None and support.lower > 0
    ours = estimates_counted(data, 1_000_000, 0.95, ["50"]).quantities["miss_ratio"]
    assert ours.lower > 0 and np.isnan(ours.upper)


def test_skips_after_values_that_are_not_known_refuse_the_bound() -> None:
    """Two values beyond the last bin, of any lateness: the largest is stated, or it is not."""
    data = replace(histogram(np.full(2_000, 50_000)), over=2, over_from_ns=60_000, below_ns=None)
    data = replace(data, skips_after_ns=1_000_000)
    asked = Requirement(100_000, 0.1)
    assert data.max_ns is None and data.misses(100_000).surely == 0
    assert findings(data)["dropped"] == "refuse" and support_of_counted(data, asked, None).upper is None
    assert np.isnan(estimates_counted(data, 100_000, 0.95, ["50"]).quantities["miss_ratio"].upper)
    known, unpassed = replace(data, below_ns=5_000_000), replace(data, skips_after_ns=None)
    for one in (known, unpassed):  # of a tool that passes nothing over how late they were does not matter
        assert "dropped" not in findings(one) and support_of_counted(one, asked, None).upper is not None


def test_bounds_per_hour_need_a_period() -> None:
    data = histogram(np.full(36_000, 5000))
    support = support_of_counted(data, Requirement(1_000_000), 100_000_000)
    assert support.upper is not None and support.upper_per_hour == pytest.approx(support.upper * 36_000)
    assert support_of_counted(data, Requirement(1_000_000), None).upper_per_hour is None


def test_a_return_level_that_is_asked_for_needs_order() -> None:
    data = histogram(np.arange(1000) * US)
    assert support_of_counted(data, Requirement(1_000_000), 100_000).return_level is None
    level = support_of_counted(data, Requirement(1_000_000), 100_000, 24.0).return_level
    assert level is not None and (level.hours, level.upper_ns) == (24.0, None)
    assert [finding.type for finding in level.findings] == ["no_order"]


def test_a_comparison_of_histograms_agrees_with_that_of_their_values(generator: np.random.Generator) -> None:
    a = (50_000 + generator.exponential(40_000, 60_000)).astype(np.int64)
    b = (55_000 + generator.exponential(60_000, 60_000)).astype(np.int64)
    asked = 300_000, 0.95, COMPARED[:4]
    exact = compare([(estimates(a, *asked), estimates(b, *asked))])
    binned = compare([(estimates_counted(histogram(a), *asked), estimates_counted(histogram(b), *asked))])
    assert [shift.outcome for shift in binned.shifts] == [shift.outcome for shift in exact.shifts]
    for ours, shift in zip(binned.shifts, exact.shifts, strict=True):
        assert abs(ours.difference - shift.difference) <= US


@pytest.mark.parametrize(
    "uncertain",
    [
        {"over": 40, "over_from_ns": 1_000_000, "below_ns": 100_000_000, "skips_after_ns": 1_000_000},
        {"dropped": True, "over_from_ns": 1_000_000},
    ],
    ids=["skipped after it", "left out"],
)
def test_of_repeats_a_miss_ratio_that_is_not_known_is_not_told(uncertain: dict[str, Any]) -> None:
    """The sure misses of the one are half those of the other: those that are possible need not be."""
    few, many = (
        replace(histogram(np.repeat([50_000, 600_000], [9_500, late])), **uncertain) for late in (100, 500)
    )
    one, other = (estimates_counted(data, 500_000, 0.95, ["50"]) for data in (few, many))
    gate = parse_gate("miss_ratio<+1e-3")
    for pairs in ([(one, other)] * 4, [(other, one)] * 4):
        shifts = {shift.quantity: shift for shift in compare(pairs).shifts}
        assert shifts["miss_ratio"].outcome == "not told"
        assert shifts["miss_ratio"].effect is not None
        assert shifts["miss_ratio"].effect.words == "not known of every run"
        assert compare(pairs).outcome == "not told"  # it decides, where anything may have missed
        assert judge_gate(gate, pairs).outcome == "inconclusive"
    assert math.isnan(runs_apart("miss_ratio", [[one, other]]))


def test_of_one_run_each_a_miss_ratio_reaches_from_what_is_sure_to_what_is_possible() -> None:
    inside = histogram(np.repeat([50_000, 500_000], [9_000, 1_000]))
    certain = histogram(np.repeat([50_000, 900_000], [5_000, 5_000]))
    one, other, far = (
        estimates_counted(data, deadline_ns, 0.95, [])
        for data, deadline_ns in ((inside, 500_500), (inside, 400_000), (certain, 500_500))
    )
    assert math.isnan(one.quantities["miss_ratio"].value)  # 0 to 1,000 of 10,000
    (found,) = compare([(one, other)]).shifts
    assert found.outcome == "not told" and found.lower < 0 < 0.1 < found.upper
    (found,) = compare([(one, one)]).shifts
    assert found.outcome == "not told" and found.lower < -0.1 and found.upper > 0.1
    (found,) = compare([(one, far)]).shifts
    assert found.outcome == "worse" and found.lower < 0.4 < found.upper


def test_a_difference_within_a_bin_is_no_difference() -> None:
    a, b = np.full(10_000, 50_100), np.full(10_000, 50_900)
    pair = [estimates_counted(histogram(values), None, 0.95, COMPARED) for values in (a, b)]
    assert compare([(pair[0], pair[1])]).outcome in ("no difference", "not enough data")


def test_intervals_have_no_quantiles_to_compare() -> None:
    data = intervals([1000] * 100, [0] * 100, [90_000] * 100)
    one = estimates_counted(data, 50_000, 0.95, COMPARED)
    outcomes = {shift.quantity: shift.outcome for shift in compare([(one, one)]).shifts}
    assert outcomes.pop("miss_ratio") == "not told"
    assert set(outcomes.values()) == {"not enough data"}
