"""Effects of a factor: by hand where they can be, simulated where they hold together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rates import Rates, Sized
from scipy.stats import norm, t
from simulation import Simulation

from rtmeter.statistics.effects import Stratum, confidences, effect, interactions
from rtmeter.statistics.estimates import Estimates
from rtmeter.statistics.halving import HALVING, RATIO, log_odds, repeated_reach, repeats_to_show
from rtmeter.statistics.quantiles import Estimate

N = 1_000_000
QUANTITIES = ("p50", "p99", "p99.9", RATIO)


def run(**values: float) -> Estimates:
    """A run of sure values; the ratio is that of a million releases."""
    return Estimates(N, 0.95, {name: Estimate(value, value, value, 1.0) for name, value in values.items()})


def strata(logs: dict[str, list[float]]) -> list[Stratum]:
    """For each level of the factor ``load`` pairs whose p99 differ by these logarithms."""
    return [
        Stratum({"load": load}, tuple((run(p99=1000.0), run(p99=1000.0 * math.exp(d))) for d in differences))
        for load, differences in logs.items()
    ]


def test_the_interval_is_students_over_the_spread_within_strata() -> None:
    """Idle and under load the effect is another; the spread between runs is what is left within each."""
    found = effect("p99", strata({"idle": [0.1, 0.2, 0.3], "cpu80": [1.1, 1.2, 1.3]}), 0.99)
    assert math.log(found.times) == pytest.approx(0.7)
    reach = t.ppf(0.995, 4) * 0.1 / math.sqrt(6)
    assert math.log(found.upper) == pytest.approx(0.7 + reach)
    assert math.log(found.lower) == pytest.approx(0.7 - reach)
    assert found.said == "worse"


def test_without_repeats_the_strata_are_the_spread() -> None:
    found = effect("p99", strata({"idle": [0.1], "cpu80": [0.3], "erle": [0.2]}), 0.95)
    assert math.log(found.upper) == pytest.approx(0.2 + t.ppf(0.975, 2) * 0.1 / math.sqrt(3))
    assert interactions("p99", strata({"idle": [-3.0], "cpu80": [3.0]}), 0.95) == []


def test_runs_that_happen_to_agree_are_no_surer_than_each() -> None:
    wide = Estimates(9, 0.95, {"p99": Estimate(100.0, 50.0, 200.0, 1.0)})
    found = effect("p99", [Stratum({}, ((wide, wide),) * 4)], 0.95)
    assert math.log(found.upper) == pytest.approx(math.sqrt(2 * 4) / 4 * HALVING)


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([(9.0, math.inf), (9.0, math.inf)], "worse"),
        ([(math.inf, 9.0), (math.inf, 9.0)], "better"),
        ([(math.inf, math.inf), (math.inf, math.inf)], "no difference"),
        ([(9.0, math.inf), (9.0, 9.0)], "not told"),
        ([(9.0, math.inf)], "not told"),  # one pair: how runs differ anyway is not seen
        ([(math.nan, math.inf), (9.0, math.inf)], "not told"),
    ],
)
def test_a_quantile_that_is_lost_is_judged_by_the_runs_that_lost_it(
    runs: list[tuple[float, float]], said: str
) -> None:
    pairs = tuple((run(p99=reference), run(p99=level)) for reference, level in runs)
    found = effect("p99", [Stratum({}, pairs)], 0.95)
    assert found.said == said and found.words and math.isnan(found.times)


@pytest.mark.parametrize(
    ("pairs", "confidence", "told"), [(2, 0.95, False), (3, 0.95, True), (3, 0.98, False)]
)
def test_what_the_runs_do_not_tell_alone_that_are_lost_takes_as_many_as_chance_would_not_come_to(
    pairs: int, confidence: float, told: bool
) -> None:
    """Each run just loses the quantile, or just does not: alike ones would do so in 2 of 4^pairs cases."""
    kept, lost = (Estimate(9.0, 8.0, math.inf, 1.0), Estimate(math.inf, 8.0, math.inf, 1.0))
    kept_run, lost_run = (Estimates(N, 0.95, {"p99": one}) for one in (kept, lost))
    for pair, said in (((kept_run, lost_run), "worse"), ((lost_run, kept_run), "better")):
        found = effect("p99", [Stratum({}, (pair,) * pairs)], confidence)
        assert found.said == (said if told else "not told") and found.words


@pytest.mark.parametrize(
    ("kept_upper", "lost_lower", "told"),
    [(9.0, math.inf, True), (math.inf, math.inf, False), (9.0, 8.0, False)],
)
def test_two_pairs_tell_what_is_lost_where_both_sides_of_each_are_sure(
    kept_upper: float, lost_lower: float, told: bool
) -> None:
    kept, lost = (Estimate(9.0, 8.0, kept_upper, 1.0), Estimate(math.inf, lost_lower, math.inf, 1.0))
    kept_run, lost_run = (Estimates(N, 0.95, {"p99": one}) for one in (kept, lost))
    for pair, said in (((kept_run, lost_run), "worse"), ((lost_run, kept_run), "better")):
        assert effect("p99", [Stratum({}, (pair,) * 2)], 0.95).said == (said if told else "not told")


def test_where_a_time_is_zero_the_mean_is_the_plain_one() -> None:
    pairs = (run(p99=0.0), run(p99=10.0)), (run(p99=10.0), run(p99=40.0))
    found = effect("p99", [Stratum({}, pairs)], 0.95)
    assert (found.reference, found.level) == (5, 25)
    assert found.words == "not above zero in every run: no quotient"


def test_a_ratio_is_compared_by_its_odds_within_0_and_1() -> None:
    pairs = tuple(
        (run(miss_ratio=a), run(miss_ratio=b)) for a, b in ((0.38, 0.007), (0.4, 0.008), (0.36, 0.006))
    )
    found = effect(RATIO, [Stratum({}, pairs)], 0.99)
    assert found.said == "better" and 0 < found.lower < found.times < found.upper < 1
    assert found.level_interval is not None
    assert 0 < found.level_interval[0] < 0.007 < found.level_interval[1] < 0.38
    none = effect(RATIO, [Stratum({}, ((run(miss_ratio=0.0), run(miss_ratio=0.0)),) * 3)], 0.95)
    assert none.words == "no miss in any run" and none.level_interval is not None
    assert 0 <= none.level_interval[0] <= none.level_interval[1] <= 1
    all_of_them = effect(RATIO, [Stratum({}, ((run(miss_ratio=0.5), run(miss_ratio=1.0)),) * 3)], 0.95)
    assert all_of_them.level_interval is not None and all_of_them.level_interval[1] <= 1


@pytest.mark.parametrize(("reference", "level"), [(0.0, 0.3), (1.0, 0.3), (0.0, 1e-3), (1.0, 0.0)])
def test_where_none_or_all_missed_the_level_is_still_said_as_it_is(reference: float, level: float) -> None:
    """Odds of 0 and of infinity: half a miss stands for none."""
    found = effect(
        RATIO, [Stratum({}, ((run(miss_ratio=reference), run(miss_ratio=level)),) * 3)], 0.95
    ).level_interval
    assert found is not None
    low, high = found
    assert 0 < low <= max(level, 0.5 / N) <= high < 1, (low, high)


def test_dependence_widens_the_odds() -> None:
    odds, error = log_odds(Estimate(0.1, 0, 0, 1.0), 1000)
    assert (odds, error) == pytest.approx((math.log(100.5 / 900.5), math.sqrt(1 / 100.5 + 1 / 900.5)))
    assert log_odds(Estimate(0.1, 0, 0, 10.0), 1000)[1] == pytest.approx(math.sqrt(1 / 10.5 + 1 / 90.5))
    pairs = ((run(miss_ratio=0.1), run(miss_ratio=0.1)),) * 3
    found = effect(RATIO, [Stratum({}, pairs)], 0.95)
    error = log_odds(Estimate(0.1, 0, 0, 1.0), N)[1]
    assert math.log(found.upper) == pytest.approx(norm.ppf(0.975) * error * math.sqrt(2 / 3))


@pytest.mark.parametrize(
    ("differences", "said"), [([0.0, 0.69], "not told"), ([0.02, 0.06], "no difference")]
)
def test_a_halving_ruled_out_is_no_difference(differences: list[float], said: str) -> None:
    found = effect("p99", strata({"idle": differences}), 0.95)
    assert found.said == said
    assert (found.repeats is None) == (said == "no difference")


def test_the_repeats_that_it_takes_are_the_fewest() -> None:
    needed = repeats_to_show(0.35, 1, 0.9875)
    assert needed is not None
    assert repeated_reach(0.35, needed, 1, 0.9875) <= HALVING < repeated_reach(0.35, needed - 1, 1, 0.9875)
    assert repeats_to_show(0.35, 4, 0.9875) < needed
    pairs = {"idle": [0.0, 0.69, 1.4]}
    found = effect("p99", strata(pairs), 0.95)
    assert found.repeats == repeats_to_show(float(np.std([0.0, 0.69, 1.4], ddof=1)), 1, 0.95)


@pytest.mark.parametrize("apart", [0.5, 0.05])
def test_an_interaction_is_named_where_it_is_larger_than_the_effect(apart: float) -> None:
    """Around an effect of 0.2: by 0.5 it is, by 0.05 it is none worth a name."""
    around = np.array([-0.01, 0.0, 0.01])
    found = interactions(
        "p99", strata({"idle": list(0.2 - apart + around), "cpu80": list(0.2 + apart + around)}), 0.99
    )
    assert [(one.factor, one.at) for one in found] == (
        [("load", "idle"), ("load", "cpu80")] if apart > 0.2 else []
    )
    if found:
        assert math.log(found[0].times) == pytest.approx(0.2 - apart)
        assert math.log(found[0].overall) == pytest.approx(0.2)


def planted(generator: np.random.Generator, log: float, strata_count: int, runs: int) -> list[Stratum]:
    """Quantities that all change by ``log``, of runs that differ by a tenth."""
    made = []
    for number in range(strata_count):
        pairs = []
        for _ in range(runs):
            a, b = (
                {name: 1e-3 * math.exp(shift + generator.normal(0, 0.1)) for name in QUANTITIES}
                for shift in (0.0, log)
            )
            pairs.append((run(**a), run(**b)))
        made.append(Stratum({"load": str(number)}, tuple(pairs)))
    return made


def said_and_covered(
    generator: np.random.Generator, log: float, strata_count: int, runs: int
) -> tuple[bool, bool, bool]:
    """Whether any of all quantities is called different, over all or at a level of another factor, whether
    all intervals hold together, and whether an interaction is named."""
    made, contrasts = planted(generator, log, strata_count, runs), len(QUANTITIES) * strata_count
    each, alone = confidences(0.95, len(QUANTITIES), contrasts if strata_count > 1 else 0)
    found = [effect(name, made, each) for name in QUANTITIES]
    named = [one for name in QUANTITIES for one in interactions(name, made, alone)]
    return (
        any(one.said in ("better", "worse") for one in (*found, *named)),
        all(math.log(one.lower) <= log <= math.log(one.upper) for one in found),
        bool(named),
    )


RUNS = {"reduced": 300, "full": 5000}


@pytest.mark.parametrize(("strata_count", "runs"), [(1, 3), (3, 3), (4, 1)])
def test_no_effect_is_called_one_at_most_once_in_twenty_of_all_quantities_together(
    strata_count: int, runs: int, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = simulate(said_and_covered, sized("runs", **RUNS), 0.0, strata_count, runs)
    called, covered, named = zip(*found, strict=True)
    case = f"{strata_count} matched cells, {runs} runs each"
    rates.at_most(0.05, called, "a factor without an effect is called one", case)
    rates.at_least(0.95, covered, "the effects of a factor are covered, all quantities together", case)
    rates.at_most(0.05, named, "an interaction is named where there is none", case)


def test_a_halving_is_found_with_the_repeats_that_it_takes(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    runs = repeats_to_show(0.1 * math.sqrt(2), 2, confidences(0.95, len(QUANTITIES), 2 * len(QUANTITIES))[0])
    assert runs is not None
    found = simulate(said_and_covered, sized("runs", **RUNS), -HALVING, 2, runs + 1)
    called, covered, _ = zip(*found, strict=True)
    rates.at_least(0.5, called, "a halving is found with a repeat more than it takes", "two matched cells")
    rates.at_least(0.95, covered, "the effects of a factor are covered, all quantities together", "a halving")


def test_odds_are_those_of_the_counts_whatever_depends_on_what() -> None:
    """34 of 18,000 misses stay 34, where dependence leaves few of them; what it leaves widens the error, and
    two errors reach to what these few would say alone."""
    alone, narrow = log_odds(Estimate(34 / 18_000, 0, 0, 1.0), 18_000)
    together, wide = log_odds(Estimate(34 / 18_000, 0, 0, 470.0), 18_000)
    assert together == alone == pytest.approx(math.log(34.5 / 17_966.5))
    few, left = 34 / 470, 17_966 / 470
    assert wide >= max(narrow, (math.log((few + 0.5) / (left + 0.5)) - together) / 2)
