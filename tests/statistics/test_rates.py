"""What judges the simulated rates is judged first."""

from __future__ import annotations

import numpy as np
import pytest
from rates import Rate, Rates
from scipy.stats import binomtest
from simulation import Simulation


@pytest.mark.parametrize("hits", [0, 3, 97, 100])
def test_limits_are_scipys(hits: int) -> None:
    upper = binomtest(hits, 100, alternative="less").proportion_ci(0.99, "exact").high
    lower = binomtest(hits, 100, alternative="greater").proportion_ci(0.99, "exact").low
    assert Rate("", "", hits, 100, True, 0.9).limit == pytest.approx(upper)
    assert Rate("", "", hits, 100, False, 0.1).limit == pytest.approx(lower)


@pytest.mark.parametrize(
    ("hits", "runs", "holds"), [(1860, 2000, True), (1840, 2000, False), (15, 20, False)]
)
def test_a_rate_below_its_bound_by_more_than_chance_fails(hits: int, runs: int, holds: bool) -> None:
    kept: list[Rate] = []
    each = [True] * hits + [False] * (runs - hits)
    if holds:
        Rates(kept).at_least(0.94, each, "claim", "case")
    else:
        with pytest.raises(AssertionError, match="claim, case"):
            Rates(kept).at_least(0.94, each, "claim", "case")
    assert kept[0].hits == hits and kept[0].runs == runs


@pytest.mark.parametrize(("hits", "runs", "holds"), [(120, 2000, True), (130, 2000, False), (5, 20, False)])
def test_a_rate_above_its_bound_by_more_than_chance_fails(hits: int, runs: int, holds: bool) -> None:
    assert Rate("claim", "case", hits, runs, False, 0.05).holds is holds


@pytest.mark.parametrize("at_least", [True, False])
def test_nothing_holds_without_a_run(at_least: bool) -> None:
    assert not Rate("claim", "case", 0, 0, at_least, 0.5).holds
    assert Rate("claim", "case", 0, 0, at_least, 0.5).power == 0
    for weak in (True, False):
        with pytest.raises(AssertionError):
            (Rates([]).at_least if at_least else Rates([]).at_most)(0.5, [], "claim", "case", weak=weak)


@pytest.mark.parametrize(("bound", "runs", "power"), [(0.9, 8, 0.739), (0.9, 20, 0.979), (0.95, 20, 0.997)])
def test_power_is_how_often_half_a_lower_claim_is_found_out(bound: float, runs: int, power: float) -> None:
    assert Rate("", "", 0, runs, True, bound).power == pytest.approx(power, abs=1e-3)
    hits = np.random.default_rng(5).binomial(runs, bound / 2, 4000).tolist()
    found_out = [not Rate("", "", hit, runs, True, bound).holds for hit in hits]
    assert np.mean(found_out) == pytest.approx(power, abs=0.03)


@pytest.mark.parametrize(
    ("bound", "runs", "wrong"), [(0.05, 9, 0.2), (0.1, 24, 0.4), (0.0, 10, 0.25), (0.01, 60, 0.04)]
)
def test_power_is_how_often_four_times_an_upper_claim_is_found_out(
    bound: float, runs: int, wrong: float
) -> None:
    """Of a claim of never: once in four."""
    hits = np.random.default_rng(6).binomial(runs, wrong, 4000).tolist()
    found_out = [not Rate("", "", hit, runs, False, bound).holds for hit in hits]
    assert Rate("", "", 0, runs, False, bound).power == pytest.approx(np.mean(found_out), abs=0.03)


def test_too_few_runs_are_no_test_by_themselves() -> None:
    """Five of eight do not contradict 0.9: nor would they often if it were half of that."""
    few = [True] * 5 + [False] * 3
    Rates([]).at_least(0.9, few, "claim", "case", weak=True)
    with pytest.raises(AssertionError, match=r"find a rate of 0\.45 at 0\.74 only"):
        Rates([]).at_least(0.9, few, "claim", "case")
    with pytest.raises(AssertionError, match=r"find a rate of 0\.2 at 0\.21"):
        Rates([]).at_most(0.05, [False] * 12, "claim", "case")
    Rates([]).at_most(0.05, [False] * 12, "claim", "case", weak=True)
    Rates([]).at_least(0.9, [True] * 20, "claim", "case")
    Rates([]).at_most(0.05, [False] * 60, "claim", "case")


def draw(generator: np.random.Generator, low: float) -> float:
    return low + generator.random()


def test_processes_do_not_change_what_is_simulated() -> None:
    here, shared = Simulation(7, 0), Simulation(7, 2)
    try:
        assert here(draw, 20, 3.0) == shared(draw, 20, 3.0)
    finally:
        shared.close()


def test_runs_seeds_and_cases_differ() -> None:
    one = Simulation(7, 0)
    drawn = one(draw, 20, 3.0)
    assert len(set(drawn)) == 20
    assert drawn is one(draw, 20, 3.0)
    assert drawn != [value - 1 for value in one(draw, 20, 4.0)] and drawn != Simulation(8, 0)(draw, 20, 3.0)
