"""Bounds, margins and gates have the sides that they state: each on estimates worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, t

from rtmeter.statistics.blocks import blocks_of
from rtmeter.statistics.clock_offset import Exchanges
from rtmeter.statistics.compare import compare
from rtmeter.statistics.counted import estimates_counted
from rtmeter.statistics.counted_data import Histogram
from rtmeter.statistics.drift import Drift
from rtmeter.statistics.estimates import Estimates
from rtmeter.statistics.gate import judge_gate, parse_gate
from rtmeter.statistics.gates import growth
from rtmeter.statistics.quantiles import Estimate
from rtmeter.statistics.trend import Trend

S = 10**9


def known(value: float, lower: float | None = None, upper: float | None = None) -> Estimate:
    """An estimate; sure if it has no interval."""
    return Estimate(value, value if lower is None else lower, value if upper is None else upper, 1.0)


def pairs(logs: list[float], quantities: int) -> list[tuple[Estimates, Estimates]]:
    """Pairs of sure values of each quantity that differ by these logarithms."""
    names = [f"p{number}" for number in range(1, quantities + 1)]
    return [
        (
            Estimates(1000, 0.95, {name: known(100.0) for name in names}),
            Estimates(1000, 0.95, {name: known(100.0 * np.exp(log)) for name in names}),
        )
        for log in logs
    ]


@pytest.mark.parametrize("quantities", [1, 5])
def test_intervals_over_pairs_are_two_sided_and_hold_together(quantities: int) -> None:
    logs = [0.10, 0.12, 0.14, 0.12]
    each = 0.05 / quantities
    reach = t.ppf(1 - each / 2, 3) * np.std(logs, ddof=1) / 2
    for shift in compare(pairs(logs, quantities)).shifts:
        ends = [100 * np.exp(log) - 100 for log in (0.12, 0.12 - reach, 0.12 + reach)]
        assert [shift.difference, shift.lower, shift.upper] == pytest.approx(ends)


def test_what_one_quantity_shows_five_at_once_do_not() -> None:
    """Student of three pairs: 7.2 or 16.6 times the standard error."""
    logs = [0.10, 0.14, 0.18]
    assert compare(pairs([log - 0.039 for log in logs], 1)).outcome == "worse"
    assert compare(pairs([log - 0.039 for log in logs], 5)).outcome == "no difference"


def test_pairs_are_no_surer_than_their_runs() -> None:
    """Ends of the mean's interval: the further ones of four runs' intervals, in quadrature, over the number
    of pairs."""
    wide = [
        (
            Estimates(9, 0.95, {"p50": known(100, 97, 110)}),
            Estimates(9, 0.95, {"p50": known(120, 116, 121)}),
        )
    ] * 4
    (shift,) = compare(wide).shifts
    reach = np.hypot(np.log(120 / 116), np.log(110 / 100)) / 2
    assert shift.lower == pytest.approx(120 * np.exp(-reach) - 100)
    assert shift.upper == pytest.approx(120 * np.exp(reach) - 100)


def test_no_pairs_put_b_below_nothing() -> None:
    """Two pairs that agree on no size: below A itself there is nothing, and above no end that they tell."""
    (shift,) = compare(pairs([-3.0, 0.5], 1)).shifts
    assert shift.outcome == "not told"
    assert -100 < shift.lower < shift.difference and np.isnan(shift.upper)


def test_pairs_whose_times_are_not_above_zero_are_told_by_their_difference() -> None:
    """Timers that fire early have no quotient."""
    early = [
        (Estimates(9, 0.95, {"p50": known(-100.0)}), Estimates(9, 0.95, {"p50": known(-100.0 + d)}))
        for d in (10.0, 12.0, 14.0)
    ]
    (shift,) = compare(early).shifts
    reach = t.ppf(0.975, 2) * 2 / np.sqrt(3)
    assert (shift.lower, shift.upper) == pytest.approx((12 - reach, 12 + reach))
    assert shift.outcome == "worse" and shift.effect is not None and "no quotient" in shift.effect.words
    alike = compare([(a, a) for a, _ in early]).shifts[0]
    assert (alike.lower, alike.upper, alike.outcome) == (0, 0, "no difference")
    unsure = compare([*early[:1], (early[1][1], early[1][0])]).shifts[0]
    assert unsure.outcome == "not told"


@pytest.mark.parametrize(
    ("b", "outcome"),
    [
        (known(-100.0), "no difference"),
        (known(-100.0, -101.0, -99.0), "not told"),  # it has no half that could be ruled out
        (known(-100.0, -100.0, math.inf), "not told"),
        (known(-100.0, -1e9, 1e9), "not told"),
        (known(-90.0, -91.0, -89.0), "worse"),
        (known(-110.0, -111.0, -109.0), "better"),
    ],
)
@pytest.mark.parametrize("a", [-100.0, 0.0])
def test_a_time_that_is_not_above_zero_is_without_a_difference_only_where_nothing_differs(
    a: float, b: Estimate, outcome: str
) -> None:
    b = known(b.value + 100 + a, b.lower + 100 + a, b.upper + 100 + a)
    one, other = (Estimates(2_000, 0.95, {"p50": found}) for found in (known(a), b))
    found = compare([(one, other)])
    assert (found.shifts[0].outcome, found.outcome) == (outcome, outcome)


def test_a_histograms_miss_ratio_has_a_two_sided_interval() -> None:
    data = Histogram(np.array([0, 1_000, 5_000]), 1_000, np.array([900, 80, 20]))
    found = estimates_counted(data, 3_000, 0.95, ("50", "99")).quantities["miss_ratio"]
    exact = binomtest(20, 1000).proportion_ci(1 - 0.05 / 3, "exact")
    assert (found.lower, found.upper) == pytest.approx((exact.low, exact.high))
    assert found.value == 0.02


@pytest.mark.parametrize(
    ("b", "outcome"),
    [
        (known(105), "fail"),  # at the gate, and sure: not below it
        (known(104.9), "pass"),
        (known(105, 104, 105), "inconclusive"),
        (known(104, 103, 105), "inconclusive"),  # up to the gate
        (known(104, 103, 104.9), "pass"),
        (known(106, 105, 107), "fail"),
        (known(106, 104.9, 107), "inconclusive"),
    ],
)
def test_a_gate_is_passed_below_it_only(b: Estimate, outcome: str) -> None:
    sure = [(Estimates(2_000, 0.95, {"p99": known(100)}), Estimates(2_000, 0.95, {"p99": b}))]
    assert judge_gate(parse_gate("p99<+5ns"), sure).outcome == outcome


def test_a_share_of_nothing_is_no_gate() -> None:
    def judged(a: float) -> str:
        sure = [(Estimates(2_000, 0.95, {"p99": known(a)}), Estimates(2_000, 0.95, {"p99": known(-7)}))]
        return judge_gate(parse_gate("p99<+5%"), sure).outcome

    assert [judged(a) for a in (0, -5, 1)] == ["inconclusive", "inconclusive", "pass"]


@pytest.mark.parametrize("tight", ["start", "end"])
def test_the_error_of_a_clock_offset_is_the_larger_one_of_both_ends(tight: str) -> None:
    """Nine messages took 2 ms there and back; the one at the run's start, or end, no time at all."""
    at = np.arange(10) * S
    way = np.full(10, 1_000_000)
    way[0 if tight == "start" else -1] = 0
    found = Exchanges()
    found.add(at, at + 7_000 + way, at + 7_000 + way, at + 2 * way)
    offset = found.offset()
    assert offset is not None
    assert 900_000 < offset.error_ns < 2_100_000  # one way of those that took some time, or both


def test_the_size_of_a_change_of_maxima() -> None:
    """Of a tail without any scale a change has no end, and what does not change has the size of 1."""
    even = blocks_of(np.full(20_000, 5_000))
    assert even is not None
    (maxima, effect), *_ = even.series()
    assert effect(maxima, [100]) == 1.0
    assert effect(np.repeat([5_000.0, 5_001.0], 100), [100]) == np.inf
    _, ratio = even.series()[1]
    assert ratio(np.repeat([1.0, 2.0], 100), [100]) == pytest.approx(200.5 / 100.5)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("came_to_ns", "consequence"), [(405.4, "info"), (405.5, "refuse"), (2_000.0, "refuse")]
)
def test_a_drift_of_a_short_run_is_refused_from_ln_1_5_of_its_jitter_on(
    sign: int, came_to_ns: float, consequence: str
) -> None:
    trend = Trend(sign * 10.0, sign * 9.0, sign * 11.0, sign * came_to_ns, 1_000.0)
    (finding,) = growth(Drift("drifting", trend, 0, 0, ()), np.zeros(500, dtype=np.int64), None)
    assert (finding.type, finding.consequence, finding.value) == ("drift", consequence, sign * 10.0)
    (finding,) = growth(Drift("bounded", trend, 0, 0, (), rises=True), np.zeros(500, dtype=np.int64), None)
    assert (finding.type, finding.consequence) == ("stationarity", consequence)
    assert ("rises" if sign > 0 else "falls") in finding.message
    (finding,) = growth(Drift("overloaded", trend, 0, 0, ()), np.zeros(500, dtype=np.int64), None)
    assert (finding.type, finding.consequence) == ("overload", "refuse")
