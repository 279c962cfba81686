"""All that is found out about a run before it is judged: dependence, what n is worth, and the gates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rtmeter.model import GateFinding, Requirement
from rtmeter.statistics import gates
from rtmeter.statistics.blocks import FEWEST_BLOCKS, SMALLEST_BLOCK, Blocks, blocks_of
from rtmeter.statistics.bounds import further_releases
from rtmeter.statistics.clusters import Dependence, decluster
from rtmeter.statistics.drift import Bools, Drift, drift
from rtmeter.statistics.modes import quantum, second_mode
from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.rhythm import FEWEST_EVENTS, Rhythm, rhythm
from rtmeter.statistics.tail import above, largest
from rtmeter.statistics.views import LATER
from rtmeter.statistics.worth import worth

TAIL_SHARE = 10
MOST_TAIL = 70_000
"""The tail in which modes are looked for: a tenth of the run, at most so many."""


TOO_FEW = "too_few_samples"

FEWEST_JUDGED = FEWEST_BLOCKS * SMALLEST_BLOCK
"""Releases below which there are no blocks, and so no bound."""

LATEST = (100, 25)
"""So many of the latest releases may keep a period that all the exceedances among them hide."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the gates saw of a run of ``n`` releases with ``misses`` (their indices).

    ``dependence`` of the exceedances near the deadline; ``design_effect``: n counts as
    n / design_effect; ``blocks``: None if the run is too short for them; ``findings`` in the order of
    their weight.
    """

    n: int
    misses: Ints
    dependence: Dependence
    design_effect: float
    blocks: Blocks | None
    drift: Drift
    rhythm: Rhythm | None
    findings: tuple[GateFinding, ...]

    @property
    def effective_n(self) -> float:
        """Independent releases that would say as much."""
        return self.n / self.design_effect

    @property
    def refusals(self) -> tuple[GateFinding, ...]:
        """Why there is no bound; empty if there is one."""
        return tuple(finding for finding in self.findings if finding.consequence == "refuse")


def examine(
    values: Ints,
    period_ns: int,
    deadline_ns: int,
    *,
    skipped: Bools | None = None,
    skips_miss: bool = True,
    delay_ns: Ints | None = None,
    own_grid: bool = False,
    virtual_machine: bool = False,
) -> Evidence:
    """Looks at a run of at least one release.

    ``values``: the judged quantity per release in ns, in order, shape (n,), LATER where it was lost.
    ``skipped``: the releases passed over, which if ``skips_miss`` are misses whatever their value.
    ``delay_ns``: start - release of each where the values are completion - release. ``own_grid`` as in
    ``drift``.
    """
    n = len(values)
    misses = above(values, deadline_ns)
    if skipped is not None and skips_miss:
        misses = np.union1d(misses, np.flatnonzero(skipped))
    blocks = blocks_of(values)
    seen = worth(values, misses, deadline_ns, blocks)
    found, effect = seen.dependence, seen.design_effect
    grown = drift(
        values if delay_ns is None else delay_ns,
        period_ns,
        skipped,
        None if delay_ns is None else values,
        own_grid,
    )
    beat = _beat(values, seen.near, found, period_ns)
    findings = gates.growth(grown, values, blocks)
    if blocks is None:
        findings += too_short(n)
    else:
        all_of_it = blocks.with_misses(values, misses)
        findings += gates.stationarity(all_of_it)
        findings += gates.changes(all_of_it, period_ns)
        findings += seen.findings
        findings += gates.warm_up(values, blocks, period_ns)
    findings += _clustered(found)
    findings += _shape(values, blocks, effect)
    findings += gates.rhythms(beat)
    if virtual_machine:
        findings.append(VIRTUAL_MACHINE)
    return Evidence(n, misses, found, effect, blocks, grown, beat, tuple(findings))


def _beat(values: Ints, near: Ints, found: Dependence, period_ns: int) -> Rhythm | None:
    """The period of the misses, or if they are few of the latest releases: of all that are near the
    deadline, or of the latest LATEST of them."""
    if found.clusters.count >= FEWEST_EVENTS:
        return rhythm(found.clusters.first, len(values), period_ns)
    for count in (len(near), *(count for count in LATEST if count < len(near))):
        latest = near[values[near] >= np.partition(values[near], -count)[-count]] if count else near
        seen = rhythm(decluster(latest, found.clusters.run_length).first, len(values), period_ns)
        if seen is not None:
            return seen
    return None


VIRTUAL_MACHINE = GateFinding(
    "virtual_machine",
    "virtual machine",
    1.0,
    "info",
    "measured in a virtual machine: fit for comparisons, unfit for absolute claims",
)


def too_short(n: int) -> list[GateFinding]:
    """The finding of a run of n releases that is too short to be looked at, if it is."""
    if n >= FEWEST_JUDGED:
        return []
    message = f"{n:,} releases are too few to look at dependence and stationarity: it takes {FEWEST_JUDGED:,}"
    return [GateFinding(TOO_FEW, "releases", float(n), "refuse", message)]


def too_few_alone(findings: tuple[GateFinding, ...]) -> bool:
    """Whether nothing refuses a bound but that the run is too short to look at it."""
    return {finding.type for finding in findings if finding.consequence == "refuse"} == {TOO_FEW}


def fewest_further(misses: int, n: int, requirement: Requirement, design_effect: float) -> int | None:
    """The fewest further releases, all in time, with which a run of n is long enough to be looked at and
    meets the requirement; None if more than can be told."""
    least = max(0, FEWEST_JUDGED - n)
    if requirement.miss_ratio is None:
        return least
    more = further_releases(misses, n, requirement.miss_ratio, requirement.confidence, design_effect)
    return None if more is None else max(more, least)


def _clustered(found: Dependence) -> list[GateFinding]:
    if found.design_effect == 1:
        return []
    index = found.extremal_index
    return [
        GateFinding(
            "dependence",
            "extremal index" if index is not None else "design effect",
            index if index is not None else found.design_effect,
            "deflate",
            f"the latest releases come in clusters: n counts as n / {found.design_effect:.1f}",
        )
    ]


def lost_finding(lost: int, n: int) -> GateFinding:
    """That releases were lost, or skipped at the end of a run, where nothing came after them."""
    share = "all" if lost == n else f"{lost:,} of {n:,}"
    message = f"{share} releases were lost: how late they would have been is not known"
    return GateFinding("lost", "releases lost", float(lost), "info", message)


def _shape(values: Ints, blocks: Blocks | None, design_effect: float) -> list[GateFinding]:
    """What needs no order: constant data, resolution, modes."""
    n = len(values)
    top = largest(values, min(n, max(1000, min(n // TAIL_SHARE, MOST_TAIL))))
    measured = top[top != LATER]
    lost = int(np.count_nonzero(values == LATER)) if top[-1] == LATER else 0
    findings = [lost_finding(lost, n)] if lost else []
    if not len(measured):
        return findings
    if measured[0] == measured[-1] and values.min() == values.max():
        message = "all values are equal: nothing is known of how they vary"
        return [*findings, GateFinding("constant", "value in ns", float(measured[0]), "info", message)]
    step = quantum(measured)
    scale = blocks.scale_ns if blocks else 0.0
    if blocks:
        findings += gates.quantisation(step, scale)
    return findings + gates.modes(second_mode(measured[-n // TAIL_SHARE :], step, design_effect))
