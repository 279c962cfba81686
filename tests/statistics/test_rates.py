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
