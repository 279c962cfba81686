import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from processes import CLUSTERED, INDEPENDENT, Process
from rates import Rates, Sized
from scipy.stats import genextreme, genpareto
from simulation import Simulation
from stationary import FACTORS, FAR, HOURS, MS, RUNS, Interval, stationary
from stationary import MINUTE as N

from rtmeter.statistics.evidence import Evidence, examine
from rtmeter.statistics.extremes import AD_LIMIT, Extremes, _by_fit, extremes
from rtmeter.statistics.levels import levels
from rtmeter.statistics.models import ExtremeValue, Pareto, reduced, usable
from rtmeter.statistics.tail_fits import TailFit, anderson_darling, maxima_of, peaks_over
from rtmeter.statistics.views import LATER

EXPONENTIAL = Process("exponential")


def of(values: np.ndarray, factor: float = 10.0) -> Extremes:
    return extremes(values, MS, factor * len(values) * MS / 3.6e12, examine(values, MS, FAR))


def refused(values: np.ndarray, factor: float = 10.0) -> set[str]:
    found = of(values, factor)
    assert found.upper_ns is None
    return {finding.type for finding in found.refusals}


def without_mean(seed: int) -> np.ndarray:
    """A Pareto tail of shape 3, beyond the shapes that are looked at: likelihoods have no maximum there."""
    tail = np.random.default_rng(seed).random(20_000)
    return np.rint(np.minimum(50 * (tail**-3 - 1), 9e17)).astype(np.int64)


@pytest.mark.parametrize(("seed", "peaks_fitted"), [(0, True), (4, False)])
def test_no_level_follows_from_a_fit_that_did_not_converge(seed: int, peaks_fitted: bool) -> None:
    """Neither where the peaks' own did not, nor where one beside it did not that has to agree."""
    values = without_mean(seed)
    found = of(values)
    assert found.best is not None and found.best.fitted is peaks_fitted
    assert all(fit.fitted for fit in found.others) is False
    (finding,) = (one for one in found.refusals if one.type == "not_converged")
    assert (finding.type, finding.consequence) == ("not_converged", "refuse") and finding.value > 1e-2
    assert "did not converge: no level follows from it" in finding.message and found.upper_ns is None
    refusals = levels(values, MS, examine(values, MS, FAR)).refusals
    assert "not_converged" in {finding.type for finding in refusals}


@pytest.mark.parametrize("factor", [1.0, 10.0])
def test_a_fit_agrees_with_an_interval_that_overlaps_its_own(
    generator: np.random.Generator, factor: float
) -> None:
    values = EXPONENTIAL.draw(generator, 20_000)
    for fit in (peaks_over(values, 400, factor, 0.95), maxima_of(values, 100, factor, 0.95)):
        assert fit is not None
        (lower, upper), level = fit.profile_interval_ns, fit.level_ns
        assert fit.agrees((lower - 1e6, level)) and fit.agrees((level, upper + 1e6))
        assert fit.agrees((lower - 1e6, lower + 0.01 * (level - lower)))
        assert not fit.agrees((lower - 1e6, lower - 0.01 * (level - lower)))
        assert fit.agrees((upper - 0.01 * (upper - level), upper + 1e6))
        assert not fit.agrees((upper + 0.01 * (upper - level), upper + 1e6))
        assert not fit.agrees((-2e9, -1e9))


def test_a_best_fit_without_a_maximum_is_refused_though_all_beside_it_have_one(
    generator: np.random.Generator,
) -> None:
    values = EXPONENTIAL.draw(generator, 20_000)
    best, beside = peaks_over(values, 400, 10.0, 0.95), maxima_of(values, 100, 10.0, 0.95)
    assert best is not None and beside is not None
    best._best = replace(best._best, gain=1.0)
    (finding,) = _by_fit(best, (beside,))
    assert (finding.type, finding.consequence, finding.value) == ("not_converged", "refuse", 1.0)


def test_ordinary_fits_converge(generator: np.random.Generator) -> None:
    for process in INDEPENDENT + CLUSTERED:
        values = process.draw(generator, 20_000)
        fits = [peaks_over(values, 400, 10.0, 0.95), maxima_of(values, 100, 10.0, 0.95)]
        assert all(fit is not None and fit.fitted and fit.converged for fit in fits), process.name


COVERED, REFUSED = "return levels are covered", "return levels are refused"


def held(process: Process, factor: int, found: list[Interval | None]) -> list[bool]:
    """Whether the interval holds the level, of the runs that state one."""
    true_ns = process.level_ns(1 / (N * factor * process.extremal_index))
    return [level[0] <= true_ns <= level[1] for level in found if level is not None]


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("process", INDEPENDENT + CLUSTERED, ids=lambda process: process.name)
def test_the_interval_covers_the_return_level(
    process: Process, factor: int, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = [run.levels[factor] for run in simulate(stationary, sized("runs", **RUNS), process)]
    case = f"{process.name}, once in {factor} times the run"
    rates.at_most(0.10, (level is None for level in found), REFUSED, case, weak=True)
    rates.at_least(0.90, held(process, factor, found), COVERED, case, weak=True)


def test_levels_are_covered_and_stated_in_all_cases_together(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    """The same runs: so that the reduced size, too, tells an interval that holds from one that does not."""
    refused, covered = [], []
    for process, factor in itertools.product(INDEPENDENT + CLUSTERED, FACTORS):
        found = [run.levels[factor] for run in simulate(stationary, sized("runs", **RUNS), process)]
        refused += [level is None for level in found]
        covered += held(process, factor, found)
    rates.at_most(0.10, refused, REFUSED, "all cases")
    rates.at_least(0.90, covered, COVERED, "all cases")


@pytest.mark.parametrize("shape", [-0.2, 0.0, 0.3])
def test_peaks_agree_with_scipy_and_pyextremes(shape: float, generator: np.random.Generator) -> None:
    from pyextremes import EVA  # takes a second; each worker reads this file

    values = (genpareto.rvs(shape, scale=50_000, size=20_000, random_state=generator)).astype(np.int64)
    fit = peaks_over(values, 400, 10.0, 0.95)
    assert fit is not None and fit.threshold_ns is not None
    excesses = values[values > fit.threshold_ns] - fit.threshold_ns
    c, _, scale = genpareto.fit(excesses, fit.shape, floc=0, scale=float(excesses.mean()))
    assert fit.shape == pytest.approx(c, abs=0.01)
    assert fit.level_ns == pytest.approx(fit.threshold_ns + genpareto.isf(1 / 4000, c, scale=scale), rel=0.01)
    times = pd.date_range("2026-01-01", periods=len(values), freq="1s")
    peaks = pd.Series(values, index=times, dtype=float)[values > fit.threshold_ns]
    model = EVA.from_extremes(peaks, method="POT", threshold=fit.threshold_ns)
    model.fit_model("MLE", "genpareto", {"floc": fit.threshold_ns})
    theirs = model.get_return_value(10 * (times[-1] - times[0]).total_seconds(), "1s")[0]
    assert fit.level_ns == pytest.approx(theirs, rel=0.02)


@pytest.mark.parametrize("shape", [-0.2, 0.05, 0.3])
def test_maxima_agree_with_scipy_and_pyextremes(shape: float, generator: np.random.Generator) -> None:
    """SciPy's c is -xi."""
    from pyextremes import EVA

    maxima = genextreme.rvs(-shape, loc=3e5, scale=5e4, size=200, random_state=generator).astype(np.int64)
    values = np.zeros(200 * 100, dtype=np.int64)
    values[50::100] = maxima
    fit = maxima_of(values, 200, 10.0, 0.95)
    assert fit is not None
    c, loc, scale = genextreme.fit(maxima, -fit.shape, loc=float(np.median(maxima)), scale=5e4)
    assert fit.shape == pytest.approx(-c, abs=0.01)
    assert fit.level_ns == pytest.approx(genextreme.isf(1 / 2000, c, loc, scale), rel=0.01)
    series = pd.Series(
        maxima / 5e4, index=pd.date_range("2026-01-01", periods=200, freq="100s"), dtype=float, name="maxima"
    )  # in units in which its optimiser finds the maximum
    model = EVA.from_extremes(series, method="BM", block_size="100s")
    model.fit_model("MLE", "genextreme")
    assert fit.level_ns == pytest.approx(5e4 * model.get_return_value(200_000, "1s")[0], rel=0.02)


def test_the_profile_interval_is_where_the_likelihood_has_dropped(generator: np.random.Generator) -> None:
    model = Pareto(generator.exponential(1.0, 300), 3000.0)
    lower, upper = TailFit(model, 300, 0.95).profile_interval_ns
    shapes = np.linspace(-0.6, 1.5, 4001)

    def profile(level: float) -> float:
        return float(model.nll(np.column_stack((np.full_like(shapes, np.log(level)), shapes))).min())

    best = min(profile(level) for level in np.linspace(lower, upper, 60))
    for end in (lower, upper):
        assert profile(end) - best == pytest.approx(1.9207, abs=0.05)


def test_the_shape_s_interval_holds_the_shape(generator: np.random.Generator) -> None:
    inside = 0
    for _ in range(60):
        excesses = genpareto.rvs(0.2, size=400, random_state=generator)
        low, high = TailFit(Pareto(excesses / excesses.mean(), 4000.0), 400, 0.95).shape_interval
        inside += low <= 0.2 <= high
    assert inside >= 50


def misfit(generator: np.random.Generator, shape: float) -> dict[str, bool]:
    """Whether a sample of each model is called no such."""
    excesses = genpareto.rvs(shape, size=400, random_state=generator)
    maxima = genextreme.rvs(-shape, size=200, random_state=generator)
    peaks = TailFit(Pareto(excesses / excesses.mean(), 1e3), 400, 0.95)
    fits = (peaks, TailFit(ExtremeValue(maxima, 1e3), 200, 0.95))
    return {fit.method: fit.anderson_darling > AD_LIMIT[fit.method] for fit in fits}


MISFIT, SHAPES = "extremes are said not to fit their model", (-0.4, 0.0, 0.5)


@pytest.mark.parametrize("shape", SHAPES)
def test_fits_of_the_right_model_seldom_pass_the_limit(
    shape: float, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = simulate(misfit, sized("runs", reduced=60, full=5000), shape)
    for method in AD_LIMIT:
        case = f"{method}, shape {shape}"
        rates.at_most(0.01, (run[method] for run in found), MISFIT, case, weak=True)


def test_fits_of_the_right_model_seldom_pass_the_limit_in_all_cases_together(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    size = sized("runs", reduced=60, full=5000)
    found = [run[method] for shape in SHAPES for run in simulate(misfit, size, shape) for method in AD_LIMIT]
    rates.at_most(0.01, found, MISFIT, "all cases")


def test_anderson_darling_by_its_definition() -> None:
    below = np.array([0.1, 0.4, 0.5, 0.9])
    terms = [(2 * i - 1) * (math.log(below[i - 1]) + math.log(1 - below[4 - i])) for i in range(1, 5)]
    assert anderson_darling(np.log(1 - below)) == pytest.approx(-4 - sum(terms) / 4)


def test_the_reduced_level_is_continuous_at_shape_zero() -> None:
    assert reduced(1000, usable(np.array(0.0))) == pytest.approx(math.log(1000))
    assert reduced(1000, np.array(2e-6)) == pytest.approx(math.log(1000), rel=1e-4)


def test_other_thresholds_and_blocks_are_shown(generator: np.random.Generator) -> None:
    found = of(EXPONENTIAL.draw(generator, N))
    assert [(fit.method, fit.extremes) for fit in found.others] == [
        ("peaks", 200),
        ("peaks", 800),
        ("maxima", 100),
        ("maxima", 200),
    ]


def test_a_heavy_tail_is_warned_of(generator: np.random.Generator) -> None:
    found = of(Process("pareto").draw(generator, N))
    (heavy,) = (finding for finding in found.findings if finding.type == "heavy_tail")
    assert found.best is not None and not found.refusals
    word = "is" if found.best.shape_interval[0] > 0 else "may be"
    assert heavy.message.startswith(f"the tail {word} heavy")


def test_a_threshold_within_another_mode_has_no_say(generator: np.random.Generator) -> None:
    """A mode of 600 values holds the 400 peaks that are fitted; 800 reach down into the body."""
    answered = 0
    for _ in range(10):
        values = EXPONENTIAL.draw(generator, N)
        values[generator.choice(N, N // 100, replace=False)] += MS
        answered += of(values).upper_ns is not None
    assert answered >= 8


def test_a_light_tail_is_not(generator: np.random.Generator) -> None:
    values = np.rint(generator.uniform(0, 1e6, N)).astype(np.int64)
    assert "heavy_tail" not in {finding.type for finding in of(values).findings}


# Refusals.


def test_beyond_ten_times_the_run(generator: np.random.Generator) -> None:
    found = of(EXPONENTIAL.draw(generator, N), 10.5)
    (finding,) = found.refusals
    assert finding.type == "beyond_the_run"
    assert "measure at least 1.05 min" in finding.message


def test_within_the_run(generator: np.random.Generator) -> None:
    assert refused(EXPONENTIAL.draw(generator, N), 0.01) == {"within_the_run"}


def test_too_few(generator: np.random.Generator) -> None:
    assert refused(EXPONENTIAL.draw(generator, 2_000)) == {"too_few_maxima"}
    assert refused(EXPONENTIAL.draw(generator, 3)) >= {"too_few_samples", "too_few_maxima"}


def test_too_few_clusters(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, N)
    for start in generator.choice(N // 100, 30, replace=False) * 100:
        values[start : start + 60] += 10**6
    assert refused(values) & {"too_few_maxima", "mixture", "unstable", "misfit"}


def test_a_tail_that_is_cut_off_is_told_as_such(generator: np.random.Generator) -> None:
    values = np.rint(generator.uniform(0, 1e6, N)).astype(np.int64)
    (finding,) = of(values).refusals
    assert finding.type == "misfit"
    assert "as if it were cut off" in finding.message


def test_a_tail_of_one_step_is_too_coarse(generator: np.random.Generator) -> None:
    values = np.ceil(generator.exponential(50e3, N) / 100e3).astype(np.int64) * 100_000
    (finding,) = of(values).refusals
    assert finding.type == "quantisation"
    assert "too coarse for a tail most of which is one step" in finding.message


def test_what_drifts(generator: np.random.Generator) -> None:
    assert "drift" in refused(EXPONENTIAL.draw(generator, N) + 2 * np.arange(N))


def test_a_late_start(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, N)
    values[:600] *= 5
    assert "warm_up" in refused(values)


def test_lost_releases(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, N)
    values[1234] = LATER
    assert "lost" in refused(values)


def test_constant_data() -> None:
    assert "constant" in refused(np.full(N, 7))


def test_coarse_clocks(generator: np.random.Generator) -> None:
    assert refused(EXPONENTIAL.draw(generator, N) // 100_000 * 100_000) == {"quantisation"}


def test_a_mode_among_the_largest(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, N)
    values[generator.random(N) < 0.003] += 2 * MS
    assert refused(values) & {"mixture", "misfit"}


def test_one_enormous_outlier(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, N)
    values[4321] = 10**12
    assert "outlier" in refused(values)


def test_evidence_is_the_run_s(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, N)
    found: Evidence = examine(values, MS, FAR)
    assert extremes(values, MS, HOURS, found).upper_ns is not None
