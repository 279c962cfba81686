"""Is the bound of all repeats of a cell right where runs lie apart, and no wider where they do not?"""

from __future__ import annotations

import numpy as np
import pytest
from rates import Rates, Sized
from simulation import Simulation

from rtmeter.statistics.bounds import miss_ratio_bounds
from rtmeter.statistics.joint import RunMisses, joint, runs_needed

N = 20_000
RATIO = 1e-3
RUNS = {"reduced": 250, "full": 5000}


def covered(generator: np.random.Generator, runs: int, spread: float) -> tuple[bool, bool]:
    """Whether the upper and the lower bound hold the ratio of which runs are drawn, by a gamma distribution
    whose standard deviation is that share of it."""
    shape = 1 / spread**2 if spread else 0.0
    each = generator.gamma(shape, RATIO / shape, runs) if spread else np.full(runs, RATIO)
    missed = generator.binomial(N, np.minimum(each, 1))
    found = joint([RunMisses(N, int(misses), 1.0) for misses in missed], 0.95)
    lower, upper = miss_ratio_bounds(found.misses, found.n, 0.95, found.design_effect)
    return bool(upper >= RATIO), bool(lower <= RATIO)


@pytest.mark.parametrize("runs", [2, 3, 10])
@pytest.mark.parametrize(("spread", "least"), [(0.0, 0.95), (0.5, 0.85), (1.0, 0.85)])
def test_the_bound_of_all_repeats_covers_the_ratio_that_they_are_drawn_of(
    runs: int, spread: float, least: float, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    upper, lower = zip(*simulate(covered, sized("runs", **RUNS), runs, spread), strict=True)
    case = f"{runs} runs, spread {spread:g} of the ratio"
    rates.at_least(least, upper, "joint bounds cover the miss ratio", f"upper, {case}")
    rates.at_least(0.9, lower, "joint bounds cover the miss ratio", f"lower, {case}")


def test_runs_alike_are_one_long_run() -> None:
    alike = joint([RunMisses(N, 20, 3.0)] * 3, 0.95)
    assert (alike.n, alike.misses, alike.dispersion, alike.design_effect) == (3 * N, 60, 0, 3)
    assert not alike.apart
    assert joint([RunMisses(1000, 0, 2.0), RunMisses(3000, 0, 4.0)], 0.95).design_effect == 3.5


def test_the_spread_decides_where_it_is_larger_than_dependence_explains() -> None:
    runs = [RunMisses(N, misses, 1.0) for misses in (10, 20, 60)]
    apart = joint(runs, 0.95)
    ratio = 30 / N
    assert apart.dispersion == pytest.approx((20**2 + 10**2 + 30**2) / (30 * (1 - ratio)) / 2, rel=1e-4)
    student, normal = 2.919986, 1.644854  # of two degrees of freedom, at 95 %
    assert apart.design_effect == pytest.approx(apart.dispersion * (student / normal) ** 2, rel=1e-5)
    within = joint([RunMisses(N, run.misses, 30.0) for run in runs], 0.95)
    assert within.design_effect == 30 and not within.apart


def test_one_miss_in_one_of_several_runs_is_no_spread() -> None:
    assert joint([RunMisses(N, 1, 1.0), RunMisses(N, 0, 1.0), RunMisses(N, 0, 1.0)], 0.95).design_effect == 1


def test_more_runs_bring_the_bound_of_runs_that_lie_apart_down() -> None:
    apart = joint([RunMisses(N, misses, 1.0) for misses in (0, 0, 12)], 0.95)
    needed = runs_needed(apart, 5e-4, 0.95)
    assert needed is not None and needed > 3
    again = joint([RunMisses(N, misses, 1.0) for misses in (0, 0, 12) * needed], 0.95)
    assert miss_ratio_bounds(again.misses, again.n, 0.95, again.design_effect)[1] <= 5e-4
    assert runs_needed(apart, 1e-4, 0.95) is None  # 2e-4 miss


def test_however_far_apart_runs_are_one_release_at_least() -> None:
    assert joint([RunMisses(100, 100, 1.0), RunMisses(100, 0, 1.0)], 0.999).design_effect <= 200
