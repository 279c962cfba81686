import itertools

import numpy as np
import pytest
from processes import Process, armax_tail
from rates import Rates, Sized
from simulation import Simulation

from rtmeter.statistics.clusters import (
    INDEX_NOISE,
    MOST_EXCEEDANCES,
    chance_run_length,
    decluster,
    dependence,
    extremal_index,
    longest_run,
    run_length_of,
)

MINUTE = 60_000
"""Releases at 1 kHz."""


def indices(*at: int) -> np.ndarray:
    return np.array(at, dtype=np.int64)


def test_a_gap_longer_than_the_run_length_starts_a_cluster() -> None:
    clusters = decluster(indices(3, 4, 6, 20, 21, 50), 2)
    assert clusters.first.tolist() == [3, 20, 50]
    assert clusters.sizes.tolist() == [3, 2, 1]


def test_nothing_declusters_to_nothing() -> None:
    clusters = decluster(indices(), 5)
    assert clusters.count == 0 and clusters.design_effect == 1.0
    assert longest_run(indices()) == 0


def test_single_misses_have_no_design_effect() -> None:
    assert decluster(np.arange(50, dtype=np.int64) * 100, 10).design_effect == 1.0


def test_longest_run_counts_consecutive_releases_only() -> None:
    assert longest_run(indices(1, 3, 4, 5, 7, 8)) == 3


@pytest.mark.parametrize("theta", [0.3, 0.5, 0.8])
def test_estimators_find_the_extremal_index_of_a_known_process(
    theta: float, generator: np.random.Generator
) -> None:
    at = np.flatnonzero(armax_tail(generator, 2_000_000, theta) < 0.001)
    found = extremal_index(at)
    assert found is not None
    assert found == pytest.approx(theta, abs=0.1)
    clusters = decluster(at, run_length_of(at, found))
    runs_estimator = clusters.count / len(at)  # Smith and Weissman, JRSS B 56, 1994
    assert runs_estimator == pytest.approx(found, abs=0.01)


def test_independent_exceedances_have_index_one(generator: np.random.Generator) -> None:
    found = extremal_index(np.flatnonzero(generator.random(2_000_000) < 0.001))
    assert found is not None and found > 0.9


def test_too_few_exceedances_have_no_index() -> None:
    assert extremal_index(np.arange(19, dtype=np.int64)) is None


def test_the_extremal_index_agrees_with_the_formula_written_out() -> None:
    at = np.cumsum(indices(*([1, 1, 40, 7, 90] * 5)))
    gaps = [int(b - a) for a, b in itertools.pairwise(at)]
    numerator = 2 * sum(gap - 1 for gap in gaps) ** 2
    denominator = len(gaps) * sum((gap - 1) * (gap - 2) for gap in gaps)
    assert extremal_index(at) == pytest.approx(numerator / denominator)


def test_a_burst_of_few_misses_is_one_cluster_where_all_else_is_independent(
    generator: np.random.Generator,
) -> None:
    near = np.flatnonzero(generator.random(100_000) < 0.004)
    burst = indices(50_000, 50_003, 50_009, 50_012)
    found = dependence(burst, near, 0, 100_000)
    assert found.clusters.count == 1
    assert found.design_effect > 4


@pytest.mark.parametrize("late", [1.0, 0.5])
@pytest.mark.parametrize("start", [0, 17_000, 59_000])
def test_a_single_stall_is_one_cluster(start: int, late: float, generator: np.random.Generator) -> None:
    stall = start + np.flatnonzero(generator.random(1000) < late)
    found = dependence(stall, stall, 0, 60_000)
    assert found.clusters.count == 1
    assert found.design_effect > len(stall)
    assert found.extremal_index == pytest.approx(1 / len(stall))


def test_misses_all_along_a_run_are_no_single_stall() -> None:
    every = np.arange(300, dtype=np.int64)
    assert dependence(every, every, 0, 300).design_effect == 1


def seems_dependent(generator: np.random.Generator, exceedances: int) -> bool:
    at = np.sort(generator.choice(50 * exceedances, exceedances, replace=False))
    theta = extremal_index(at)
    return theta is not None and theta < 1 - INDEX_NOISE / np.sqrt(exceedances)


@pytest.mark.parametrize("exceedances", [50, 100, 400, 2000])
def test_independent_exceedances_are_seldom_found_dependent(
    exceedances: int, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    false = simulate(seems_dependent, sized("runs", reduced=300, full=5000), exceedances)
    rates.at_most(0.015, false, "independent exceedances are called dependent", f"{exceedances} of them")


@pytest.mark.parametrize("share", [1e-4, 0.004, 0.05])
def test_independent_misses_keep_all_their_worth(share: float, generator: np.random.Generator) -> None:
    effects = []
    for _ in range(200):
        misses = np.flatnonzero(generator.random(100_000) < share)
        effects.append(dependence(misses, misses, 0, 100_000).design_effect)
    assert np.mean(np.array(effects) == 1) > 0.9


def test_clustered_misses_are_deflated_by_what_geometric_clusters_cost(
    generator: np.random.Generator,
) -> None:
    process = Process("exponential", 0.4)
    effects = []
    for _ in range(50):
        misses = np.flatnonzero(process.draw(generator, 100_000) > process.level_ns(0.004))
        effects.append(dependence(misses, misses, 0, 100_000).design_effect)
    assert np.mean(effects) == pytest.approx((2 - 0.4) / 0.4, rel=0.2)


def few_grouped(generator: np.random.Generator, exceedances: int) -> bool:
    at = np.sort(generator.choice(MINUTE, exceedances, replace=False))
    return chance_run_length(at, MINUTE) > 0


@pytest.mark.parametrize("exceedances", [2, 6, 20, 100, 399])
def test_few_independent_exceedances_are_seldom_grouped(
    exceedances: int, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = simulate(few_grouped, sized("runs", reduced=100, full=5000), exceedances)
    rates.at_most(0.06, found, "few independent exceedances are grouped", f"{exceedances} of them")


def test_gaps_that_are_beyond_chance_together_group_few_misses() -> None:
    """No gap is by itself: 500 releases, of six misses of a minute at 1 kHz, chance shows in one of four."""
    spell = np.arange(5, dtype=np.int64) * 500
    pair = indices(1_000, 1_500, 15_000, 29_000, 40_000, 55_000)
    assert chance_run_length(pair, MINUTE) == 0
    misses = np.append(spell, 40_000)
    assert chance_run_length(misses, MINUTE) == 500
    found = dependence(misses, misses, 0, MINUTE)
    assert found.clusters.sizes.tolist() == [5, 1]
    assert found.design_effect == found.clusters.design_effect == 1 + (26 / 6 - 1) * 2


def test_gaps_of_many_exceedances_and_of_one_group_nothing() -> None:
    spells = np.concatenate([np.arange(20, dtype=np.int64) * 3 + 2_000 * at for at in range(20)])
    assert chance_run_length(spells[:-1], MINUTE) == 3
    assert len(spells) == MOST_EXCEEDANCES and chance_run_length(spells, MINUTE) == 0
    assert chance_run_length(indices(5), MINUTE) == chance_run_length(indices(), MINUTE) == 0


def test_gaps_longer_than_the_median_of_independent_ones_group_nothing() -> None:
    """Of 100 misses, even ones of less than the whole run: by as many gaps chance makes clusters."""
    every = np.arange(100, dtype=np.int64)
    assert chance_run_length(410 * every, MINUTE) == 410
    assert chance_run_length(420 * every, MINUTE) == 0
