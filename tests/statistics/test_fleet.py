"""The verdict of a fleet: rigs differ, and that they do decides how much they tell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rtmeter.judge.fleet import as_one, judge_fleet
from rtmeter.model import Requirement
from rtmeter.statistics.joint import RunMisses, joint

ASKED = Requirement(10**6, 0.01, 0.95)
RIGS, RUNS, N = 12, 3, 5_000


def fleet(random: np.random.Generator, ratio: float, apart: float) -> dict[str, list[RunMisses]]:
    """Runs of rigs whose ratios are gamma with a standard deviation of ``apart`` times the mean; misses
    come in clusters of two, which each run knows of itself."""
    ratios = random.gamma(1 / apart**2, ratio * apart**2, RIGS) if apart else np.full(RIGS, ratio)
    clusters = random.binomial(N // 2, np.minimum(ratios, 1)[:, None], (RIGS, RUNS))
    return {f"r{i}": [RunMisses(N, 2 * int(c), 2.0) for c in row] for i, row in enumerate(clusters)}


def test_a_fleet_that_just_misses_its_ratio_rarely_passes(sized: Callable[..., int]) -> None:
    random, times = np.random.default_rng(5), sized("fleets", reduced=60, full=1_000)
    for apart in (0.0, 0.5, 1.0):
        passed = sum(judge_fleet(fleet(random, 0.01, apart), ASKED).outcome == "pass" for _ in range(times))
        assert passed / times <= 0.05 + 3 * (0.05 * 0.95 / times) ** 0.5, apart


def test_a_fleet_well_within_its_ratio_passes_and_one_beyond_fails() -> None:
    random = np.random.default_rng(6)
    assert judge_fleet(fleet(random, 0.0005, 0.5), ASKED).outcome == "pass"
    assert judge_fleet(fleet(random, 0.05, 0.2), ASKED).outcome == "fail"


def test_shares_are_in_per_cent() -> None:
    judged = judge_fleet({"a": [RunMisses(1_000, 200, 1.0)]}, Requirement(10**6, 0.1, 0.95, horizon=1))
    assert judged.reason == "200 of 1,000 releases of 1 rig missed: at least 17.9 %, 10 % is allowed"
    judged = judge_fleet({"a": [RunMisses(100, 0, 1.0)]}, Requirement(10**6, 0.1, 0.95))
    assert judged.reason == "0 of 100 releases of 1 rig missed: at most 2.95 %, 10 % is allowed"


def test_rigs_that_differ_tell_less_than_one_long_run() -> None:
    even = {f"r{i}": [RunMisses(10_000, 50, 1.0)] for i in range(10)}
    uneven = {f"r{i}": [RunMisses(10_000, 500 if i == 0 else 0, 1.0)] for i in range(10)}
    one, other = judge_fleet(even, ASKED), judge_fleet(uneven, ASKED)
    assert (one.n, one.misses) == (other.n, other.misses) == (100_000, 500)
    assert one.outcome == "pass" and other.outcome == "inconclusive"
    assert one.upper is not None and other.upper is not None and one.upper < other.upper


def test_runs_of_a_rig_that_lie_apart_count_by_that() -> None:
    apart = as_one([RunMisses(1000, 0, 1.0), RunMisses(1000, 40, 1.0)], 0.95)
    assert apart.design_effect > 20 and as_one([RunMisses(1000, 20, 3.0)] * 2, 0.95).design_effect == 3.0


def test_a_single_rig_says_no_more_than_its_runs_together() -> None:
    """Two runs with a few misses do not show how far runs lie apart: the bound of one is below theirs."""
    runs = [RunMisses(10_000, 2, 1.0)] * 2
    judged, found = judge_fleet({"a": runs}, Requirement(10**6, 0.001, 0.95)), joint(runs, 0.95)
    assert (judged.lower, judged.upper) == (found.lower, found.upper)
    assert judged.outcome == "inconclusive" and found.upper > joint(runs[:1], 0.95).upper
    assert judged.reason.startswith("4 of 20,000 releases of 1 rig missed")


@pytest.mark.parametrize("asked", [Requirement(10**6), Requirement(10**6, 0.0001, 0.95)])
def test_what_fails_has_no_upper_bound_where_a_run_has_none(asked: Requirement) -> None:
    rigs = {"a": [RunMisses(10_000, 50, 1.0)], "b": [RunMisses(10_000, 60, 1.0)]}
    judged, refused = judge_fleet(rigs, asked), judge_fleet(rigs, asked, refused=1)
    assert judged.outcome == refused.outcome == "fail"
    assert judged.upper is not None and refused.upper is None and refused.lower == judged.lower


def test_nothing_passes_where_something_stands_in_the_way() -> None:
    rigs = {"a": [RunMisses(100_000, 0, 1.0)], "b": [RunMisses(100_000, 0, 1.0)]}
    assert judge_fleet(rigs, ASKED).outcome == "pass"
    assert judge_fleet(rigs, ASKED, refused=1).reason.endswith("of 1 run no bound holds")
    assert judge_fleet(rigs, ASKED, unjudged=2).reason.endswith("2 cells could not be judged")
    for unasked, said in ((1, "1 cell has no requirement"), (2, "2 cells have no requirement")):
        judged = judge_fleet(rigs, ASKED, unasked=unasked)
        assert judged.outcome == "inconclusive" and judged.reason.endswith(said)
    assert {judge_fleet(rigs, ASKED, *n).outcome for n in ((1, 0), (0, 1))} == {"inconclusive"}
    assert judge_fleet({}, ASKED).outcome == "inconclusive"
    none = Requirement(10**6)
    assert judge_fleet(rigs, none).outcome == "pass"
    assert judge_fleet({"a": [RunMisses(10, 1, 1.0)]}, none).outcome == "fail"
    hard = Requirement(10**6, 0.01, criticality="hard")
    assert judge_fleet(rigs, hard).outcome == "inconclusive"
    assert judge_fleet(rigs | {"a": [RunMisses(100_000, 1, 1.0)]}, hard).reason.endswith("none allowed")
