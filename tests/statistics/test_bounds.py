import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from rtmeter.statistics.bounds import (
    beyond_the_horizon,
    design_effect_of,
    expected_releases_needed,
    miss_ratio_bounds,
    misses_allowed,
    per_hour,
    plan,
    releases_needed,
)

MS = 1_000_000


@given(st.integers(1, 10**6), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_bounds_agree_with_scipy(n: int, data: st.DataObject, confidence: float) -> None:
    misses = data.draw(st.integers(0, n))
    lower, upper = miss_ratio_bounds(misses, n, confidence)
    below = binomtest(misses, n, alternative="greater").proportion_ci(confidence, "exact")
    above = binomtest(misses, n, alternative="less").proportion_ci(confidence, "exact")
    assert lower == pytest.approx(below.low, rel=1e-9, abs=1e-11)
    assert upper == pytest.approx(above.high, rel=1e-9, abs=1e-11)


def test_no_releases_say_nothing() -> None:
    assert miss_ratio_bounds(0, 0, 0.95) == (0.0, 1.0)


def test_the_rule_of_three() -> None:
    """3/n at 95 % without a miss (Hanley and Lippman-Hand, JAMA 249, 1983)."""
    assert miss_ratio_bounds(0, 10**6, 0.95)[1] == pytest.approx(3e-6, rel=0.01)


def test_a_design_effect_divides_misses_and_releases() -> None:
    assert miss_ratio_bounds(10, 1000, 0.95, 2.0) == miss_ratio_bounds(5, 500, 0.95)


@pytest.mark.parametrize(("ratio", "releases"), [(1e-6, 2_995_731), (1e-3, 2_995), (1e-9, 2_995_732_273)])
def test_a_run_without_a_miss_must_be_this_long(ratio: float, releases: int) -> None:
    assert releases_needed(0, ratio, 0.95) == releases
    assert releases == math.ceil(math.log(0.05) / math.log1p(-ratio))


@given(st.integers(0, 30), st.floats(1e-6, 0.5), st.floats(1.0, 8.0))
def test_the_needed_releases_are_the_fewest(misses: int, ratio: float, effect: float) -> None:
    n = releases_needed(misses, ratio, 0.95, effect)
    assert miss_ratio_bounds(misses, n, 0.95, effect)[1] <= ratio
    assert n <= max(misses, 1) or miss_ratio_bounds(misses, n - 1, 0.95, effect)[1] > ratio


@given(st.integers(1, 10**6), st.floats(1e-5, 0.5), st.floats(1.0, 8.0))
def test_one_more_miss_than_allowed_does_not_pass(n: int, ratio: float, effect: float) -> None:
    most = misses_allowed(n, ratio, 0.95, effect)
    assert most is None or miss_ratio_bounds(most, n, 0.95, effect)[1] <= ratio
    assert miss_ratio_bounds(0 if most is None else most + 1, n, 0.95, effect)[1] > ratio


def test_releases_needed_start_where_they_are_told() -> None:
    assert releases_needed(0, 1e-3, 0.95, at_least=5000) == 5000


def test_a_ratio_that_is_not_met_needs_no_more_releases_but_a_better_system() -> None:
    assert expected_releases_needed(10, 1000, 0.01, 0.95) is None
    assert expected_releases_needed(10, 1000, 0.005, 0.95) is None


def test_the_expected_need_holds_when_misses_go_on_as_before() -> None:
    n = expected_releases_needed(5, 1000, 0.0052, 0.95)
    assert n is not None and n > releases_needed(5, 0.0052, 0.95)
    assert miss_ratio_bounds(round(n * 0.005), n, 0.95)[1] == pytest.approx(0.0052, rel=0.001)


def test_misses_an_hour() -> None:
    assert per_hour(1e-6, MS) == pytest.approx(3.6)


def test_a_plan_states_50_minutes_for_one_in_a_million_at_1_khz() -> None:
    first, *more = plan(1e-6, 0.95, MS)
    assert first.misses_allowed == 0 and first.releases == 2_995_731
    assert first.hours == pytest.approx(0.832, abs=0.001)
    assert [row.releases for row in more] == sorted(row.releases for row in more)


def test_a_plan_for_clustered_misses_takes_longer() -> None:
    assert plan(1e-6, 0.95, MS, design_effect_of(0.5))[0].releases == pytest.approx(3 * 2_995_731, rel=1e-6)


@pytest.mark.parametrize("horizon", [1.0, 10.0, 25.0])
def test_as_many_misses_as_the_horizon_has_room_for_are_not_beyond_it(horizon: float) -> None:
    """Of every ratio of whole thousandths, whatever floats make of their products."""
    for thousandths in range(1, int(1_000 / horizon)):
        room = thousandths * int(horizon) * 5
        assert not beyond_the_horizon(room, 5_000, thousandths / 1_000, horizon), thousandths
        assert beyond_the_horizon(room + 1, 5_000, thousandths / 1_000, horizon), thousandths
