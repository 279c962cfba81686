"""What n is worth counts all three ways in which late releases hang together, not clusters alone."""

from __future__ import annotations

import numpy as np
import pytest
from processes import Process
from rates import Rates, Sized
from simulation import Simulation
from stationary import MS

from rtmeter.statistics.blocks import blocks_of
from rtmeter.statistics.clusters import dependence
from rtmeter.statistics.evidence import examine
from rtmeter.statistics.gates import dependence_between_blocks
from rtmeter.statistics.quantiles import miss_ratio, quantiles
from rtmeter.statistics.worth import design_effect, worth

N = 60_000
STRETCH = 1_500
LATE = 500


@pytest.fixture
def alternating(generator: np.random.Generator) -> np.ndarray:
    """Stretches with a scale of 1.3 and 1 in turn: late releases hardly touch, and crowd into every other."""
    busy = np.arange(N) // STRETCH % 2 == 0
    return np.rint(Process("exponential").draw(generator, N) * np.where(busy, 1.3, 1)).astype(np.int64)


def test_what_blocks_show_counts_beside_clusters(alternating: np.ndarray) -> None:
    limit_ns = int(np.sort(alternating)[-LATE - 1])
    misses = np.flatnonzero(alternating > limit_ns)
    assert len(misses) == LATE
    blocks = blocks_of(alternating)
    assert blocks is not None
    found = worth(alternating, misses, limit_ns, blocks)
    clusters = found.dependence.design_effect
    factor, findings = dependence_between_blocks(blocks, clusters)
    assert {one.statistic for one in findings} == {
        "dispersion of exceedances a block",
        "Ljung-Box Q of blocks",
    }
    assert found.findings == tuple(findings) and found.design_effect == clusters * factor
    stretches = np.bincount(misses // STRETCH, minlength=N // STRETCH)
    varies = stretches.var(ddof=1) / stretches.mean()
    assert clusters < 0.6 * varies < varies < found.design_effect


def test_what_misses_show_stands_for_what_the_latest_show_and_not_beside_it(alternating: np.ndarray) -> None:
    """The latest crowd into every other stretch; misses that are none of them into every third, and more."""
    level_ns = int(np.sort(alternating)[-N // 10])
    at = np.arange(N)
    alternating[(at // STRETCH % 3 == 1) & (at % 5 < 3)] = level_ns
    blocks = blocks_of(alternating)
    assert blocks is not None and blocks.threshold_ns > level_ns
    misses = np.flatnonzero(alternating >= level_ns)
    factor, findings = dependence_between_blocks(blocks.with_misses(alternating, misses), 1.0)
    assert [one.statistic for one in findings][-1] == "dispersion of misses a block" and len(findings) > 1
    assert factor == findings[-1].value > 2 * findings[0].value


def test_of_many_misses_independent_ones_vary_less_than_of_rare_ones(generator: np.random.Generator) -> None:
    """By n p (1 - p): half of 200 blocks miss 90 %, the others, among them, 70 %."""
    busy = np.repeat(generator.permutation(200) < 100, N // 200)
    missed = generator.random(N) < np.where(busy, 0.9, 0.7)
    values = np.where(missed, 2 * MS, 0) + generator.integers(0, 1_000, N)
    blocks = blocks_of(values)
    assert blocks is not None
    blocks = blocks.with_misses(values, np.flatnonzero(missed))
    counts = blocks.others[-1]
    found = dependence_between_blocks(blocks, 1.0)[1][-1]
    assert found.value == pytest.approx(counts.var(ddof=1) / counts.mean() / (1 - missed.mean()))


def test_verdict_comparison_and_quantile_count_it_alike(alternating: np.ndarray) -> None:
    limit_ns = int(np.sort(alternating)[-LATE - 1])
    effect = worth(
        alternating, np.flatnonzero(alternating > limit_ns), limit_ns, blocks_of(alternating)
    ).design_effect
    assert effect > 5
    assert miss_ratio(alternating, limit_ns, 0.95).design_effect == effect
    assert examine(alternating, MS, limit_ns).design_effect == effect
    p99 = quantiles(alternating, ("99",), 0.95)["99"]
    assert p99.design_effect > 5


def test_however_alike_releases_are_one_at_least() -> None:
    """All misses at the end of a run: the three ways together would make less than one of it."""
    values = np.zeros(N, dtype=np.int64)
    values[-N // 20 :] = MS
    assert worth(values, np.flatnonzero(values), 0, blocks_of(values)).design_effect == N


def test_however_alike_they_are_one_at_least_below_a_quantile_and_by_their_clusters_alone() -> None:
    """A median where the level changes for good in a short run; nine tenths of a run in one burst, and a
    single miss at its end."""
    short = np.repeat([2_000, 3_000], 500)
    assert design_effect(short, 2_000, blocks_of(short)) == len(short)
    burst = np.append(np.arange(9 * N // 10), N - 1)
    found = dependence(burst, burst, 0, N)
    assert found.clusters.count == 2 and found.design_effect == N


SHORT = (100, 200, 400, 900)
"""Releases of runs that are too short for blocks."""


def effect_of_independent(generator: np.random.Generator, n: int, above: float) -> float:
    values = generator.integers(0, MS, n)
    return design_effect(values, round(MS * (1 - above)), blocks_of(values))


@pytest.mark.parametrize("above", [0.5, 0.1, 0.01])
def test_a_short_run_of_independent_releases_counts_as_it_is(
    above: float, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    of_each = sized("runs", reduced=200, full=2_500)
    found = [one for n in SHORT for one in simulate(effect_of_independent, of_each, n, above)]
    case = f"100 to 900 independent releases, {above:.0%} above"
    rates.at_most(0.01, (one > 1 for one in found), "releases count as less than they are", case)


def in_spells(generator: np.random.Generator, n: int, spell: int) -> np.ndarray:
    """2 us and 3 us, and up to 0.4 us more, in spells of so many releases on average, in n of them."""
    lengths = generator.exponential(spell, 2 * n).astype(np.int64) + 1
    level = np.repeat(np.tile([2_000, 3_000], n), lengths)[generator.integers(0, 4 * spell) :][:n]
    return level + generator.integers(0, 401, n)


def interval_in_spells(generator: np.random.Generator, n: int, spell: int) -> tuple[float, float]:
    found = quantiles(in_spells(generator, n, spell), ("75",), 0.95)["75"]
    return found.lower, found.upper


@pytest.mark.parametrize(("n", "spell"), [(200, 20), (400, 20), (900, 20), (900, 60)])
def test_a_short_run_in_spells_counts_as_less(
    n: int, spell: int, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    """Taken as independent, 35 to 64 in 100 of these intervals held the quantile."""
    found = simulate(interval_in_spells, sized("runs", reduced=60, full=2_000), n, spell)
    covered = (lower <= 3_200 <= upper for lower, upper in found)
    rates.at_least(0.87, covered, "quantiles of short runs are covered", f"p75, {n} in spells of {spell}")
