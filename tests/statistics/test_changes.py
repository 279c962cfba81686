import numpy as np
import pytest
import ruptures
from rates import Rates, Sized
from scipy.stats import rankdata
from simulation import Simulation

from rtmeter.statistics.changes import BANDWIDTH, PENALTY, SMALLEST_SEGMENT, change_points


def is_changed(generator: np.random.Generator, blocks: int) -> bool:
    return bool(change_points(generator.normal(size=blocks)))


def test_unchanging_series_seldom_show_a_change(simulate: Simulation, rates: Rates, sized: Sized) -> None:
    runs = sized("runs", reduced=300, full=5000)
    changed = {f"{blocks} blocks": simulate(is_changed, runs, blocks) for blocks in (20, 60, 200)}
    rates.at_most_of_each(0.005, changed, "change points are seen in an unchanging series")


@pytest.mark.parametrize("distribution", ["exponential", "standard_cauchy", "uniform"])
def test_the_distribution_does_not_matter(distribution: str, generator: np.random.Generator) -> None:
    ranks = generator.permutation(100) / 100
    values = np.sort(getattr(generator, distribution)(size=100))[(ranks * 100).astype(int)]
    values[60:] += 100 * np.ptp(values)
    assert change_points(values) == [60]


def test_a_shift_is_found_where_it_is(generator: np.random.Generator) -> None:
    series = generator.normal(size=200)
    series[70:] += 3
    series[150:] -= 5
    first, second = change_points(series)
    assert abs(first - 70) <= 2 and abs(second - 150) <= 1


def test_a_change_of_spread_is_found(generator: np.random.Generator) -> None:
    series = generator.normal(size=200)
    series[100:] *= 10
    assert change_points(series)


def test_the_segments_agree_with_ruptures(generator: np.random.Generator) -> None:
    """Its kernel is the same with gamma = 1 / (2 bandwidth^2)."""
    for _ in range(20):
        series = generator.normal(size=80)
        series[int(generator.integers(10, 70)) :] += generator.normal(0, 2)
        ranks = rankdata(series) / 81
        theirs = ruptures.KernelCPD(
            kernel="rbf", min_size=max(2, round(SMALLEST_SEGMENT * 80)), params={"gamma": 0.5 / BANDWIDTH**2}
        )
        assert change_points(series) == theirs.fit(ranks[:, None]).predict(pen=PENALTY)[:-1]


def test_equal_values_do_not_change() -> None:
    assert change_points(np.full(100, 3.0)) == []
