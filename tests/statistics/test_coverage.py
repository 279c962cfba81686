"""Do the bounds hold? Simulated on processes whose miss ratio is known, with all gates on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from processes import CLUSTERED, INDEPENDENT, Load, Process, lognormal
from rates import Rate, Rates, Sized
from scipy.signal import lfilter
from simulation import Simulation

from rtmeter.statistics.bounds import miss_ratio_bounds
from rtmeter.statistics.evidence import examine
from rtmeter.statistics.quantiles import miss_ratio, quantiles

MS = 1_000_000
N = 20_000
CONFIDENCE = 0.95
RUNS = {"reduced": 20, "full": 2000}
CLUSTERS_A_RUN = (3.5, 30, 300)
COVERED = "bounds of the miss ratio cover it"
PASSED = "systems that miss a tenth more than allowed pass"
EXCESS = 1.1
"""By how much a system that violates its requirement does."""


def bound(values: np.ndarray, deadline_ns: int) -> float | None:
    """The upper bound of the miss ratio; None if gates refuse it."""
    found = examine(values, MS, deadline_ns)
    if found.refusals:
        return None
    return miss_ratio_bounds(len(found.misses), len(values), CONFIDENCE, found.design_effect)[1]


def bound_of(generator: np.random.Generator, process: Process, ratio: float) -> float | None:
    return bound(process.draw(generator, N), round(process.level_ns(ratio)))


def bound_where_only_misses_cluster(
    generator: np.random.Generator, theta: float, clusters: int
) -> float | None:
    values = Process("exponential").draw(generator, N)
    count = generator.poisson(clusters)
    for start, length in zip(generator.integers(0, N, count), generator.geometric(theta, count), strict=True):
        values[start : start + length] = 10 * MS
    return bound(values, 5 * MS)


def ratio_of(process: Process, clusters: float) -> float:
    """The miss ratio with which so many clusters of misses are expected in a run."""
    return clusters / process.extremal_index / N


@pytest.mark.parametrize("clusters", CLUSTERS_A_RUN)
@pytest.mark.parametrize("process", INDEPENDENT + CLUSTERED, ids=lambda process: process.name)
def test_the_bound_covers_the_miss_ratio(
    process: Process, clusters: float, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    """A run that gates refuse has no bound and passes nothing."""
    ratio = ratio_of(process, clusters)
    uppers = simulate(bound_of, sized("runs", **RUNS), process, ratio)
    case = f"{process.name}, {clusters:g} clusters a run"
    stated = [upper for upper in uppers if upper is not None]
    at_least = 0.94 if process.extremal_index == 1 else 0.92
    rates.at_least(at_least, (upper >= ratio for upper in stated), COVERED, case)
    passed = (upper is not None and upper <= ratio / EXCESS for upper in uppers)
    rates.at_most(0.05, passed, PASSED, case, weak=True)


@pytest.mark.parametrize(("processes", "at_least"), [(INDEPENDENT, 0.94), (CLUSTERED, 0.92)])
def test_the_bound_covers_the_miss_ratio_in_all_cases_together(
    processes: tuple[Process, ...], at_least: float, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    """The same runs: so that the reduced size, too, tells a bound that holds from one that does not."""
    runs = sized("runs", **RUNS)
    found = [
        (upper, ratio)
        for process, clusters in itertools.product(processes, CLUSTERS_A_RUN)
        for ratio in (ratio_of(process, clusters),)
        for upper in simulate(bound_of, runs, process, ratio)
    ]
    case = "all independent ones" if processes is INDEPENDENT else "all clustered ones"
    covered = (upper >= ratio for upper, ratio in found if upper is not None)
    rates.at_least(at_least, covered, COVERED, case)
    passed = (upper is not None and upper <= ratio / EXCESS for upper, ratio in found)
    rates.at_most(0.05, passed, PASSED, case)


@pytest.mark.parametrize("clusters", [10, 100])
@pytest.mark.parametrize("theta", [0.3, 0.5])
def test_the_bound_covers_where_only_misses_cluster(
    theta: float, clusters: int, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    """A rare mode that comes in bursts of geometric length, over a body of single values: below the
    deadline nothing tells of the bursts."""
    runs = sized("runs", **RUNS)
    uppers = simulate(bound_where_only_misses_cluster, runs, theta, clusters)
    covered = (upper >= clusters / theta / N for upper in uppers if upper is not None)
    case = f"bursts of index {theta}, {clusters} a run"
    rates.at_least(0.92, covered, COVERED, case)


def bound_under(generator: np.random.Generator, load: Load) -> float | None:
    return bound(load.draw(generator), 5 * MS)


SHOWN = (Load(200, 1_800, 24), Load(200, 1_800, 60), Load(400, 1_600, 24))
"""Ten spells a run, that bring 20 misses at least."""

SHOWN_TOO_LITTLE = (Load(400, 1_600, 12), *(Load(400, 3_600, misses) for misses in (6, 24, 60)))


@pytest.mark.parametrize(
    ("loads", "runs", "at_most", "spells"),
    [
        (SHOWN, 20, 0.05, "ten spells a run"),
        (SHOWN_TOO_LITTLE, 6, 0.15, "five spells a run, or of twelve misses"),
        ((Load(1_000, 9_000, 6),), 6, 0.4, "two spells a run"),
    ],
)
def test_a_load_that_comes_and_goes_passes_the_oftener_the_less_a_run_shows_of_it(
    loads: tuple[Load, ...],
    runs: int,
    at_most: float,
    spells: str,
    simulate: Simulation,
    rates: Rates,
    sized: Sized,
) -> None:
    """Below the deadline nothing tells of it, and the misses are too few for an extremal index."""
    passed = {
        load.name: [
            upper is not None and upper <= load.ratio / EXCESS
            for upper in simulate(bound_under, sized("runs", reduced=runs, full=500), load)
        ]
        for load in loads
    }
    rates.at_most_of_each(at_most, passed, f"{PASSED} under a load of {spells}")


AUTOREGRESSIVE = 50_000
"""Releases of a log-normal process that forgets by 0.99 a release."""

AR_RATIO = 1e-3


def autoregressive(generator: np.random.Generator) -> np.ndarray:
    steps = generator.normal(0, np.sqrt(1 - 0.99**2), AUTOREGRESSIVE + 2_000)
    return np.rint(50_000 * np.exp(0.5 * lfilter([1], [1, -0.99], steps)[2_000:])).astype(np.int64)


def bounds_of_autoregressive(generator: np.random.Generator) -> tuple[float, float]:
    """The upper 95 % bound of the miss ratio as a verdict and as a comparison has it."""
    values, deadline = autoregressive(generator), round(lognormal(np.array([AR_RATIO]))[0])
    seen = examine(values, MS, deadline)
    verdict = miss_ratio_bounds(len(seen.misses), len(values), CONFIDENCE, seen.design_effect)[1]
    return verdict, miss_ratio(values, deadline, 2 * CONFIDENCE - 1).upper


def test_verdict_and_comparison_cover_where_values_remember_for_long(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    """By one model of dependence: the same bound."""
    found = simulate(bounds_of_autoregressive, sized("runs", reduced=40, full=2000))
    for of, upper in zip(("verdict", "comparison"), zip(*found, strict=True), strict=True):
        case = f"autocorrelation 0.99, log-normal, {of}"
        rates.at_least(0.92, (one >= AR_RATIO for one in upper), COVERED, case)
    assert all(verdict == comparison for verdict, comparison in found)


@pytest.mark.parametrize("process", INDEPENDENT + CLUSTERED, ids=lambda process: process.name)
def test_comparison_and_verdict_have_one_model_of_dependence(
    process: Process, generator: np.random.Generator
) -> None:
    values = process.draw(generator, N)
    skipped = generator.random(N) < 1e-3
    for tail in (0.05, 0.01, 1e-4):
        deadline = round(process.level_ns(tail))
        seen = examine(values, MS, deadline, skipped=skipped)
        ours = miss_ratio(values, deadline, 2 * CONFIDENCE - 1, skipped)
        assert (ours.value, ours.design_effect) == (len(seen.misses) / N, seen.design_effect)
        bounds = miss_ratio_bounds(len(seen.misses), N, CONFIDENCE, seen.design_effect)
        assert (ours.lower, ours.upper) == pytest.approx(bounds, rel=1e-12)


def test_a_quantile_has_the_dependence_of_its_exceedances(generator: np.random.Generator) -> None:
    values = CLUSTERED[0].draw(generator, N)
    for percent, found in quantiles(values, ("99", "99.9"), 0.95).items():
        assert found.design_effect == examine(values, MS, int(found.value)).design_effect > 1.5, percent


def misses_of(generator: np.random.Generator, process: Process, ratio: float) -> int:
    return int(np.count_nonzero(process.draw(generator, N) > round(process.level_ns(ratio))))


def test_a_bound_that_ignored_clusters_would_be_found_out(simulate: Simulation) -> None:
    """In as many runs as the reduced test has of clustered processes together."""
    runs = RUNS["reduced"] * len(CLUSTERED) * len(CLUSTERS_A_RUN)
    process = Process("exponential", 0.5)
    ratio = ratio_of(process, 30)
    misses = simulate(misses_of, runs, process, ratio)
    covered = sum(miss_ratio_bounds(missed, N, CONFIDENCE)[1] >= ratio for missed in misses)
    assert not Rate(COVERED, process.name, covered, runs, True, 0.92).holds
