"""Effects of a factor at their edges: by hand."""

from __future__ import annotations

import math

import pytest

from rtmeter.statistics.effects import Effect, Pair, Said, Stratum, effect
from rtmeter.statistics.estimates import Estimates
from rtmeter.statistics.halving import RATIO
from rtmeter.statistics.over_quantities import decides, together
from rtmeter.statistics.quantiles import Estimate


def run(value: float, width: float = 1.0) -> Estimates:
    """A run whose p99 is known to within a factor of ``width``."""
    return Estimates(1000, 0.95, {"p99": Estimate(value, value / width, value * width, 1.0)})


def found(*strata: tuple[Pair, ...], added: bool = False) -> Effect:
    named = [Stratum({"load": str(place)}, pairs) for place, pairs in enumerate(strata)]
    return effect("p99", named, 0.95, added=added)


def added(*differences: float) -> Effect:
    """Of a reference that took 100 in each run."""
    return found(tuple((run(100.0), run(100.0 + one)) for one in differences), added=True)


def test_that_there_is_no_difference_is_said_above_the_larger_of_both_ways() -> None:
    pairs = tuple((run(100.0), run(100.0 * math.exp(one))) for one in (-0.3, -0.2, -0.1))
    assert found(pairs).none_above == pytest.approx(1 / found(pairs).lower)
    turned = found(tuple((b, a) for a, b in pairs))
    assert turned.none_above == pytest.approx(turned.upper) == pytest.approx(found(pairs).none_above)


def test_the_repeats_that_it_takes_make_up_for_what_each_run_leaves_open() -> None:
    """Runs that agree, each known to a factor of 4 alone: two of each reach two halvings, eight one."""
    wide = run(100.0, width=4.0)
    told = found(((wide, wide),) * 2)
    assert (told.said, told.repeats) == ("not told", 8)


def test_of_cells_with_one_run_each_no_number_of_repeats_is_said() -> None:
    told = found(*(((run(100.0), run(100.0 * math.exp(one))),) for one in (0.1, 3.0)))
    assert (told.said, told.repeats, told.repeats_seen) == ("not told", None, None)
    assert math.isnan(told.apart)


@pytest.mark.parametrize(
    ("differences", "said"),
    [
        ((-25, 25, -25, 25), "no difference"),  # 46 either way
        ((-50, 50, -50, 50), "not told"),  # 92 either way: a halving is not ruled out
        ((-90, 10, -90, 10), "not told"),  # from -132 to 52
        ((0, 100, 0, 100), "not told"),  # from -42 to 142: nor is twice as much
        ((10, 110, 10, 210), "not told"),
        ((100, 110, 100, 110), "worse"),
        ((-60, -70, -60, -70), "better"),
        ((0, 0, 0, 0), "no difference"),
    ],
)
def test_of_what_is_added_a_half_less_and_as_much_again_are_ruled_out(
    differences: tuple[float, ...], said: str
) -> None:
    assert added(*differences).said == said


def test_a_time_is_at_least_none() -> None:
    ends = added(-90, 90, -90, 90).level_interval
    assert ends is not None and ends[0] == 0.0 and ends[1] > 200


def test_nothing_more_of_nothing_is_no_difference() -> None:
    assert found(((run(0.0), run(0.0)),) * 3).said == "no difference"


def test_the_mean_of_times_is_the_geometric_one() -> None:
    told = found(tuple((run(one), run(2 * one)) for one in (1.0, 1.0, 8.0)))
    assert (told.reference, told.level) == (pytest.approx(2.0), pytest.approx(4.0))


def of(quantity: str, said: Said, reference: float = 1.0, level: float = 1.0) -> Effect:
    return Effect(quantity, reference, level, math.nan, math.nan, math.nan, said)


def test_the_miss_ratio_decides_where_anything_missed_or_may_have() -> None:
    p50, p99 = of("p50", "worse"), of("p99", "no difference")
    assert decides([p50, p99]) is p99
    assert decides([p50]) is p50, "of runs too short for a p99"
    assert decides([p50, p99, of(RATIO, "no difference", 0.0, 0.0)]) is p99
    for missed in (of(RATIO, "no difference", 0.0, 1e-6), of(RATIO, "not told", math.nan, 0.0)):
        assert decides([p50, p99, missed]) is missed


@pytest.mark.parametrize(
    ("decided", "other", "said"),
    [
        ("better", "worse", "better"),
        ("no difference", "worse", "worse"),
        ("not told", "worse", "worse"),
        ("no difference", "better", "better"),
        ("not told", "better", "not told"),
        ("worse", "better", "worse"),
        ("no difference", "not told", "no difference"),
    ],
)
def test_what_the_others_say_counts_where_the_one_that_decides_says_nothing(
    decided: Said, other: Said, said: Said
) -> None:
    effects = [of("p50", other), of("p99", decided)]
    assert together(effects) == said
    assert together(effects, worse_somewhere=True) == "worse"
