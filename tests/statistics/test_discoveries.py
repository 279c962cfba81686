"""Changes among very many series: few false ones among those that are named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rtmeter.statistics.discoveries import changed, step_up, unlike


def test_the_step_up_procedure_rejects_as_it_was_published() -> None:
    """Benjamini and Hochberg's own example (1995, section 3.2): four of fifteen at 5 %."""
    p_values = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262]
    p_values += [0.5719, 0.6528, 0.7590, 1.0]
    assert step_up(np.array(p_values), 0.05) == [True] * 4 + [False] * 11
    assert step_up(np.array(p_values[::-1]), 0.05) == [False] * 11 + [True] * 4
    assert step_up(np.ones(3), 0.05) == [False] * 3 and step_up(np.array([]), 0.05) == []


def test_a_series_in_no_order_is_seldom_unlike(sized: Callable[..., int]) -> None:
    random, times = np.random.default_rng(3), sized("series", reduced=2_000, full=50_000)
    seen = np.array([unlike(random.lognormal(0, 0.5, 60)) for _ in range(times)])
    for level in (0.05, 0.01):
        assert (seen <= level).mean() <= level + 3 * (level / times) ** 0.5
    assert unlike(np.ones(60)) == 1.0 and unlike(np.arange(3.0)) == 1.0
    assert unlike(np.r_[np.zeros(30), np.ones(30)]) < 1e-10


def test_the_shortest_part_at_either_end_is_looked_at() -> None:
    late = np.r_[np.random.default_rng(5).normal(0, 0.1, 30), 9.0, 9.5]
    assert unlike(late) == pytest.approx(unlike(late[::-1])) and unlike(late) < 1
    middle = np.r_[late[:16], 9.0, 9.5, late[16:30]]
    assert unlike(late) < unlike(middle)


def test_false_discoveries_are_few_and_a_step_in_a_hundredth_is_found(sized: Callable[..., int]) -> None:
    """A tenth more in one series of a hundred, ten days ago; the noise of p99.9 from day to day is 3 %."""
    random, count = np.random.default_rng(4), sized("series", reduced=3_000, full=100_000)
    series = list(np.exp(random.normal(0, 0.03, (count, 60)) + random.normal(0, 0.5, (count, 1))))
    true = set(range(0, count, 100))
    for number in true:
        series[number][-10:] *= 1.1
    found = changed(series)
    false = len(set(found) - true)
    assert false <= 0.05 * len(found) + 3 * (0.05 * len(found)) ** 0.5
    hits = [number for number in true if number in found and abs(found[number][-1] - 50) <= 3]
    assert len(hits) >= 0.9 * len(true)


@pytest.mark.parametrize("size", [0, 1, 19])
def test_series_that_are_too_short_are_not_looked_at(size: int) -> None:
    assert changed([np.r_[np.zeros(size // 2), np.ones(size - size // 2)]]) == {}


def test_series_that_are_too_short_do_not_hide_others() -> None:
    random = np.random.default_rng(8)
    long = [np.r_[random.normal(0, 1, 20), random.normal(3.2, 1, 8)] for _ in range(4)]
    assert set(changed([np.zeros(5)] * 1_000 + long)) == {1_000 + number for number in changed(long)} != set()
