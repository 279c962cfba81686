"""The return levels that plots show: those of the peaks, where nothing refuses them."""

from __future__ import annotations

import numpy as np
import pytest
from processes import Process
from stationary import FAR, HOURS, MINUTE, MS

from rtmeter.statistics.evidence import examine
from rtmeter.statistics.levels import POINTS, levels
from rtmeter.statistics.tail_fits import peaks_over
from rtmeter.statistics.views import LATER

EXPONENTIAL = Process("exponential")


def test_levels_of_an_ordinary_run_are_stated_with_their_intervals(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, MINUTE)
    found = levels(values, MS, examine(values, MS, FAR), 0.9)
    assert found.refusals == () and found.confidence == 0.9
    assert found.run_hours == pytest.approx(HOURS)
    assert len(found.hours) == len(found.level_ns) == len(found.lower_ns) == len(found.upper_ns) == POINTS
    assert found.hours[-1] == pytest.approx(10 * HOURS)
    assert found.hours[0] == pytest.approx(1.01 * 10 / 400 * HOURS)  # ten peaks are expected in it
    assert np.all(np.diff(found.level_ns) > 0)
    assert np.all((found.lower_ns < found.level_ns) & (found.level_ns < found.upper_ns))
    fit = peaks_over(values, 400, 10.0, 0.9)
    assert fit is not None
    assert (found.level_ns[-1], found.lower_ns[-1], found.upper_ns[-1]) == (
        pytest.approx(fit.level_ns),
        *map(pytest.approx, fit.level_interval_ns),
    )


def test_the_largest_of_n_peaks_is_passed_once_in_n_plus_1_nths_of_the_run(
    generator: np.random.Generator,
) -> None:
    values = EXPONENTIAL.draw(generator, MINUTE)
    found = levels(values, MS, examine(values, MS, FAR))
    n = len(found.peaks_ns)
    assert 300 < n <= 400 and found.peaks_ns[0] == values.max()
    assert np.all(np.diff(found.peaks_ns) <= 0)
    assert found.peaks_hours[[0, 1, -1]] == pytest.approx(HOURS * (n + 1) / n / np.array([1, 2, n]))


def test_a_lost_release_is_no_point_but_keeps_its_rank(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, MINUTE)
    values[30_000] = LATER
    found = levels(values, MS, examine(values, MS, FAR))
    assert found.peaks_ns[0] == np.sort(values)[-2]
    assert found.peaks_hours[0] == pytest.approx(HOURS / 2, rel=0.01)
    assert "lost" in {finding.type for finding in found.refusals}
    assert len(found.hours) == len(found.level_ns) == 0
