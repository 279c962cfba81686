import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from rtmeter.statistics.likelihood import Fit, holds, interval, maximise


def gaussian(at: np.ndarray) -> np.ndarray:
    """Of (x, y): x about 3 with a deviation of 2, y about x with one of 0.5."""
    x, y = at.T
    return ((x - 3) / 2) ** 2 / 2 + ((y - x) / 0.5) ** 2 / 2


def banana(at: np.ndarray) -> np.ndarray:
    """Rosenbrock's valley: not convex, curved, its minimum at (1, 1)."""
    x, y = at.T
    return (1 - x) ** 2 + 100 * (y - x * x) ** 2


def above_zero(at: np.ndarray) -> np.ndarray:
    """Impossible where x is not positive; the minimum is at 2."""
    x = at[:, 0]
    with np.errstate(all="ignore"):
        return np.where(x > 0, x - 2 * np.log(np.abs(x)), np.inf)


def levelling_off(at: np.ndarray) -> np.ndarray:
    """Rises by no more than 1 on the right of its minimum at 0."""
    x = at[:, 0]
    return np.where(x < 0, x * x, np.tanh(np.maximum(x, 0)) ** 2) + (at[:, 1] - 1) ** 2


@pytest.mark.parametrize("start", [(0.0, 0.0), (-40.0, 30.0)])
def test_the_maximum_of_a_gaussian_is_found_at_once(start: tuple[float, float]) -> None:
    found = maximise(gaussian, np.array(start))
    assert found.at == pytest.approx([3, 3], abs=1e-4)
    assert np.linalg.inv(found.curvature)[0, 0] == pytest.approx(4, rel=1e-4)


@pytest.mark.parametrize("start", [(-1.2, 1.0), (0.0, 3.0)])
def test_a_curved_valley_is_followed(start: tuple[float, float]) -> None:
    assert maximise(banana, np.array(start)).at == pytest.approx([1, 1], abs=0.02)


@pytest.mark.parametrize("start", [0.001, 5.0, -3.0])
def test_an_impossible_start_and_a_border_are_no_hindrance(start: float) -> None:
    assert maximise(above_zero, np.array([start])).at[0] == pytest.approx(2, abs=1e-2)


@pytest.mark.parametrize(("index", "deviation"), [(0, 2.0), (1, math.hypot(2, 0.5))])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_interval_of_a_gaussian_is_its_own(index: int, deviation: float, confidence: float) -> None:
    best = maximise(gaussian, np.array([0.0, 0.0]))
    reach = float(ndtri((1 + confidence) / 2)) * deviation
    found = interval(gaussian, best, index, confidence)
    assert (found.lower, found.upper) == pytest.approx((3 - reach, 3 + reach), rel=2e-3)
    assert best.converged and found.converged


def test_an_interval_without_an_end_is_infinite() -> None:
    best = maximise(levelling_off, np.array([0.1, 0.0]))
    found = interval(levelling_off, best, 0, 0.95)
    lower, upper = found.lower, found.upper
    assert found.converged
    assert lower == pytest.approx(-math.sqrt(1.9207), rel=1e-2)
    assert upper == math.inf


def test_an_interval_holds_what_lies_between_its_ends() -> None:
    best: Fit = maximise(gaussian, np.array([0.0, 0.0]))
    found = interval(gaussian, best, 0, 0.95)
    lower, upper = found.lower, found.upper
    assert holds(gaussian, best, 0, lower + 0.1, 0.95) and holds(gaussian, best, 0, upper - 0.1, 0.95)
    assert not holds(gaussian, best, 0, lower - 0.1, 0.95) and not holds(gaussian, best, 0, upper + 0.1, 0.95)


# Searches that end without a maximum.


def falling(at: np.ndarray) -> np.ndarray:
    """Has no minimum."""
    return np.asarray(at[:, 0] - at[:, 1])


def narrow(at: np.ndarray) -> np.ndarray:
    """A valley so bent that 50 steps do not reach its end."""
    x, y = at.T
    return (1 - x) ** 2 + 1e9 * (y - x * x) ** 2


def nowhere(at: np.ndarray) -> np.ndarray:
    return np.full(len(at), np.inf)


def a_point(at: np.ndarray) -> np.ndarray:
    """Possible in one place only."""
    return np.where((at == 1.0).all(axis=1), 0.0, np.inf)


@pytest.mark.parametrize(
    ("nll", "start"),
    [(falling, (0.0, 0.0)), (narrow, (-30.0, 900.0)), (nowhere, (0.0, 0.0)), (a_point, (1.0, 1.0))],
)
def test_a_search_without_a_maximum_says_so(
    nll: Callable[[np.ndarray], np.ndarray], start: tuple[float, float]
) -> None:
    found = maximise(nll, np.array(start))
    assert not found.converged and found.gain > 1


def test_what_rests_on_no_maximum_says_so() -> None:
    best = maximise(gaussian, np.array([0.0, 0.0]))
    assert not interval(gaussian, replace(best, gain=1.0), 0, 0.95).converged

    for side in (-1, 1):

        def one_sided(at: np.ndarray, side: int = side) -> np.ndarray:
            x, y = at.T
            far = side * (x - 3) > 1
            return np.where(far, ((x - 3) / 2) ** 2 / 2 + 0.1 - 0.05 * y, gaussian(at))

        assert not interval(one_sided, best, 0, 0.95).converged
