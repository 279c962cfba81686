import math

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from processes import CLUSTERED, INDEPENDENT, Process
from rates import Rates, Sized
from scipy.stats import quantile_test
from simulation import Simulation

from rtmeter.statistics.blocks import blocks_of
from rtmeter.statistics.quantiles import COMPARED, miss_ratio, quantiles
from rtmeter.statistics.views import LATER
from rtmeter.statistics.worth import design_effect

N = 60_000
EXPONENTIAL = Process("exponential")
PERCENTS = ("50", "99", "99.9")


def test_quantiles_are_exact_order_statistics(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, 1000)
    ordered = np.sort(values)
    found = quantiles(values, ("50", "90", "99.9"), 0.95)
    assert found["50"].value == ordered[499]
    assert found["90"].value == ordered[899]
    assert found["99.9"].value == ordered[998]


def test_quantiles_agree_with_hdrhistogram(generator: np.random.Generator) -> None:
    """Three digits; it takes the value at or above the percentile."""
    values = EXPONENTIAL.draw(generator, N) + 1
    histogram = HdrHistogram(1, 10**10, 3)
    for value in values.tolist():
        histogram.record_value(value)
    for percent, found in quantiles(values, COMPARED, 0.95).items():
        assert histogram.get_value_at_percentile(float(percent)) == pytest.approx(found.value, rel=2e-3)


@pytest.mark.parametrize("percent", ["50", "99", "99.9"])
def test_intervals_agree_with_scipy(percent: str) -> None:
    """On values spread so evenly over the run that nothing looks dependent."""
    values = np.argsort(np.argsort(np.arange(N) * (np.sqrt(5) / 2 - 0.5) % 1))
    found = quantiles(values, (percent,), 0.95)[percent]
    theirs = quantile_test(values, q=0, p=float(percent) / 100).confidence_interval(0.95)
    ordered = np.sort(values)
    ours_at, theirs_at = (
        np.searchsorted(ordered, ends) for ends in ((found.lower, found.upper), (theirs.low, theirs.high))
    )
    assert found.design_effect == 1
    assert np.abs(ours_at - theirs_at).max() <= 2


def ends_of(generator: np.random.Generator, process: Process) -> dict[str, tuple[float, float]]:
    found = quantiles(process.draw(generator, N), PERCENTS, 0.95)
    return {percent: (one.lower, one.upper) for percent, one in found.items()}


@pytest.mark.parametrize("process", INDEPENDENT + CLUSTERED, ids=lambda process: process.name)
@pytest.mark.parametrize("percent", PERCENTS)
def test_intervals_cover_the_quantile(
    process: Process, percent: str, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    true_ns = round(process.level_ns(1 - float(percent) / 100))
    found = (ends[percent] for ends in simulate(ends_of, sized("runs", reduced=40, full=2000), process))
    covered = (lower <= true_ns <= upper for lower, upper in found)
    bound = 0.94 if process.extremal_index == 1 else 0.92
    rates.at_least(bound, covered, "quantiles are covered", f"p{percent}, {process.name}")


def test_a_moving_block_bootstrap_agrees(generator: np.random.Generator) -> None:
    """Kunsch, Annals of Statistics 17, 1989: blocks of 200 releases, drawn with replacement."""
    values = Process("exponential", 0.4).draw(generator, N)
    starts = generator.integers(0, N - 200, (400, N // 200))
    resampled = np.array([np.quantile(values[row[:, None] + np.arange(200)], 0.99) for row in starts])
    found = quantiles(values, ("99",), 0.95)["99"]
    width = np.quantile(resampled, 0.975) - np.quantile(resampled, 0.025)
    assert found.upper - found.lower == pytest.approx(width, rel=0.25)


REGIMES = 600


def in_coarse_steps(generator: np.random.Generator) -> np.ndarray:
    """2 us and 3 us in spells of some REGIMES releases each, and independent ones at 9 us: 49.65 % are later
    than 2 us."""
    spells = np.full(N // 100, REGIMES) * np.tile([1.06, 0.94], N // 200)
    level = np.repeat(np.tile([2_000, 3_000], N // 200), generator.exponential(spells).astype(np.int64) + 1)
    values = level[generator.integers(0, 2 * REGIMES) :][:N].copy()
    values[generator.random(N) < 0.05] = 9_000
    return values


def median_of_coarse_steps(generator: np.random.Generator) -> tuple[float, float, float]:
    found = quantiles(in_coarse_steps(generator), ("50",), 0.95)["50"]
    return found.lower, found.value, found.upper


def test_intervals_cover_the_quantile_where_values_in_coarse_steps_hang_together(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    """What exceeds the upper step tells nothing of how often it is reached."""
    found = simulate(median_of_coarse_steps, sized("runs", reduced=40, full=500))
    covered = (lower <= 2_000 <= upper for lower, _, upper in found)
    rates.at_least(0.92, covered, "quantiles are covered where values come in coarse steps", "p50, in spells")
    assert {value for _, value, _ in found} == {2_000, 3_000}


def test_each_end_has_the_dependence_of_what_it_rests_on(generator: np.random.Generator) -> None:
    """The upper of what exceeds the quantile, the lower of its equals, too."""
    values = np.repeat(np.tile([2_000, 3_000], N // (2 * REGIMES)), REGIMES)
    values[generator.random(N) < 0.05] = 9_000
    found = quantiles(values, ("51", "93"), 0.95)
    ends = [(one.lower, one.value, one.upper) for one in found.values()]
    assert ends == [(2_000, 3_000, 3_000), (3_000, 3_000, 3_000)]
    reached, exceeded = (design_effect(values, limit, blocks_of(values)) for limit in (2_999, 3_000))
    assert {one.design_effect for one in found.values()} == {reached} and reached > 100 and exceeded == 1


def test_a_short_run_has_no_interval_far_out(generator: np.random.Generator) -> None:
    found = quantiles(EXPONENTIAL.draw(generator, 3), COMPARED, 0.95)
    assert math.isnan(found["99.9"].upper) and math.isnan(found["50"].lower)


def test_lost_releases_are_later_than_any(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, N)
    values[generator.choice(N, N // 50, replace=False)] = LATER
    found = quantiles(values, ("50", "99"), 0.95)
    assert math.isfinite(found["50"].value)
    assert found["99"].value == found["99"].lower == math.inf


def test_a_burst_of_losses_is_one_event(generator: np.random.Generator) -> None:
    """It says little of the next run: neither end of p99's interval need be lost, though the value is."""
    values = EXPONENTIAL.draw(generator, N)
    values[: N // 50] = LATER
    found = quantiles(values, ("99",), 0.95)["99"]
    assert found.value == math.inf and math.isfinite(found.lower) and found.design_effect > 100


def test_independent_values_have_no_design_effect(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, N)
    for tail in (0.5, 0.1, 0.01, 0.001):
        effect = design_effect(values, round(EXPONENTIAL.level_ns(tail)), blocks_of(values))
        assert effect == pytest.approx(1, abs=0.3)


def test_blocks_show_dependence_in_the_middle(generator: np.random.Generator) -> None:
    level = np.repeat(generator.normal(0, 30_000, N // 50), 50)
    values = np.rint(EXPONENTIAL.draw(generator, N) + level).astype(np.int64)
    assert design_effect(values, int(np.median(values)), blocks_of(values)) > 3


def test_all_or_none_above_the_limit() -> None:
    values = np.full(N, 5)
    assert [design_effect(values, limit, blocks_of(values)) for limit in (4, 5)] == [1, 1]


def test_the_miss_ratio_and_its_interval(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, N)
    found = miss_ratio(values, round(EXPONENTIAL.level_ns(1e-3)), 0.95)
    assert found.lower < 1e-3 < found.upper
    assert found.value == pytest.approx(np.mean(values > EXPONENTIAL.level_ns(1e-3)))
