from collections.abc import Callable

import numpy as np
import pytest
from processes import CLUSTERED, INDEPENDENT, Process
from rates import Rates, Sized
from simulation import Simulation
from stationary import FAR, MINUTE, MS, RUNS, stationary

from rtmeter.statistics.blocks import A_BLOCK, blocks_of
from rtmeter.statistics.evidence import Evidence, examine
from rtmeter.statistics.gates import quantisation
from rtmeter.statistics.quantiles import miss_ratio, quantiles
from rtmeter.statistics.views import LATER

Ints = np.ndarray

EXPONENTIAL = Process("exponential")
SOME_CLUSTERED = Process("exponential", 0.4)
RUN = np.arange(MINUTE) / MINUTE
"""How far a run is at each release, 0 to 1."""


def types(found: Evidence) -> set[str]:
    return {finding.type for finding in found.findings}


def whole(values: np.ndarray) -> Ints:
    return np.rint(values).astype(np.int64)


REFUSED = "gates refuse a stationary run"


@pytest.mark.parametrize("process", INDEPENDENT + CLUSTERED, ids=lambda process: process.name)
def test_well_behaved_runs_are_not_refused(
    process: Process, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = simulate(stationary, sized("runs", **RUNS), process)
    rates.at_most(0.05, (run.refused for run in found), REFUSED, process.name, weak=True)


def test_well_behaved_runs_are_not_refused_in_all_cases_together(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    runs = sized("runs", **RUNS)
    found = [run for process in INDEPENDENT + CLUSTERED for run in simulate(stationary, runs, process)]
    rates.at_most(0.05, (run.refused for run in found), REFUSED, "all cases")


def mixed(
    generator: np.random.Generator, share: np.ndarray, value_ns: int, later: float = 0.0, later_ns: int = 0
) -> Ints:
    """Exponential ones, of which a ``share`` at each release has one value, and others a later one."""
    values, drawn = EXPONENTIAL.draw(generator, MINUTE), generator.random(MINUTE)
    values[drawn < later] = later_ns
    values[(drawn >= later) & (drawn < later + share)] = value_ns
    return values


@pytest.mark.parametrize(
    ("low", "high", "value_ns", "later"),
    [
        (0.02, 0.18, LATER, 0.0),  # more are lost than the gates look at
        (0.01, 0.03, LATER, 0.0),  # more than the rarer ones that they look at
        (0.02, 0.18, 40 * MS, 0.0),  # a coarse clock
        (0.04, 0.12, 2 * MS, 0.1),  # later ones, which do not change, are as many as they look at
    ],
)
def test_misses_that_become_more_are_not_stationary_though_the_latest_are_all_alike(
    low: float, high: float, value_ns: int, later: float, generator: np.random.Generator
) -> None:
    for share in (np.where(RUN < 0.5, low, high), np.full(MINUTE, (low + high) / 2)):
        values = mixed(generator, share, value_ns, later, 50 * MS)
        found = examine(values, MS, MS, own_grid=True)
        changes = share[0] != share[-1]
        assert {"stationarity", "change_point"} <= types(found) or not changes
        assert bool(found.refusals) == changes
        assert (found.design_effect > 2) == changes
        assert (miss_ratio(values, MS, 0.95).design_effect > 2) == changes


def test_misses_right_below_as_many_later_ones_as_the_gates_look_at_are_seen_to_become_more(
    generator: np.random.Generator,
) -> None:
    """They are what the exceedances begin above."""
    for low, high in ((0.02, 0.18), (0.1, 0.1)):
        values = mixed(generator, np.where(RUN < 0.5, low, high), 2 * MS)
        blocks = blocks_of(values)
        assert blocks is not None
        later = generator.permutation(MINUTE)[: A_BLOCK * blocks.count]
        values[later] = 50 * MS + np.arange(len(later))
        assert blocks_of(values).threshold_ns == 2 * MS
        assert bool(examine(values, MS, MS, own_grid=True).refusals) == (low < high)


def test_a_quantile_whose_exceedances_become_more_is_known_less_though_the_latest_do_not(
    generator: np.random.Generator,
) -> None:
    """p99 of 600,000 releases: a hundredth is more than the gates look at."""
    effects = []
    for low, high in ((0.0005, 0.0095), (0.005, 0.005)):
        run = np.concatenate([mixed(generator, np.full(MINUTE, p), 2 * MS) for p in [low] * 5 + [high] * 5])
        run += generator.integers(0, 10_000, len(run))
        run[generator.random(len(run)) < 0.007] += 50 * MS
        effects.append(quantiles(run, ["99"], 0.95)["99"].design_effect)
    assert effects[0] > 5 > 2 > effects[1]


def test_a_delay_that_grows_is_refused_though_all_of_the_latest_are_lost(
    generator: np.random.Generator,
) -> None:
    steady = mixed(generator, np.full(MINUTE, 0.1), LATER)
    assert not examine(steady, MS, MS, own_grid=True).refusals
    grown = EXPONENTIAL.draw(generator, MINUTE) + whole(50e3 * RUN)
    grown[generator.random(MINUTE) < 0.1] = LATER
    found = examine(grown, MS, MS, own_grid=True)
    assert [one.consequence for one in found.findings if one.statistic == "slope in ns/s"] == ["refuse"]


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_skips_that_crowd_into_a_part_are_not_stationary_however_soon_the_thread_was_free(
    share: float, generator: np.random.Generator
) -> None:
    """As misses that the latest releases say nothing of; as many spread over the run are."""
    values = EXPONENTIAL.draw(generator, MINUTE)
    for part in (0.3, 1.0):
        skipped = (part > RUN) & (generator.random(MINUTE) < 0.3 * share / part)
        values[skipped] = 1_000
        found = examine(values, MS, MS, skipped=skipped, own_grid=True)
        assert bool(found.refusals) == ("stationarity" in types(found)) == (part < 1)
        assert (found.design_effect > 2) == (part < 1)


DRIFTING: dict[str, Callable[[np.random.Generator], Ints]] = {
    "level rises by the tail's scale": lambda g: EXPONENTIAL.draw(g, MINUTE) + whole(50e3 * RUN),
    "the same, clustered": lambda g: SOME_CLUSTERED.draw(g, MINUTE) + whole(50e3 * RUN),
    "level falls by the tail's scale": lambda g: EXPONENTIAL.draw(g, MINUTE) - whole(50e3 * RUN),
    "1 us/s under 50 us of normal jitter": lambda g: whole(g.normal(1e5, 5e4, MINUTE) + np.arange(MINUTE)),
    "spread grows by half": lambda g: whole(EXPONENTIAL.draw(g, MINUTE) * (1 + 0.5 * RUN)),
    "spread grows by half, clustered": lambda g: whole(SOME_CLUSTERED.draw(g, MINUTE) * (1 + 0.5 * RUN)),
    "heavy tail, level rises": lambda g: Process("pareto", 0.5).draw(g, MINUTE) + whole(60e3 * RUN),
    "a step to half as much again": lambda g: whole(EXPONENTIAL.draw(g, MINUTE) * (1 + 0.5 * (RUN > 0.7))),
    "two modes, 1 us/s": lambda g: Process("two_modes").draw(g, MINUTE) + np.arange(MINUTE),
    "lognormal, clustered, 1 us/s": lambda g: Process("lognormal", 0.4).draw(g, MINUTE) + np.arange(MINUTE),
    "a random walk": lambda g: EXPONENTIAL.draw(g, MINUTE) + whole(np.cumsum(g.normal(0, 500, MINUTE))),
}


def is_refused(generator: np.random.Generator, name: str) -> bool:
    return bool(examine(DRIFTING[name](generator), MS, FAR).refusals)


@pytest.mark.parametrize("name", DRIFTING)
def test_what_drifts_is_refused(name: str, simulate: Simulation, rates: Rates, sized: Sized) -> None:
    refused = simulate(is_refused, sized("runs", reduced=20, full=2000), name)
    rates.at_least(0.95, refused, "drifting runs are refused", name)


def test_independent_data_have_no_findings(generator: np.random.Generator) -> None:
    found = examine(EXPONENTIAL.draw(generator, MINUTE), MS, FAR)
    assert found.findings == ()
    assert found.effective_n == found.n == MINUTE


def test_clusters_deflate_n(generator: np.random.Generator) -> None:
    found = examine(SOME_CLUSTERED.draw(generator, MINUTE), MS, FAR)
    assert types(found) == {"dependence"}
    assert found.design_effect == pytest.approx((2 - 0.4) / 0.4, rel=0.3)
    assert found.effective_n == pytest.approx(MINUTE / found.design_effect)


def test_modulated_lateness_deflates_n_beyond_its_clusters(generator: np.random.Generator) -> None:
    busy = np.repeat(generator.random(MINUTE // 100) < 0.1, 100)
    values = EXPONENTIAL.draw(generator, MINUTE) * np.where(busy, 3, 1)
    found = examine(values, MS, FAR)
    assert any(finding.statistic == "dispersion of exceedances a block" for finding in found.findings)
    assert found.design_effect > 5


def test_a_late_start_asks_for_a_longer_warm_up(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, MINUTE)
    values[:600] *= 5
    (finding,) = (f for f in examine(values, MS, FAR).findings if f.type == "warm_up")
    assert 300 <= finding.value <= 1200
    assert "longer warm-up" in finding.message


def test_a_very_late_start_is_not_told_longer_than_it_was(generator: np.random.Generator) -> None:
    values = whole(generator.exponential(20_000, 200_000))
    values[:3000] += 100_000
    (finding,) = (f for f in examine(values, MS, FAR).findings if f.type == "warm_up")
    assert finding.value == 3125  # the window nearest to it


def test_jumps_without_skips_are_not_called_skipped_releases(generator: np.random.Generator) -> None:
    values = whole(generator.exponential(20_000, 20_000)) + np.arange(20_000) // 5000 * MS
    (finding,) = (f for f in examine(values, MS, FAR).findings if f.type == "skipping")
    assert finding.value == 3
    assert "jumped by 3 whole periods" in finding.message


def test_the_moment_of_a_change_is_told(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, MINUTE)
    values[45_000:] *= 2
    (finding,) = (f for f in examine(values, MS, FAR).findings if f.type == "change_point")
    assert finding.consequence == "refuse"
    assert finding.value == 1
    assert any(at in finding.message for at in ("44.7 s", "45 s", "45.3 s"))


def test_a_stall_is_told_with_its_moment_and_its_size(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, MINUTE)
    values[20_000:25_000] = np.arange(5000, 0, -1) * MS  # a stall of 5 s that is caught up
    (finding,) = (f for f in examine(values, MS, FAR).findings if f.type == "change_point")
    assert any(at in finding.message for at in ("at 19.5 s", "at 19.8 s", "at 20.1 s"))
    assert "more than a hundred times as likely" in finding.message


def test_throttling_each_second_is_named(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, MINUTE)
    for start in range(300, MINUTE, 1000):
        values[start : start + 50] += np.arange(50, 0, -1) * MS
    (finding,) = (f for f in examine(values, MS, 2 * MS).findings if f.type == "rhythm")
    assert "every 1 s" in finding.message and "throttling" in finding.message


@pytest.mark.parametrize("late", [60, 20])
def test_the_rhythm_of_the_latest_few_is_named_though_none_misses(
    late: int, generator: np.random.Generator
) -> None:
    """Among the 400 releases that stand for misses most have none."""
    values = EXPONENTIAL.draw(generator, MINUTE)
    values[250 :: MINUTE // late] += 2 * MS
    found = examine(values, MS, FAR)
    assert found.rhythm is not None and found.rhythm.period_s == pytest.approx(60 / late, rel=0.01)
    assert "rhythm" in types(found)


def has_a_rhythm(generator: np.random.Generator) -> bool:
    return examine(EXPONENTIAL.draw(generator, MINUTE), MS, FAR).rhythm is not None


def test_the_latest_few_of_independent_releases_keep_none(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    seen = simulate(has_a_rhythm, sized("runs", reduced=60, full=2000))
    rates.at_most(0.05, seen, "a rhythm is seen in independent events", "the latest of 60,000 releases")


def test_coarse_clocks_are_named(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, MINUTE) // 10_000 * 10_000
    assert "quantisation" in types(examine(values, MS, FAR))


def test_a_tail_of_one_step_has_no_scale_to_state() -> None:
    (finding,) = quantisation(1_000, 0.0)
    assert "coarse against the tail, most of which is one step: a deadline" in finding.message
    (finding,) = quantisation(1_000, 500.0)
    assert "(scale 500 ns)" in finding.message


def test_a_microsecond_clock_is_fine_enough(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, MINUTE) // 1_000 * 1_000
    assert "quantisation" not in types(examine(values, MS, FAR))


# What goes wrong.


def test_constant_data() -> None:
    found = examine(np.full(MINUTE, 5_000), MS, 10_000)
    assert types(found) == {"constant"} and not found.refusals
    assert found.design_effect == 1 and len(found.misses) == 0


def test_constant_data_that_always_miss() -> None:
    found = examine(np.full(MINUTE, 5_000), MS, 1_000)
    assert len(found.misses) == MINUTE


def test_all_lost() -> None:
    found = examine(np.full(MINUTE, LATER), MS, FAR)
    assert len(found.misses) == MINUTE
    assert "lost" in types(found)


def test_half_lost(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, MINUTE)
    values[generator.random(MINUTE) < 0.5] = LATER
    assert len(examine(values, MS, FAR).misses) == np.count_nonzero(values == LATER)


@pytest.mark.parametrize("n", [1, 2, 3, 50, 999])
def test_few_samples(n: int, generator: np.random.Generator) -> None:
    found = examine(EXPONENTIAL.draw(generator, n), MS, FAR)
    assert [finding.type for finding in found.refusals] == ["too_few_samples"]
    assert found.effective_n == n


def test_one_enormous_outlier_moves_nothing(generator: np.random.Generator) -> None:
    values = EXPONENTIAL.draw(generator, MINUTE)
    before = examine(values, MS, FAR)
    values[31_234] = 10**15
    after = examine(values, MS, FAR)
    assert len(after.misses) == 1
    assert after.design_effect == pytest.approx(before.design_effect, rel=0.1)
    assert not after.refusals


def test_negative_values(generator: np.random.Generator) -> None:
    assert examine(EXPONENTIAL.draw(generator, MINUTE) - 10**9, MS, FAR).findings == ()


def test_skipped_releases_are_misses_whatever_their_value(generator: np.random.Generator) -> None:
    skipped = np.zeros(MINUTE, dtype=np.bool_)
    skipped[[10, 11, 12, 40_000]] = True
    found = examine(EXPONENTIAL.draw(generator, MINUTE), MS, FAR, skipped=skipped)
    assert found.misses.tolist() == [10, 11, 12, 40_000]
    assert "skipping" in types(found) and "drift" not in types(found)


def test_a_virtual_machine_is_labelled(generator: np.random.Generator) -> None:
    found = examine(EXPONENTIAL.draw(generator, MINUTE), MS, FAR, virtual_machine=True)
    assert types(found) == {"virtual_machine"}
