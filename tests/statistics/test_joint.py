"""Is the bound of all repeats of a cell right where runs lie apart, and no wider where they do not?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rates import Rates, Sized
from simulation import Simulation

from rtmeter.judge.verdict import Misses, row_of
from rtmeter.model import Requirement
from rtmeter.statistics.bounds import miss_ratio_bounds
from rtmeter.statistics.joint import Joint, RunMisses, joint, misses_allowed, releases_needed, runs_needed

N = 20_000
MS = 1_000_000
RUNS = {"reduced": 250, "full": 5000}


def drawn(
    generator: np.random.Generator, lengths: Sequence[int], spread: float, clusters: float, size: float
) -> Joint:
    """Runs of such lengths whose ratios are drawn of a gamma distribution whose standard deviation is that
    share of it, with so many clusters of misses in N releases on average, geometric and of that size."""
    shape = 1 / spread**2 if spread else 0.0
    runs = len(lengths)
    each = generator.gamma(shape, clusters / shape, runs) if spread else np.full(runs, clusters)
    found = []
    for n, count in zip(lengths, generator.binomial(lengths, np.minimum(each / N, 1)), strict=True):
        misses = int(generator.geometric(1 / size, count).sum())
        found.append(RunMisses(n, min(n, misses), 2 * size - 1))
    return joint(found, 0.95)


def covered(
    generator: np.random.Generator, lengths: Sequence[int], spread: float, clusters: float, size: float
) -> tuple[bool, bool, bool]:
    """Whether the upper and the lower bound hold the ratio, and whether a requirement that allows a tenth
    more fails."""
    found, ratio = drawn(generator, lengths, spread, clusters, size), clusters * size / N
    asked = Requirement(MS, 1.1 * ratio)
    seen = Misses("latency", found.n, round(found.misses), 0, 0)
    row = row_of(seen, asked, None, (found.lower, found.upper))
    return found.upper >= ratio, found.lower <= ratio, row.outcome == "fail"


@pytest.mark.parametrize("confidence", [0.5, 0.55, 0.6, 0.63, 0.7, 0.95])
@pytest.mark.parametrize("misses", [(10, 0), (6, 4), (1, 0, 0), (300, 1, 40, 0, 0), (20_000, 20_000)])
def test_no_bound_is_on_the_other_side_of_what_was_seen(misses: Sequence[int], confidence: float) -> None:
    found = joint([RunMisses(N, missed, 1.5) for missed in misses], confidence)
    assert found.lower <= sum(misses) / (N * len(misses)) <= found.upper


@pytest.mark.parametrize("runs", [2, 3, 5, 10])
@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("clusters", "size"), [(20.0, 1.0), (20.0, 3.0), (2.0, 1.0)])
def test_the_bounds_of_all_repeats_cover_the_ratio_that_they_are_drawn_of(
    runs: int, spread: float, clusters: float, size: float, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = simulate(covered, sized("runs", **RUNS), (N,) * runs, spread, clusters, size)
    upper, lower, failed = zip(*found, strict=True)
    case = f"{runs} runs, spread {spread:g} of the ratio, {clusters:g} clusters of {size:g}"
    rates.at_least(0.95, upper, "joint bounds cover the miss ratio", f"upper, {case}")
    rates.at_least(0.95, lower, "joint bounds cover the miss ratio", f"lower, {case}")
    claim = "repeats of systems that miss a tenth less than allowed fail"
    rates.at_most(0.05, failed, claim, case)


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("lengths", [(N, N // 4), (N, N // 2, N // 10), (N, *[N // 10] * 4)])
def test_so_do_those_of_runs_of_unequal_length(
    lengths: tuple[int, ...], spread: float, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    """Such as one that was interrupted beside whole ones."""
    found = simulate(covered, sized("runs", **RUNS), lengths, spread, 20.0, 3.0)
    upper, lower, failed = zip(*found, strict=True)
    shares = ", ".join(f"{n / N:g}" for n in lengths)
    case = f"runs of {shares} of the length, spread {spread:g} of the ratio"
    rates.at_least(0.95, upper, "joint bounds cover the miss ratio", f"upper, {case}")
    rates.at_least(0.95, lower, "joint bounds cover the miss ratio", f"lower, {case}")
    rates.at_most(0.05, failed, "repeats of systems that miss a tenth less than allowed fail", case)


def test_one_run_has_the_bounds_of_that_run() -> None:
    alone = joint([RunMisses(N, 20, 3.0)], 0.95)
    assert (alone.lower, alone.upper) == miss_ratio_bounds(20, N, 0.95, 3.0)
    assert (alone.spread, alone.design_effect, alone.apart) == (0, 3, False)


def test_without_spread_the_bounds_are_those_of_one_long_run() -> None:
    """So many misses in each of so many runs leave next to no room for a spread."""
    alike = joint([RunMisses(10**7, 10**5, 1.0)] * 100, 0.95)
    lower, upper = miss_ratio_bounds(10**7, 10**9, 0.95)
    assert alike.spread < 0.01 and not alike.apart
    assert (alike.lower, alike.upper) == (pytest.approx(lower, rel=2e-3), pytest.approx(upper, rel=2e-3))


@pytest.mark.parametrize(("runs", "times"), [(2, 5.628), (3, 3.669)])
def test_few_runs_leave_room_for_as_much_as_the_ratio_itself(runs: int, times: float) -> None:
    """Then ratios are exponential, and of many misses these are the ratios: 2 runs / chi-squared (0.05)."""
    found = joint([RunMisses(10**8, 10**4, 300.0)] * runs, 0.95)
    assert not found.apart and found.spread == pytest.approx(1, rel=1e-3)
    assert found.upper / 1e-4 == pytest.approx(times, rel=4e-2)
    assert found.upper > times * 1e-4  # dependence within them adds to it


def test_a_spread_that_is_seen_is_made_room_for_beyond_that() -> None:
    found = joint([RunMisses(N, misses, 1.0) for misses in (0, 0, 60)], 0.95)
    assert found.apart and found.spread == pytest.approx(np.sqrt(3), rel=0.02)
    assert found.dispersion == pytest.approx((2 * 20**2 + 40**2) / 20 / 2, rel=2e-3)
    alike = joint([RunMisses(N, 20, 1.0)] * 3, 0.95)
    assert found.upper > 1.5 * alike.upper and found.lower < alike.lower
    within = joint([RunMisses(N, misses, 80.0) for misses in (0, 0, 60)], 0.95)
    assert not within.apart and within.spread == pytest.approx(1, rel=1e-3)


def test_the_design_effect_is_that_of_so_many_independent_releases() -> None:
    for misses in [(0, 0, 0), (20, 20, 20), (0, 0, 12), (1, 0, 0)]:
        found = joint([RunMisses(N, each, 1.5) for each in misses], 0.95)
        upper = miss_ratio_bounds(found.misses, found.n, 0.95, found.design_effect)[1]
        assert upper == pytest.approx(found.upper, rel=1e-4) and found.design_effect > 1.5


def test_a_miss_in_dependent_runs_has_a_lower_bound_of_next_to_nothing() -> None:
    """Of 300 releases that hang together a miss counts 1/300: 0.05 to the 300th is no float."""
    found = joint([RunMisses(N, 1, 300.0), RunMisses(N, 0, 300.0)], 0.95)
    assert found.lower == 0 < found.misses / found.n < found.upper < 1


def test_of_a_few_releases_that_lie_apart_one_counts_at_least() -> None:
    found = joint([RunMisses(2, 1, 1.0), RunMisses(2, 0, 1.0), RunMisses(2, 0, 1.0)], 0.95)
    assert found.design_effect == 6 and found.upper < 1


def test_a_further_run_without_a_miss_unsays_nothing() -> None:
    one, two, three = (joint([RunMisses(N, 0, 2.0)] * runs, 0.95).upper for runs in (1, 2, 3))
    assert one == two > three > miss_ratio_bounds(0, 3 * N, 0.95, 2.0)[1]
    assert joint([RunMisses(N, 0, 2.0), RunMisses(1000, 0, 1.0)], 0.95).upper == one


def test_what_nearly_always_misses_is_not_taken_for_something_else() -> None:
    always = joint([RunMisses(N, N, 1.0)] * 2, 0.95)
    assert (always.spread, always.upper) == (0, 1) and always.lower > 0.999
    nearly = joint([RunMisses(N, N - 200, 1.0)] * 2, 0.95)
    assert nearly.lower > 0.8 and nearly.upper == 1


def test_more_runs_bring_the_bound_of_runs_that_lie_apart_down() -> None:
    apart = joint([RunMisses(N, misses, 1.0) for misses in (0, 0, 12)], 0.95)
    needed = runs_needed(apart, 5e-4, 0.95)
    assert needed is not None and needed > 3
    again = joint([RunMisses(N, misses, 1.0) for misses in (0, 0, 12) * needed], 0.95)
    assert again.upper <= 5e-4
    assert runs_needed(apart, 1e-4, 0.95) is None  # 2e-4 miss
    calm = joint([RunMisses(N, 0, 1.0)] * 3, 0.95)
    more = runs_needed(calm, 3e-5, 0.95)
    assert more is not None
    ends = [joint([RunMisses(N, 0, 1.0)] * runs, 0.95).upper <= 3e-5 for runs in (more - 1, more)]
    assert ends == [False, True]


def test_a_plan_of_repeats_is_what_their_bound_will_be() -> None:
    needed = releases_needed(3, 1e-4, 0.95, 2.0)
    uppers = [joint([RunMisses(n, 0, 2.0)] * 3, 0.95).upper for n in (needed // 3 - 1, needed // 3)]
    assert uppers[0] > 1e-4 >= uppers[1]
    most = misses_allowed(300_000, 3, 1e-4, 0.95, 1.0)
    assert most is not None and most > 0
    uppers = [joint([RunMisses(100_000, some / 3, 1.0)] * 3, 0.95).upper for some in (most, most + 1)]
    assert uppers[0] <= 1e-4 < uppers[1]
    assert misses_allowed(20_000, 3, 1e-4, 0.95, 1.0) is None


def test_however_far_apart_runs_are_one_release_at_least() -> None:
    found = joint([RunMisses(100, 100, 1.0), RunMisses(100, 0, 1.0)], 0.999)
    assert found.design_effect <= 200 and found.upper == 1


@pytest.mark.parametrize(
    ("runs", "most"),
    [
        ([(60_000, 0), (1_000, 3)], 2e-5),  # an interrupted repeat that began badly
        ([(600_000, 5), (1_200, 6)], 1e-5),
        ([(60_000, 0)] * 50 + [(1_000, 3)], 1e-6),  # a rig that is new in a fleet
    ],
)
def test_misses_of_a_short_run_beside_long_ones_do_not_raise_the_lower_bound(
    runs: list[tuple[int, int]], most: float
) -> None:
    found = joint([RunMisses(n, misses, 1.0) for n, misses in runs], 0.95)
    assert found.spread > 1 and 0 < found.lower < most
    asked = Requirement(MS, 1e-3)
    seen = Misses("latency", found.n, round(found.misses), 0, 0)
    assert row_of(seen, asked, None, (found.lower, found.upper)).outcome != "fail"


A_RUN = st.integers(1, 10**7).flatmap(
    lambda n: st.builds(
        RunMisses, st.just(n), st.integers(0, n) | st.integers(0, min(n, 5)), st.floats(1.0, n)
    )
)


@given(st.lists(A_RUN, min_size=1, max_size=6), st.sampled_from([0.9, 0.95, 0.9999]))
def test_what_was_seen_lies_between_the_bounds(runs: list[RunMisses], confidence: float) -> None:
    found = joint(runs, confidence)
    seen = found.misses / found.n
    assert 0 <= found.lower <= seen * (1 + 1e-9) and seen * (1 - 1e-9) <= found.upper <= 1


@pytest.mark.parametrize("few", [1, 3])
def test_the_lower_bound_covers_where_one_run_is_far_longer_than_the_others(
    few: int, simulate: Simulation, sized: Sized
) -> None:
    runs = sized("runs", reduced=400, full=5_000)
    found = simulate(covered, runs, (N, *[N // 100] * few), 1.0, 20.0, 1.0)
    assert sum(lower for _, lower, _ in found) / runs > 0.95 - 3 * (0.95 * 0.05 / runs) ** 0.5
    assert not sum(failed for _, _, failed in found) / runs > 0.05 + 3 * (0.95 * 0.05 / runs) ** 0.5
