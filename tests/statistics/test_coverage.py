"""Do the bounds hold? Simulated on processes whose miss ratio is known, with all gates on."""

from __future__ import annotations

import numpy as np
import pytest
from processes import CLUSTERED, INDEPENDENT, Process
from rates import Rates, Sized

from rtmeter.statistics.bounds import miss_ratio_bounds
from rtmeter.statistics.evidence import examine

MS = 1_000_000
N = 20_000
EXCESS = 1.1
"""By how much a system that violates its requirement does."""


@pytest.mark.parametrize("clusters", [3.5, 30, 300])
@pytest.mark.parametrize("process", INDEPENDENT + CLUSTERED, ids=lambda process: process.name)
def test_the_bound_covers_the_miss_ratio(
    process: Process, clusters: float, generator: np.random.Generator, rates: Rates, sized: Sized
) -> None:
    """``clusters`` of misses are expected in a run; a run that gates refuse has no bound and passes
    nothing."""
    runs = sized("runs", reduced=15, full=2000)
    ratio = clusters / process.extremal_index / N
    deadline = round(process.level_ns(ratio))
    covered = stated = passed = 0
    for _ in range(runs):
        found = examine(process.draw(generator, N), MS, deadline)
        if found.refusals:
            continue
        stated += 1
        upper = miss_ratio_bounds(len(found.misses), N, 0.95, found.design_effect)[1]
        covered += upper >= ratio
        passed += upper <= ratio / EXCESS
    what = f"{process.name}, {clusters:g} clusters a run"
    rates.at_least(0.94 if process.extremal_index == 1 else 0.92, covered, stated, f"bound covers, {what}")
    rates.at_most(0.05, passed, runs, f"violating by a tenth and passed, {what}")


@pytest.mark.parametrize("clusters", [10, 100])
@pytest.mark.parametrize("theta", [0.3, 0.5])
def test_the_bound_covers_where_only_misses_cluster(
    theta: float, clusters: int, generator: np.random.Generator, rates: Rates, sized: Sized
) -> None:
    """A rare mode that comes in bursts of geometric length, over a body of single values: below the
    deadline nothing tells of the bursts."""
    runs = sized("runs", reduced=15, full=2000)
    body = Process("exponential")
    ratio = clusters / theta / N
    covered = stated = 0
    for _ in range(runs):
        values = body.draw(generator, N)
        count = generator.poisson(clusters)
        for start, length in zip(
            generator.integers(0, N, count), generator.geometric(theta, count), strict=True
        ):
            values[start : start + length] = 10 * MS
        found = examine(values, MS, 5 * MS)
        if not found.refusals:
            stated += 1
            covered += miss_ratio_bounds(len(found.misses), N, 0.95, found.design_effect)[1] >= ratio
    rates.at_least(0.92, covered, stated, f"bound covers, bursts of index {theta}, {clusters} a run")
