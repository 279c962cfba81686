import numpy as np
import pytest
from processes import CLUSTERED, Process
from rates import Rates, Sized
from scipy.optimize import isotonic_regression
from simulation import Simulation

from rtmeter.statistics.modes import FEWEST, _least_concave_majorant, quantum, second_mode

N = 200_000


def tail(values: np.ndarray) -> np.ndarray:
    return np.sort(np.rint(values).astype(np.int64))[-len(values) // 10 :]


def normal(generator: np.random.Generator, late: float, n: int = N) -> np.ndarray:
    """50 us and 10 us about it; a share of ``late`` comes at 500 us instead."""
    return np.where(generator.random(n) < late, generator.normal(5e5, 2e4, n), generator.normal(5e4, 1e4, n))


@pytest.mark.parametrize("late", [1e-3, 0.01, 0.05])
def test_a_second_mode_is_found_and_placed(late: float, generator: np.random.Generator) -> None:
    found = second_mode(tail(normal(generator, late)), 1)
    assert found is not None
    assert 4.2e5 < found.at_ns < 5.5e5
    assert found.share > 0.05


@pytest.mark.parametrize(
    "process",
    [Process("exponential"), Process("lognormal"), Process("pareto"), *CLUSTERED],
    ids=lambda process: process.name,
)
def test_one_mode_is_one(process: Process, generator: np.random.Generator) -> None:
    effect = (2 - process.extremal_index) / process.extremal_index
    for _ in range(10):
        assert second_mode(tail(process.draw(generator, N)), 1, effect) is None


def shows_a_mode(generator: np.random.Generator, count: int) -> bool:
    return second_mode(np.sort(generator.integers(0, 10**8, count + 1)), 1) is not None


def test_a_constant_density_the_worst_case_seldom_shows_a_mode(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    runs, counts = sized("runs", reduced=560, full=5000), (2 * FEWEST, 32 * FEWEST)
    shown = {f"up to {count} values": simulate(shows_a_mode, runs, count) for count in counts}
    rates.at_most_of_each(0.003, shown, "modes are seen in a constant density")


def test_a_tail_wholly_within_its_mode_is_no_mixture(generator: np.random.Generator) -> None:
    assert second_mode(tail(normal(generator, 0.3)), 1) is None


@pytest.mark.parametrize("step", [1_000, 10_000])
def test_the_steps_of_a_clock_are_no_modes(step: int, generator: np.random.Generator) -> None:
    values = Process("exponential").draw(generator, N) // step * step
    assert quantum(tail(values)) == step
    assert second_mode(tail(values), step) is None


def test_a_mode_is_found_through_the_steps_of_a_clock(generator: np.random.Generator) -> None:
    values = normal(generator, 0.01) // 10_000 * 10_000
    found = second_mode(tail(values), 10_000)
    assert found is not None and 4.2e5 < found.at_ns < 5.5e5


def test_equal_values_have_no_mode_and_no_quantum() -> None:
    equal = np.full(1000, 7)
    assert quantum(equal) == 0
    assert second_mode(equal, 0) is None


@pytest.mark.parametrize("values", [2, 3, 40, 1000])
def test_the_majorant_is_grenanders(values: int, generator: np.random.Generator) -> None:
    x, y = (np.cumsum(generator.pareto(1.5, values)) for _ in range(2))
    density = isotonic_regression(np.diff(y) / np.diff(x), weights=np.diff(x), increasing=False).x
    expected = y[0] + np.append(0, np.cumsum(density * np.diff(x)))
    np.testing.assert_allclose(_least_concave_majorant(x, y), expected, rtol=1e-9)
