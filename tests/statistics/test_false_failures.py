"""How often does a system that meets its requirement fail, by the horizon's rule and by the whole one?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from processes import CLUSTERED, INDEPENDENT, Load, Process
from rates import Rates, Sized
from simulation import Simulation

from rtmeter.judge.verdict import Misses, row_of
from rtmeter.model import HORIZON, Requirement
from rtmeter.statistics.bounds import beyond_the_horizon
from rtmeter.statistics.evidence import examine
from rtmeter.statistics.judged import JudgedRun
from rtmeter.statistics.support import support_of

MS = 1_000_000
N = 20_000
DEADLINE_NS = 5 * MS
RUNS = {"reduced": 20, "full": 2000}
EXCESS = 1.1
"""By how much less than allowed a system misses that meets its requirement."""

_CALM = np.arange(2_000, dtype=np.int64) % 97
SUPPORT = support_of(
    run := JudgedRun("latency", _CALM, None, None, MS, True), run.examine(MS), Requirement(MS, 0.01)
)


@dataclass(frozen=True)
class Stalls:
    """So many stalls of 30 releases a run, on average."""

    a_run: float
    length = 30

    @property
    def name(self) -> str:
        often = f"{self.a_run:g} stalls a run" if self.a_run >= 1 else f"a stall in {1 / self.a_run:g} runs"
        return f"rare stalls, {often}"

    @property
    def ratio(self) -> float:
        return self.a_run * self.length / N

    def draw(self, generator: np.random.Generator) -> np.ndarray:
        values = Process("exponential").draw(generator, N + self.length)
        for start in generator.integers(0, N, generator.poisson(self.a_run * (N + self.length) / N)):
            values[start : start + self.length] = 2 * DEADLINE_NS
        return values[self.length :]


@dataclass(frozen=True)
class Tail:
    """The misses of a stationary process, so many clusters a run."""

    process: Process
    clusters: float

    @property
    def name(self) -> str:
        return f"{self.process.name}, {self.clusters:g} clusters a run"

    @property
    def ratio(self) -> float:
        return self.clusters / self.process.extremal_index / N

    def draw(self, generator: np.random.Generator) -> np.ndarray:
        late = self.process.draw(generator, N)
        return np.where(late > round(self.process.level_ns(self.ratio)), late + 2 * DEADLINE_NS, late // 100)


def failed(
    generator: np.random.Generator, system: Stalls | Load | Tail, less: float = EXCESS
) -> tuple[bool, bool]:
    """Whether a run fails by the horizon alone, and by the whole rule."""
    values, allowed = system.draw(generator), less * system.ratio
    seen = examine(values, MS, DEADLINE_NS)
    missed = len(seen.misses)
    support = replace(SUPPORT, design_effect=seen.design_effect, findings=seen.findings)
    row = row_of(Misses("latency", N, missed, 0, 0), Requirement(DEADLINE_NS, allowed), support)
    return beyond_the_horizon(missed, N, allowed, HORIZON), row.outcome == "fail"


SYSTEMS = (
    *(Tail(process, clusters) for process in (INDEPENDENT[0], CLUSTERED[0]) for clusters in (0.5, 3.5, 30)),
    *(Stalls(a_run) for a_run in (0.04, 0.2, 0.5, 2)),
    *(Load(spell, 4 * spell) for spell in (500, 2_000)),
)


BY_ALL = "systems that miss a tenth less than allowed fail"
BY_HORIZON = f"{BY_ALL} by the horizon"


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_what_meets_its_requirement_seldom_fails(
    system: Stalls | Load | Tail, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    by_horizon, by_all = zip(*simulate(failed, sized("runs", **RUNS), system), strict=True)
    rates.at_most(0.05, by_horizon, BY_HORIZON, system.name, weak=True)
    rates.at_most(0.05, by_all, BY_ALL, system.name, weak=True)


def test_what_meets_its_requirement_seldom_fails_in_all_cases_together(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    runs = sized("runs", **RUNS)
    found = [one for system in SYSTEMS for one in simulate(failed, runs, system)]
    by_horizon, by_all = zip(*found, strict=True)
    rates.at_most(0.05, by_horizon, BY_HORIZON, "all cases")
    rates.at_most(0.05, by_all, BY_ALL, "all cases")


def test_what_meets_its_requirement_seldom_fails_by_few_misses_that_a_slow_load_brings(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    runs = sized("runs", reduced=30, full=500)
    failing = {
        load.name: [by_all for _, by_all in simulate(failed, runs, load)]
        for load in (Load(spell, 4_000 - spell, 6) for spell in (400, 800))
    }
    rates.at_most_of_each(0.05, failing, f"{BY_ALL} under a load of five spells a run")


WORST = 12
"""Runs in one of which there is a stall: the fewest misses that are more than ten runs may have."""


def test_at_its_worst_the_horizon_fails_no_more_than_markov_allows(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    """What comes once in ten runs, and then is all that is allowed of them, fails the run it comes in."""
    system = Stalls(1 / WORST)
    runs = sized("runs", reduced=24, full=RUNS["full"])
    by_horizon, _ = zip(*simulate(failed, runs, system), strict=True)
    rates.at_most(1 / HORIZON, by_horizon, "the horizon's worst case fails", system.name)
    rarer = Stalls(1 / 24)
    runs = sized("runs", reduced=60, full=RUNS["full"])
    half, _ = zip(*simulate(failed, runs, rarer, 2.0), strict=True)
    rates.at_most(0.05, half, "systems that miss half of what is allowed fail by the horizon", rarer.name)


def test_misses_at_the_horizon_itself_do_not_fail() -> None:
    assert not beyond_the_horizon(10, 1_000, 0.001, 10)
    assert beyond_the_horizon(11, 1_000, 0.001, 10)
    assert not beyond_the_horizon(11, 1_000, 0.001, 11)
    assert beyond_the_horizon(2_097, 5_000, 0.001, HORIZON) and beyond_the_horizon(88, 5_000, 0.001, HORIZON)
