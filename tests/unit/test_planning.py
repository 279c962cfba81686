"""What a plan says of a cell, by its criticality."""

from __future__ import annotations

import pytest

from rtmeter.campaign.plan import Assumed, plan_cell, plan_factors, plan_run
from rtmeter.model import Cell, Requirement
from rtmeter.statistics.bounds import miss_ratio_bounds, releases_needed
from rtmeter.statistics.extremes import FEWEST_RELEASES
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


@pytest.mark.parametrize(("runs", "releases"), [(1, 9_000), (6, 9_000), (3, 180_000)])
def test_the_most_dependence_that_a_length_stands_is_that_of_the_verdict(runs: int, releases: int) -> None:
    """At it the joint bound of runs without a miss is still low enough, a hundredth above no more."""
    found = plan_cell("a", [cell(releases // runs, Requirement(MS, 1e-3))] * runs, Assumed())
    assert found.most_effect is not None
    a_run = releases // runs

    def upper(effect: float) -> float:
        return joint([RunMisses(a_run, 0, effect)] * runs, 0.95).upper

    assert upper(found.most_effect) <= 1e-3 < upper(found.most_effect + 0.01)


def test_a_length_that_cannot_pass_stands_no_dependence() -> None:
    assert plan_cell("a", [cell(2_994, Requirement(MS, 1e-3))], Assumed()).most_effect is None
    assert plan_cell("a", [cell(2_994, Requirement(MS, None))], Assumed()).most_effect is None
