import numpy as np
import pytest
from rates import Rates, Sized
from scipy.signal import lfilter
from scipy.stats import chi2, rankdata
from simulation import Simulation

from rtmeter.statistics.serial import KPSS_LIMIT, autocorrelation, correlation_time, kpss


def kpss_of_cauchy(generator: np.random.Generator) -> float:
    return kpss(generator.standard_cauchy(200))


def test_a_stationary_series_passes_kpss(simulate: Simulation, rates: Rates, sized: Sized) -> None:
    found = simulate(kpss_of_cauchy, sized("runs", reduced=500, full=10_000))
    above = (statistic > KPSS_LIMIT for statistic in found)
    rates.at_most(0.01, above, "stationary series pass the KPSS limit", "200 blocks, Cauchy")


def test_a_trend_and_a_random_walk_do_not(generator: np.random.Generator) -> None:
    noise = generator.normal(size=200)
    assert kpss(noise + np.linspace(0, 3, 200)) > KPSS_LIMIT
    assert kpss(np.cumsum(noise)) > KPSS_LIMIT


def test_kpss_by_its_definition(generator: np.random.Generator) -> None:
    series = generator.normal(size=50)
    ranks = rankdata(series)
    error = ranks - ranks.mean()
    window = int(4 * (50 / 100) ** 0.25)
    variance = sum(e * e for e in error) / 50
    for lag in range(1, window + 1):
        products = sum(error[t] * error[t - lag] for t in range(lag, 50)) / 50
        variance += 2 * (1 - lag / (window + 1)) * products
    partial = [sum(error[: t + 1]) for t in range(50)]
    assert kpss(series) == pytest.approx(sum(s * s for s in partial) / (50**2 * variance))


def test_ljung_box_by_its_definition(generator: np.random.Generator) -> None:
    series = generator.normal(size=60)
    found = autocorrelation(series, lags=5)
    error = rankdata(series) - 30.5
    rho = [float(np.sum(error[lag:] * error[:-lag]) / np.sum(error**2)) for lag in range(1, 6)]
    q = 60 * 62 * sum(r * r / (60 - lag) for lag, r in enumerate(rho, 1))
    assert found.q == pytest.approx(q)
    assert found.probability == pytest.approx(chi2.sf(q, 5))
    assert abs(found.largest) == pytest.approx(max(map(abs, rho)))


def test_autocorrelation_is_seen(generator: np.random.Generator) -> None:
    found = autocorrelation(lfilter([1], [1, -0.7], generator.normal(size=300))[100:])
    assert found.largest > 0.5 and found.probability < 1e-6


def test_equal_values_have_neither() -> None:
    assert kpss(np.full(50, 2.0)) == 0
    assert autocorrelation(np.full(50, 2.0)).q == 0


def test_a_correlation_time_is_one_at_least_and_at_most_what_there_is() -> None:
    assert [correlation_time(np.array(one, dtype=float)) for one in ([], [3], [2, 2, 2])] == [1, 1, 1]
    assert correlation_time(np.tile([0.0, 1.0], 50)) == 1
    assert correlation_time(np.array([1.0, 1, 0, 0])) == 1.5  # of autocorrelations 1, 1/4, -1/2, -1/4
    assert correlation_time(np.arange(7.0)) == pytest.approx(2 * (1 + 16 / 28 + 5 / 28 - 4 / 28) - 1)


def test_a_correlation_time_by_its_definition(generator: np.random.Generator) -> None:
    series = lfilter([1], [1, -0.9], generator.normal(size=301))
    error = series - series.mean()
    rho = [float(error[lag:] @ error[: len(error) - lag]) / float(error @ error) for lag in range(300)]
    found, least = -1.0, np.inf
    for one, next_one in zip(rho[::2], rho[1::2], strict=True):
        if one + next_one <= 0:
            break
        least = min(least, one + next_one)
        found += 2 * least
    assert correlation_time(series) == pytest.approx(found)
