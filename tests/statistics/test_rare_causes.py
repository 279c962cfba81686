"""Return levels where a second, larger cause of lateness has few releases in the run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from processes import RareCause
from rates import Rates, Sized
from simulation import Simulation
from stationary import FACTORS, RUNS, stationary
from stationary import MINUTE as N

from rtmeter.statistics.rare_cause import FEWEST, furthest_levels
from rtmeter.statistics.tail_fits import peaks_over

COVERED = "return levels are covered where a second cause is rare"

RARE = (
    *(RareCause(kind, count / N) for kind in ("5 times", "10 times", "heavy") for count in (10, 20, 50)),
    RareCause("5 times", 200 / N),
    RareCause("1 ms later", 10 / N),
    RareCause("1 ms later", 1000 / N),
)
"""Of 60,000 releases 10 to 1,000 are due to the second cause, on average."""


def covered(process: RareCause, factor: int, simulate: Simulation, runs: int) -> list[bool]:
    """Whether the interval holds the level, of the runs that state one."""
    true_ns = process.level_ns(1 / (N * factor))
    levels = [run.levels[factor] for run in simulate(stationary, runs, process)]
    return [level[0] <= true_ns <= level[1] for level in levels if level is not None]


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("process", RARE, ids=lambda process: process.name)
def test_the_interval_covers_the_return_level(
    process: RareCause, factor: int, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    """Where it is not refused."""
    case = f"{process.name}, once in {factor} times the run"
    rates.at_least(0.90, covered(process, factor, simulate, sized("runs", **RUNS)), COVERED, case, weak=True)


def test_the_interval_covers_in_all_cases_together(simulate: Simulation, rates: Rates, sized: Sized) -> None:
    """The same runs: so that the reduced size, too, tells an interval that holds from one that does not."""
    runs = sized("runs", **RUNS)
    hits = [hit for process in RARE for factor in FACTORS for hit in covered(process, factor, simulate, runs)]
    rates.at_least(0.90, hits, COVERED, "all cases")


def within(generator: np.random.Generator, count: int) -> bool:
    peaks = np.sort(generator.exponential(1.0, 3 * count + 1))  # those above 0, once each in the run
    low, high = furthest_levels(peaks[-count - 1 :], 10.0, -0.5, 0.9)
    return low <= math.log(10 * (3 * count + 1)) <= high


def test_so_few_of_an_exponential_tail_are_enough(simulate: Simulation, rates: Rates, sized: Sized) -> None:
    """One number of peaks is looked at: its interval alone has to hold the level."""
    found = simulate(within, sized("runs", reduced=200, full=5000), FEWEST)
    rates.at_least(0.90, found, "levels by the three largest values are covered", "exponential")


def test_a_level_that_lies_among_the_peaks_is_left_to_all_of_them() -> None:
    peaks = np.arange(10.0)
    assert furthest_levels(peaks[:FEWEST], 10.0, 0.0, 0.95) == (math.inf, -math.inf)
    assert furthest_levels(peaks, 1 / (2 * FEWEST), 0.0, 0.95) == (math.inf, -math.inf)


def test_a_heavier_tail_reaches_further(generator: np.random.Generator) -> None:
    peaks = np.sort(generator.exponential(1.0, 400))
    light, heavier = (furthest_levels(peaks, 10.0, shape, 0.95) for shape in (0.1, 0.4))
    assert light[0] == heavier[0] and light[1] < heavier[1]
    assert light == furthest_levels(peaks, 10.0, -0.3, 0.95)


def test_the_interval_is_never_narrower_for_it(generator: np.random.Generator) -> None:
    values = np.rint(generator.exponential(50_000, N)).astype(np.int64)
    fit = peaks_over(values, 400, 10.0, 0.95)
    assert fit is not None
    (low, high), (lower, upper) = fit.level_interval_ns, fit.profile_interval_ns
    assert low <= lower < fit.level_ns < upper <= high
