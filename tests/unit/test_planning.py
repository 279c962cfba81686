"""What a plan says of a cell, by its criticality."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.campaign.plan import Assumed, plan_cell, plan_run
from rtmeter.campaign.plan_factors import SPREAD_OF_RUNS, Seen, plan_factors
from rtmeter.model import Cell, Requirement
from rtmeter.statistics.bounds import miss_ratio_bounds, releases_needed
from rtmeter.statistics.effects import confidences
from rtmeter.statistics.evidence import FEWEST_JUDGED
from rtmeter.statistics.extremes import FEWEST_RELEASES
from rtmeter.statistics.halving import repeats_to_show
from rtmeter.statistics.joint import RunMisses, joint

MS = 1_000_000


def cell(releases: int, requirement: Requirement | None) -> Cell:
    config = {"measurement": "wakeup", "samples": releases, "period_ns": MS}
    return Cell("a", "posix", None, {}, config, requirement)


@pytest.mark.parametrize(("criticality", "most"), [("soft", 5), ("firm", 5), ("hard", 0)])
def test_a_hard_cell_may_miss_nothing_however_long(criticality: str, most: int) -> None:
    required = Requirement(MS, 1e-3, criticality=criticality)  # type: ignore[arg-type]
    found = plan_cell("a", [cell(10_513, required)], Assumed())
    assert (found.outcome, found.most_misses) == ("can pass", most)
    assert miss_ratio_bounds(5, 10_513, 0.95)[1] <= 1e-3 < miss_ratio_bounds(6, 10_513, 0.95)[1]


def test_a_cell_too_short_for_its_ratio_never_passes() -> None:
    required = Requirement(MS, 1e-3)
    needed = releases_needed(0, 1e-3, 0.95)
    assert plan_cell("a", [cell(needed - 1, required)], Assumed()).outcome == "never"
    found = plan_cell("a", [cell(needed, required)], Assumed())
    assert (found.outcome, found.most_misses) == ("can pass", 0)
    assert found.needed is not None and found.needed.releases == needed
    assert plan_cell("a", [cell(needed, required)], Assumed(design_effect=1.01)).outcome == "never"


def test_a_hard_cell_needs_its_extremes() -> None:
    required = Requirement(MS, None, criticality="hard")
    assert plan_cell("a", [cell(FEWEST_RELEASES - 1, required)], Assumed()).outcome == "never"
    found = plan_cell("a", [cell(FEWEST_RELEASES, required)], Assumed())
    assert (found.outcome, found.most_misses) == ("can pass", 0)
    assert found.needed is not None and found.needed.releases == FEWEST_RELEASES


def test_what_refuses_bounds_lets_no_length_pass() -> None:
    found = plan_cell("a", [cell(10**7, Requirement(MS, 1e-3))], Assumed(like="x", refusals=("drifts",)))
    assert (found.outcome, found.most_misses) == ("never", None)


def test_a_cell_without_a_requirement_plans_nothing() -> None:
    found = plan_cell("a", [cell(10, None)], Assumed())
    assert (found.outcome, found.needed, found.releases) == ("no requirement", None, 10)
    assert found.hours == pytest.approx(10 / 3.6e6)


def test_a_hard_run_plans_no_misses() -> None:
    hard = plan_run(Requirement(MS, 1e-3, criticality="hard"), MS, Assumed())
    firm = plan_run(Requirement(MS, 1e-3), MS, Assumed())
    assert [row.misses_allowed for row in hard.plans] == [0]
    assert [row.misses_allowed for row in firm.plans] == [0, 1, 2, 3, 4, 5]


def evidence(n: int, misses: int, effect: float, refused: str) -> Any:
    found = SimpleNamespace(n=n, misses=range(misses), design_effect=effect, refusals=())
    found.dependence = SimpleNamespace(extremal_index=1 / effect)
    found.refusals = (SimpleNamespace(message=refused),)
    return found


def test_of_several_runs_the_most_dependent_is_assumed_and_the_misses_of_all() -> None:
    runs = [evidence(1_000, 3, 1.0, "x"), evidence(2_000, 4, 2.0, "y"), evidence(500, 1, 1.5, "x")]
    found = Assumed.seen("a", runs, MS)
    assert found == Assumed(2.0, 0.5, "a", misses=8, n=3_500, refusals=("x", "y"), period_ns=MS)


def test_a_run_that_misses_as_often_as_a_pilot_may_be_shorter_than_it() -> None:
    """But not than what is looked at: some hundred releases, of which one in a thousand misses, would do for
    one in a hundred."""
    assumed = Assumed(like="a", misses=1_000, n=1_000_000)
    found = plan_run(Requirement(MS, 1e-2), MS, assumed).expected
    assert miss_ratio_bounds(0.4, 400, 0.95)[1] <= 1e-2
    assert found is not None
    assert (found.misses_allowed, found.releases) == (1, FEWEST_JUDGED)


def test_factors_that_always_change_together_are_named_once() -> None:
    def made(name: str, repeat: int, **factors: object) -> Cell:
        config = {"measurement": "wakeup", "samples": 1000, "period_ns": MS}
        return Cell(f"{name}-r{repeat}", "posix", None, {"repeat": repeat}, config, None, factors=factors)

    cells = [
        made(f"{variant}-{load}", repeat, variant=variant, scheduling=policy, load=load, lock_memory=locked)
        for variant, policy, locked in (("plain", "other", False), ("rt", "fifo:80", True))
        for load in ("idle", "cpu80")
        for repeat in (1, 2)
    ]
    found = {one.factor: one.together for one in plan_factors(cells)}
    assert found == {"variant": ("scheduling", "lock_memory"), "load": ()}


def two_levels(
    releases: int, requirement: Requirement | None, repeats: int = 3, more: tuple[str, ...] = ()
) -> list[Cell]:
    config = {"measurement": "wakeup", "samples": releases, "period_ns": MS}
    return [
        Cell(f"{load}-r{n}", "posix", None, {"repeat": n}, config, requirement, factors={"load": load})
        for load in ("idle", "cpu80", *more)
        for n in range(1, repeats + 1)
    ]


def test_few_misses_allowed_a_run_take_more_repeats_than_a_quantile() -> None:
    """Two misses a run differ by their count alone: sqrt(2 / 2.5), besides a quarter."""
    (few,) = plan_factors(two_levels(2_000, Requirement(MS, 1e-3), 8))
    by_name = {one.quantity: one for one in few.quantities}
    assert list(by_name) == ["p50", "p99", "p99.9", "miss_ratio"]
    assert by_name["miss_ratio"].apart == pytest.approx(math.sqrt(2 * (SPREAD_OF_RUNS**2 + 1 / 2.5)))
    order = 2 * 0.999 / (2_000 * 0.001) / math.log(1000) ** 2
    assert by_name["p99.9"].apart == pytest.approx(math.sqrt(2 * SPREAD_OF_RUNS**2 + order))
    assert [one.quantity for one in few.too_few] == ["miss_ratio"] and not few.enough
    assert few.needed == by_name["miss_ratio"].needed
    needed = by_name["miss_ratio"].needed
    assert needed is not None and needed > 8
    (many,) = plan_factors(two_levels(2_000_000, Requirement(MS, 1e-3), 8))
    assert many.enough
    (clustered,) = plan_factors(two_levels(2_000_000, Requirement(MS, 1e-3), 8), design_effect=2_000.0)
    assert [one.quantity for one in clustered.too_few] == ["miss_ratio"]


def test_what_runs_were_seen_to_differ_by_is_taken_and_no_less_than_their_counts() -> None:
    cells = two_levels(2_000, Requirement(MS, 1e-3))
    (found,) = plan_factors(cells, seen=lambda _: Seen({"p50": 0.8, "p99": 0.0}, 0.4))
    apart = {one.quantity: one.apart for one in found.quantities}
    assert found.seen and apart["p50"] == 0.8
    assert 0 < apart["p99"] < 0.1, "by the order of so many values"
    assert apart["miss_ratio"] == pytest.approx(math.sqrt(2 * SPREAD_OF_RUNS**2 + 2 / 800.5))
    assert "p50" in {one.quantity for one in found.too_few}
    assert "p99" not in {one.quantity for one in found.too_few}


def test_the_cell_with_the_fewest_repeats_says_what_they_show() -> None:
    cells = [*two_levels(2_000, None, 2), *two_levels(2_000, None, 5)[2:5]]
    (found,) = plan_factors(cells)
    assert [len([one for one in cells if one.factors["load"] == load]) for load in ("idle", "cpu80")] == [
        5,
        2,
    ]
    assert found.repeats == 2


def test_a_miss_ratio_is_compared_only_where_every_cell_states_one() -> None:
    stated, any_miss = Requirement(MS, 1e-3), Requirement(MS, None)
    some = [replace(one, requirement=any_miss) for one in two_levels(2_000, None)[:3]]
    (found,) = plan_factors([*some, *two_levels(2_000, stated)[3:]])
    assert [one.quantity for one in found.quantities] == ["p50", "p99", "p99.9"]


def test_a_single_run_that_is_to_tell_why_is_not_counted_among_the_repeats() -> None:
    cells = two_levels(2_000, Requirement(MS, 1e-3))
    traced = replace(cells[0], id="why", axes={}, conditions={"explain": True})
    (found,) = plan_factors([*cells, traced])
    assert (found.repeats, found.matched) == (3, 1)
    assert plan_factors([traced, replace(traced, id="why2", factors={"load": "cpu80"})])[0].repeats == 1


def test_short_cells_plan_no_quantile_that_is_their_maximum() -> None:
    (found,) = plan_factors(two_levels(900, None))
    assert [one.quantity for one in found.quantities] == ["p50", "p99"]


@pytest.mark.parametrize("more", [(), ("io",), ("io", "vm")])
def test_further_levels_are_further_comparisons_that_hold_together(more: tuple[str, ...]) -> None:
    (found,) = plan_factors(two_levels(2_000, Requirement(MS, 1e-3), more=more))
    each, _ = confidences(0.95, 4 * (1 + len(more)), 0)
    for one in found.quantities:
        assert one.needed == repeats_to_show(one.apart, 1, each)


@pytest.mark.parametrize(("runs", "releases"), [(1, 9_000), (6, 9_000), (3, 180_000)])
def test_the_most_dependence_that_a_length_stands_is_that_of_the_verdict(runs: int, releases: int) -> None:
    """At it the joint bound of runs without a miss is still low enough, a hundredth above no more."""
    found = plan_cell("a", [cell(releases // runs, Requirement(MS, 1e-3))] * runs, Assumed())
    assert found.most_effect is not None
    a_run = releases // runs

    def upper(effect: float) -> float:
        return joint([RunMisses(a_run, 0, effect)] * runs, 0.95).upper

    assert upper(found.most_effect) <= 1e-3 < upper(found.most_effect + 0.01)


@pytest.mark.parametrize(("ratio", "confidence"), [(0.96, 0.95), (0.5, 0.5)])
def test_a_ratio_that_one_release_shows_stands_any_dependence(ratio: float, confidence: float) -> None:
    """However alike releases are, they are one at least, whose bound is the confidence itself."""
    assert joint([RunMisses(1, 0, 1.0)], confidence).upper <= ratio
    found = plan_cell("a", [cell(4_000, Requirement(MS, ratio, confidence))], Assumed())
    assert (found.outcome, found.most_effect) == ("can pass", 4_000)


def test_a_length_that_cannot_pass_stands_no_dependence() -> None:
    assert plan_cell("a", [cell(2_994, Requirement(MS, 1e-3))], Assumed()).most_effect is None
    assert plan_cell("a", [cell(2_994, Requirement(MS, None))], Assumed()).most_effect is None
