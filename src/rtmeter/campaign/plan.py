"""How long a run has to be, before anything is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rtmeter.model import Cell, Requirement
from rtmeter.statistics.bounds import (
    NS_PER_HOUR,
    Plan,
    design_effect_of,
    expected_releases_needed,
    hours,
    miss_ratio_bounds,
    plan,
)
from rtmeter.statistics.evidence import FEWEST_JUDGED, Evidence
from rtmeter.statistics.extremes import FEWEST_RELEASES, MOST_FACTOR
from rtmeter.statistics.joint import design_effect_allowed, misses_allowed, releases_needed
from rtmeter.values import without_repeat

_HOURS = (1 / 60, 1.0, 24.0)
"""Lengths whose bound is told where no miss ratio asks for one."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """The dependence that a plan assumes: n counts as n / ``design_effect``. ``like``: what it was seen
    in, with its period, the misses and releases there and why bounds would be refused, which no length
    mends; None if it was stated."""

    design_effect: float = 1.0
    extremal_index: float | None = None
    like: str | None = None
    misses: int = 0
    n: int = 0
    refusals: tuple[str, ...] = ()
    period_ns: int | None = None

    @classmethod
    def stated(cls, extremal_index: float) -> Assumed:
        """That of clusters of geometric size."""
        return cls(design_effect_of(extremal_index), extremal_index)

    @classmethod
    def seen(cls, like: str, runs: Sequence[Evidence], period_ns: int) -> Assumed:
        """The most dependent of the runs."""
        worst = max(runs, key=lambda run: run.design_effect)
        return cls(
            worst.design_effect,
            worst.dependence.extremal_index,
            like,
            sum(len(run.misses) for run in runs),
            sum(run.n for run in runs),
            tuple(dict.fromkeys(finding.message for run in runs for finding in run.refusals)),
            period_ns,
        )


@dataclass(frozen=True, slots=True)
class Length:
    """What a run of that length says if nothing misses: the upper bound of the miss ratio."""

    releases: int
    hours: float
    upper: float


@dataclass(frozen=True, slots=True)
class Planned:
    """The run that a requirement needs.

    ``plans``: the lengths that pass with 0, 1, … misses; ``lengths``: what some say, where no miss ratio
    is asked for; ``expected``: the length that passes if releases miss as often as in the run that was
    assumed (None: none does, or none is assumed).
    """

    requirement: Requirement
    period_ns: int
    assumed: Assumed
    plans: tuple[Plan, ...]
    lengths: tuple[Length, ...]
    expected: Plan | None

    @property
    def never(self) -> bool:
        """Whether releases that miss as often as those seen, or of which no bound is stated, pass at no
        length."""
        allowed = self.requirement.miss_ratio
        missing = bool(self.assumed.misses) and (allowed is None or self.expected is None)
        return missing or bool(self.assumed.refusals)


@dataclass(frozen=True, slots=True)
class CellPlan:
    """Whether a planned cell can ever pass, its ``runs`` together: with at most ``most_misses`` (None: not
    even without one); ``releases`` and ``hours`` of all runs; ``needed``: the fewest that can, without a
    miss; ``most_effect``: the design effect up to which it passes without one (None: it cannot, or no ratio
    is asked for)."""

    id: str
    runs: int
    requirement: Requirement | None
    releases: int
    hours: float
    outcome: Literal["can pass", "never", "no requirement"]
    most_misses: int | None
    needed: Plan | None
    assumed: Assumed
    most_effect: float | None = None


def plan_run(requirement: Requirement, period_ns: int, assumed: Assumed) -> Planned:
    """The lengths that a requirement needs."""
    effect, allowed = assumed.design_effect, requirement.miss_ratio
    if assumed.refusals:
        return Planned(requirement, period_ns, assumed, (), (), None)
    if allowed is None:
        lengths = (round(span * NS_PER_HOUR / period_ns) for span in _HOURS)
        stated = tuple(_length(n, period_ns, requirement, effect) for n in lengths if n)
        return Planned(requirement, period_ns, assumed, (), stated, None)
    hard = requirement.criticality == "hard"
    plans = [
        _at_least(row, requirement, period_ns)
        for row in plan(allowed, requirement.confidence, period_ns, effect, 0 if hard else 5)
    ]
    expected = None
    if assumed.misses and not hard:
        n = expected_releases_needed(
            assumed.misses, assumed.n, allowed, requirement.confidence, effect, at_least=FEWEST_JUDGED
        )
        if n is not None:
            expected = Plan(round(n * assumed.misses / assumed.n), n, hours(n, period_ns))
    return Planned(requirement, period_ns, assumed, tuple(plans), (), expected)


def plan_cells(cells: Iterable[Cell], assume: Callable[[Cell], Assumed]) -> list[CellPlan]:
    """A plan for each cell: repeats are judged together."""
    repeats: dict[str, list[Cell]] = {}
    for cell in cells:
        repeats.setdefault(without_repeat(cell.id, cell.axes), []).append(cell)
    return [plan_cell(name, runs, assume(runs[0])) for name, runs in repeats.items()]


def plan_cell(name: str, runs: Sequence[Cell], assumed: Assumed) -> CellPlan:
    """Whether the planned runs of a cell, one at least, can pass its requirement."""
    cell, count = runs[0], len(runs)
    releases, period_ns = count * int(cell.config["samples"]), int(cell.config["period_ns"])
    span = hours(releases, period_ns)
    required = cell.requirement
    if required is None:
        return CellPlan(name, count, None, releases, span, "no requirement", None, None, assumed)
    effect, allowed = assumed.design_effect, required.miss_ratio
    most: int | None = 0
    if allowed is not None:
        most = misses_allowed(releases, count, allowed, required.confidence, effect)
        if most is not None and required.criticality == "hard":
            most = 0
    n = 1 if allowed is None else releases_needed(count, allowed, required.confidence, effect)
    needed = _at_least(Plan(0, n, hours(n, period_ns)), required, period_ns, count)
    if releases < needed.releases or assumed.refusals:
        most = None
    outcome: Literal["can pass", "never"] = "never" if most is None else "can pass"
    effect_most = None
    if most is not None and allowed is not None:
        effect_most = design_effect_allowed(releases, count, allowed, required.confidence)
    return CellPlan(name, count, required, releases, span, outcome, most, needed, assumed, effect_most)


def assumptions(requirement: Requirement, assumed: Assumed) -> list[str]:
    """What the lengths hold for, in sentences."""
    n = "the bound is exact (Clopper and Pearson): the fewest releases whose upper bound is small enough"
    said = [n]
    if assumed.design_effect == 1:
        longer = " and ".join(
            f"{design_effect_of(1 / size):g} times as long in clusters of {size}" for size in (2, 10)
        )
        hint = f"; it takes {longer} (--extremal-index, --like PATH)"
        said.append(f"releases miss independently{f', as in {assumed.like}' if assumed.like else hint}")
    else:
        index = "" if assumed.extremal_index is None else f" (extremal index {assumed.extremal_index:.3g})"
        origin = f" as in {assumed.like}" if assumed.like else ""
        said.append(f"releases miss in clusters{origin}: n counts as n / {assumed.design_effect:.1f}{index}")
    said.append(
        "the run is stationary and without drift: of one that is not no bound is stated at any length"
    )
    said.append("the conditions are those of later use")
    if requirement.criticality == "hard":
        said.append(
            f"a hard deadline besides needs {FEWEST_RELEASES:,} releases at least, none of them late, and a "
            f"return level below it, which is stated for at most {MOST_FACTOR:g} times the run"
        )
    return said


def _at_least(row: Plan, requirement: Requirement, period_ns: int, runs: int = 1) -> Plan:
    """The plan, each run long enough to be looked at, and for the extremes if the deadline is hard."""
    least = runs * (FEWEST_RELEASES if requirement.criticality == "hard" else FEWEST_JUDGED)
    return row if row.releases >= least else Plan(row.misses_allowed, least, hours(least, period_ns))


def _length(n: int, period_ns: int, requirement: Requirement, effect: float) -> Length:
    upper = miss_ratio_bounds(0, n, requirement.confidence, effect)[1]
    return Length(n, hours(n, period_ns), upper)
