"""Where a quantile falls on a lost release, nothing is made up: no number, no warning."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

from rtmeter.statistics.compare import compare, mover
from rtmeter.statistics.effects import Stratum, interactions
from rtmeter.statistics.estimates import estimates
from rtmeter.statistics.gate import judge_gate, parse_gate
from rtmeter.statistics.quantiles import Estimate
from rtmeter.statistics.views import LATER

N = 5_000


def run(lost_share: float, seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed)
    values = generator.exponential(50_000, N).astype(np.int64)
    values[generator.random(N) < lost_share] = LATER
    return values


@pytest.mark.parametrize("sides", [*itertools.product((0.0, 0.02, 0.6), repeat=4)])
def test_pairs_are_compared_without_a_warning(sides: tuple[float, ...]) -> None:
    known = [estimates(run(share, seed), 10**6) for seed, share in enumerate(sides)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare([(known[0], known[1]), (known[2], known[3])])
        compare([(known[0], known[1])])


def test_the_interval_of_what_is_lost_is_that_of_the_furthest_ends() -> None:
    seen, lost = Estimate(5.0, 4.0, 7.0, 1.0), Estimate(math.inf, 6.0, math.inf, 1.0)
    sure = Estimate(math.inf, math.inf, math.inf, 1.0)
    assert mover(seen, lost) == (-1.0, math.inf) and mover(lost, seen) == (-math.inf, 1.0)
    assert mover(seen, sure) == (math.inf, math.inf) and mover(sure, seen) == (-math.inf, -math.inf)
    assert mover(sure, sure) == (0.0, 0.0)


@pytest.mark.parametrize(("pairs", "outcomes"), [(1, ["fail", "pass"]), (5, ["fail", "pass"])])
def test_a_gate_on_what_is_lost_on_one_side_only_is_told_of_pairs_too(
    pairs: int, outcomes: list[str]
) -> None:
    kept, lost = ([estimates(run(share, seed), None) for seed in range(pairs)] for share in (0.0, 0.02))
    gate = parse_gate("p99<+5%")
    both = [list(zip(kept, lost, strict=True)), list(zip(lost, kept, strict=True))]
    found = [judge_gate(gate, one) for one in both]
    assert [one.outcome for one in found] == outcomes
    assert [one.excess.lower for one in found] == [math.inf, -math.inf]


def test_a_gate_on_what_just_lost_its_quantile_in_two_pairs_cannot_tell() -> None:
    """A hundredth and a few more of the releases are lost: one that is alike may as well have lost fewer."""
    just = run(0.0)
    just[: N // 100 + 5] = LATER
    kept, lost = estimates(run(0.0), None), estimates(just, None)
    assert math.isinf(lost.quantities["p99"].value) and lost.quantities["p99"].lower < math.inf
    gate = parse_gate("p99<+5%")
    for one in ((kept, lost), (lost, kept)):
        assert judge_gate(gate, [one] * 2).outcome == "inconclusive"


def test_pairs_are_no_surer_than_runs_whose_interval_ends_at_a_lost_release() -> None:
    """Just fewer than a hundredth of the releases are lost: p99 is known, and its upper end is not."""
    few = [run(0.0, seed) for seed in range(6)]
    for values in few:
        values[:: N // 45] = LATER
    runs = [estimates(values, None, 0.95, ("50", "99")) for values in few]
    assert all(math.isfinite(one.quantities["p99"].value) for one in runs)
    assert all(math.isinf(one.quantities["p99"].upper) for one in runs)
    whole = estimates(run(0.0, 7), None, 0.95, ("50", "99"))
    gate = parse_gate("p99<+90%")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for pairs in (list(zip(runs[:3], runs[3:], strict=True)), [(whole, one) for one in runs]):
            for added in (False, True):
                p50, p99 = compare(pairs, added=added).shifts
                assert p50.outcome != "not told" and p99.outcome == "not told"
                assert p99.effect is not None and "lost release" in p99.effect.words
            assert judge_gate(gate, pairs).outcome == "inconclusive"
        there = [Stratum({"load": load}, tuple(pairs)) for load in ("idle", "full")]
        assert interactions("p99", there, 0.95) == []
