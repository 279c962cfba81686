import numpy as np
import pytest
from processes import CLUSTERED, INDEPENDENT, Process
from rates import Rates, Sized
from scipy.signal import lfilter
from scipy.stats import theilslopes
from simulation import Simulation
from stationary import MINUTE, MS, RUNS, stationary

from rtmeter.statistics.blocks import blocks_of
from rtmeter.statistics.drift import FEWEST_DELAYS, PIECE, Drift, drift
from rtmeter.statistics.gates import growth
from rtmeter.statistics.trend import Trend, inflation, trend
from rtmeter.statistics.views import LATER


def jitter(generator: np.random.Generator, n: int = MINUTE) -> np.ndarray:
    return generator.normal(100_000, 50_000, n)


def whole(values: np.ndarray) -> np.ndarray:
    return np.rint(values).astype(np.int64)


def correlated(generator: np.random.Generator, n: int, decay: float) -> np.ndarray:
    """First-order process of 50 us about 100 us that forgets by ``decay`` a release."""
    steps = generator.normal(0, 50_000 * np.sqrt(1 - decay**2), n + 20_000)
    return 100_000 + lfilter([1], [1, -decay], steps)[20_000:]


def growth_of_a_wandering_level(generator: np.random.Generator) -> str:
    """1.5 s at 1 kHz of a level that remembers for 0.4 s, under exponential jitter."""
    level = 0.3 * (correlated(generator, 1500, np.exp(-1 / 400)) - 100_000)
    return drift(whole(50_000 + generator.exponential(20_000, 1500) + level), MS).growth


FALSE_ALARMS = "drift-free data are called drifting"


def growth_at_a_microsecond_a_second(generator: np.random.Generator) -> str:
    return drift(whole(jitter(generator) + np.arange(MINUTE)), MS).growth


def growth_of_correlated(generator: np.random.Generator, decay: float) -> str:
    return drift(whole(correlated(generator, MINUTE, decay)), MS).growth


def test_a_microsecond_a_second_is_found_within_a_minute(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = simulate(growth_at_a_microsecond_a_second, sized("runs", reduced=200, full=2000))
    case = "1 us/s under 50 us of jitter, 60 s at 1 kHz"
    rates.at_least(0.99, (growth == "drifting" for growth in found), "drift is found", case)


@pytest.mark.parametrize("process", INDEPENDENT + CLUSTERED, ids=lambda process: process.name)
def test_no_drift_is_seen_in_stationary_data(
    process: Process, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = simulate(stationary, sized("runs", **RUNS), process)
    rates.at_most(0.05, (run.growth != "bounded" for run in found), FALSE_ALARMS, process.name, weak=True)


DECAYS = (0.99, 0.999, 0.9999)


@pytest.mark.parametrize("decay", DECAYS)
def test_no_drift_is_seen_in_what_remembers_for_seconds(
    decay: float, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = simulate(growth_of_correlated, sized("runs", reduced=50, full=2000), decay)
    wrong = (growth != "bounded" for growth in found)
    rates.at_most(0.05, wrong, FALSE_ALARMS, f"autocorrelation {decay}", weak=True)


def test_no_drift_is_seen_in_all_stationary_cases_together(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    minutes = sized("runs", **RUNS)
    found = [one.growth for p in INDEPENDENT + CLUSTERED for one in simulate(stationary, minutes, p)]
    rates.at_most(0.05, (one != "bounded" for one in found), FALSE_ALARMS, "all processes")
    remembering = sized("runs", reduced=50, full=2000)
    found = [one for decay in DECAYS for one in simulate(growth_of_correlated, remembering, decay)]
    rates.at_most(0.05, (one != "bounded" for one in found), FALSE_ALARMS, "all autocorrelations")


def test_no_drift_is_seen_in_a_short_run_of_a_wandering_level(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = simulate(growth_of_a_wandering_level, sized("runs", reduced=200, full=2000))
    wrong = (growth != "bounded" for growth in found)
    rates.at_most(0.05, wrong, FALSE_ALARMS, "a level that wanders for a quarter of the run")


def test_the_slope_and_what_it_comes_to_are_stated(generator: np.random.Generator) -> None:
    found = drift(whole(jitter(generator) + 5 * np.arange(MINUTE)), MS).trend
    assert found is not None
    assert found.lower_ns_per_s <= 5_000 <= found.upper_ns_per_s
    assert found.accumulated_ns == pytest.approx(300_000, rel=0.02)


def test_the_slope_is_scipys(generator: np.random.Generator) -> None:
    time = np.arange(60.0)
    medians = whole(generator.normal(0, 50, 60) + 3 * time).astype(np.float64)
    ours, theirs = trend(time, medians, 60.0), theilslopes(medians, time, 0.99)
    assert ours.slope_ns_per_s == pytest.approx(theirs.slope)
    if inflation(medians - ours.slope_ns_per_s * time) == 1:
        assert ours.lower_ns_per_s == pytest.approx(theirs.low_slope, rel=0.05)
        assert ours.upper_ns_per_s == pytest.approx(theirs.high_slope, rel=0.05)


def test_a_drift_without_jitter_is_exact() -> None:
    found = drift(7 * np.arange(10_000), MS)
    assert found.growth == "drifting"
    assert found.trend is not None and found.trend.slope_ns_per_s == pytest.approx(7_000)
    assert found.trend.accumulated_ns == pytest.approx(70_000)


def test_constant_data_are_bounded() -> None:
    found = drift(np.full(10_000, 5), MS)
    assert found.growth == "bounded"
    assert found.trend is not None and found.trend.accumulated_ns == 0


def test_three_releases_are_too_few_to_tell() -> None:
    assert drift(np.array([1, 2, 3]), MS) == Drift("bounded", None, 0, 0, ())


@pytest.mark.parametrize("sign", [1, -1])
def test_an_interval_that_ends_at_zero_does_not_exclude_it(sign: int) -> None:
    ends = sorted((0.0, 2.0 * sign))
    assert not Trend(sign, *ends, 60.0 * sign, 1.0).significant
    assert Trend(sign, *sorted((0.5 * sign, 2.0 * sign)), 60.0 * sign, 1.0).significant


def test_growth_far_below_the_jitter_is_no_drift(generator: np.random.Generator) -> None:
    values = whole(jitter(generator, 10_000_000))
    assert drift(values + np.arange(10_000_000) // 5_000, MS).growth == "bounded"


# Skips: the released grid passes by, served delays do not grow.


def stalls(generator: np.random.Generator, rate_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Delays under ``skip``: at each release a stall of some periods begins with its probability."""
    delay = whole(np.abs(jitter(generator, len(rate_of))))
    skipped = np.zeros(len(rate_of), dtype=np.bool_)
    for at in np.flatnonzero(generator.random(len(rate_of)) < rate_of):
        length = int(generator.integers(2, 12))
        delay[at] += length * MS
        skipped[at + 1 : at + length] = True
    return delay, skipped


def growth_of_skips(generator: np.random.Generator, last: float) -> tuple[str, bool]:
    """Of stalls that become more frequent, and whether all skips were counted."""
    delay, skipped = stalls(generator, np.linspace(0.0005, last, MINUTE))
    found = drift(delay, MS, skipped)
    return found.growth, found.skipped == np.count_nonzero(skipped)


@pytest.mark.parametrize("last", [0.001, 0.02, 0.2], ids="ending at {} stalls a release".format)
def test_skips_are_never_called_drift(last: float, simulate: Simulation, rates: Rates, sized: Sized) -> None:
    found = simulate(growth_of_skips, sized("runs", reduced=10, full=2000), last)
    assert all(counted for _, counted in found)
    wrong = (growth != "skipping" for growth, _ in found)
    rates.at_most(0, wrong, "skips are called drift, or not seen", f"ending at {last:g} stalls a release")


@pytest.mark.parametrize("teeth", [0.6, 1.0, 1.7, 5.0, 80.0])
def test_a_timer_whose_phase_wraps_is_skipping(teeth: float, generator: np.random.Generator) -> None:
    for first in np.linspace(0, 0.94, 12):
        phase = first + np.linspace(0, teeth, MINUTE)
        skipped = np.diff(np.floor(phase), prepend=0) != 0
        if not skipped[: MINUTE // 20 * 19].any():
            continue  # it grew nearly all the time
        delay = whole(phase % 1 * MS + generator.exponential(5_000, MINUTE))
        assert drift(delay, MS, skipped).growth == "skipping"


@pytest.mark.parametrize("jumps", [1, 3, 40, 5000])
def test_skips_counted_as_executed_cycles_are_skips(jumps: int, generator: np.random.Generator) -> None:
    """Comparing with executed cycles adds a period for each skip."""
    at = generator.choice(np.arange(5_000, MINUTE - 5_000), jumps, replace=False)
    delay = np.zeros(MINUTE)
    delay[at] = MS
    found = drift(whole(np.cumsum(delay) + generator.exponential(5_000, MINUTE)), MS)
    assert found.growth == "skipping"
    assert found.causes == ("executed_cycles",)
    assert found.periods_jumped == pytest.approx(jumps, rel=0.05)


def test_a_stall_that_was_caught_up_is_no_skip(generator: np.random.Generator) -> None:
    values = whole(50_000 + generator.exponential(20_000, 1500))
    values[700:740] += np.arange(40, 0, -1) * MS
    found = drift(values, MS)
    assert (found.growth, found.periods_jumped, found.causes) == ("bounded", 0, ())


def test_a_drift_stays_one_when_some_releases_were_skipped(generator: np.random.Generator) -> None:
    delay, skipped = stalls(generator, np.full(MINUTE, 0.001))
    found = drift(delay + 5 * np.arange(MINUTE), MS, skipped)
    assert found.growth == "drifting" and found.skipped > 0


def cycles(work: np.ndarray, wait_for: str, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Delay and work of cycles under ``catch_up``: armed for the ``grid`` or ``relative`` to the last."""
    late = np.abs(generator.normal(20_000, 5_000, len(work)))
    start, delays, free = 0.0, [], 0.0
    for k in range(len(work)):
        due = k * MS if wait_for == "grid" else start + MS
        start = max(due + late[k], free) if k else 0.0
        free = start + work[k]
        delays.append(start - k * MS)
    return whole(np.array(delays)), whole(work)


def test_work_longer_than_the_period_is_overload(generator: np.random.Generator) -> None:
    delay, busy = cycles(generator.uniform(0.9, 1.2, 20_000) * MS, "grid", generator)
    found = drift(delay, MS, completion_ns=delay + busy)
    assert found.growth == "overloaded"
    assert found.causes == ("work_longer_than_period",)


def test_work_of_two_periods_is_overload_and_no_skip(generator: np.random.Generator) -> None:
    delay, busy = cycles(np.full(20_000, 2.0 * MS), "grid", generator)
    assert drift(delay, MS, completion_ns=delay + busy).growth == "overloaded"


def test_work_longer_than_the_period_is_overload_also_with_gaps(generator: np.random.Generator) -> None:
    """A sleep that is over already takes time too: a twentieth of the period here."""
    busy = whole(generator.uniform(1.01, 1.2, 20_000) * MS)
    delay = np.cumsum(busy + MS // 20 - MS) - busy
    found = drift(delay, MS, completion_ns=delay + busy)
    assert (found.growth, found.causes) == ("overloaded", ("work_longer_than_period",))


def test_skips_of_work_longer_than_the_period_have_that_cause(generator: np.random.Generator) -> None:
    delay = np.abs(whole(generator.normal(20_000, 5_000, 20_000)))
    skipped = np.arange(20_000) % 2 == 1
    causes = {work: drift(delay, MS, skipped, delay + round(work * MS)).causes for work in (0.7, 1.02)}
    assert causes == {0.7: (), 1.02: ("work_longer_than_period",)}
    found = drift(delay, MS, skipped, delay + 2 * MS)
    (finding,) = growth(found, delay, None)
    assert (found.growth, finding.type) == ("skipping", "skipping")
    assert finding.message == "10,000 releases were skipped (work longer than period)"


def test_an_absolute_wait_is_bounded(generator: np.random.Generator) -> None:
    delay, busy = cycles(generator.uniform(0.5, 1.1, 20_000) * MS, "grid", generator)
    assert drift(delay, MS, completion_ns=delay + busy).growth == "bounded"


def test_relative_rearming_is_named(generator: np.random.Generator) -> None:
    delay, busy = cycles(generator.uniform(0.1, 0.3, 20_000) * MS, "relative", generator)
    found = drift(delay, MS, completion_ns=delay + busy)
    assert found.growth == "drifting"
    assert found.causes == ("relative_rearming",)
    assert found.trend is not None
    assert found.trend.slope_ns_per_s == pytest.approx(20_000 * 1_000, rel=0.02)


def test_a_clock_of_another_rate_is_named(generator: np.random.Generator) -> None:
    found = drift(whole(jitter(generator) + 20e-6 * MS * np.arange(MINUTE)), MS)
    assert found.causes == ("clock_rate",)


@pytest.mark.parametrize(
    ("at_the_end", "causes"),
    [(0, ()), (1, ()), (FEWEST_DELAYS - 1, ()), (FEWEST_DELAYS, ("clock_rate", "relative_rearming"))],
)
def test_why_it_drifts_is_told_by_the_end_of_a_run_if_anything_was_served_there(
    at_the_end: int, causes: tuple[str, ...]
) -> None:
    """Of a component that stopped half way: the rest of a long run was lost."""
    delays = np.full(2 * PIECE, LATER)
    served = np.r_[0 : PIECE - 1, len(delays) - at_the_end : len(delays)]
    delays[served] = 10 * served
    found = drift(delays, MS)
    assert (found.growth, found.causes) == ("drifting", causes)


def test_a_growth_that_no_cause_explains_has_none(generator: np.random.Generator) -> None:
    assert drift(whole(jitter(generator) + 0.01 * MS * np.arange(MINUTE)), MS).causes == ()


@pytest.mark.parametrize("sign", [1, -1])
def test_nothing_drifts_on_a_grid_of_our_own(sign: int, generator: np.random.Generator) -> None:
    """The thread sleeps to the grid: a delay that grows is no timer's, and still not stationary."""
    delay = whole(jitter(generator) + sign * 5 * np.arange(MINUTE))
    found = drift(delay, MS, own_grid=True)
    assert (found.growth, found.causes, found.rises) == ("bounded", (), True)
    assert found.trend == drift(delay, MS).trend and drift(delay, MS).growth == "drifting"
    (finding,) = growth(found, delay, blocks_of(delay))
    assert (finding.type, finding.consequence) == ("stationarity", "refuse")
    assert f"the delay {'rises' if sign > 0 else 'falls'} steadily, though no timer drifts" in finding.message


def test_skips_on_a_grid_of_our_own_hide_no_growth(generator: np.random.Generator) -> None:
    delay, skipped = stalls(generator, np.full(MINUTE, 0.001))
    found = drift(delay + 5 * np.arange(MINUTE), MS, skipped, own_grid=True)
    assert found.growth == "skipping" and found.rises
    skips, grows = growth(found, delay, blocks_of(delay))
    assert (skips.type, grows.type, grows.consequence) == ("skipping", "stationarity", "refuse")
    assert "does not grow" not in skips.message


def growth_of_a_few(generator: np.random.Generator, n: int) -> str:
    """A level that remembers for some releases, as a machine that just woke does."""
    return drift(whole(correlated(generator, n, 0.8) + generator.exponential(20_000, n)), MS).growth


@pytest.mark.parametrize("n", [100, 300, 1000])
def test_no_drift_is_seen_in_a_few_hundred_releases(
    n: int, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = simulate(growth_of_a_few, sized("runs", reduced=200, full=2000), n)
    rates.at_most(0.05, (growth != "bounded" for growth in found), FALSE_ALARMS, f"{n} releases")


@pytest.mark.parametrize("n", [3, 30, 99])
def test_nothing_is_said_of_fewer_than_ten_blocks(n: int, generator: np.random.Generator) -> None:
    """Though each release is later than the one before."""
    found = drift(np.arange(n) * 50_000, MS)
    assert (found.growth, found.trend, found.causes) == ("bounded", None, ())
    assert drift(np.arange(100) * 50_000, MS).growth == "drifting"


@pytest.mark.parametrize("sign", [1, -1])
def test_a_drift_has_a_direction(sign: int, generator: np.random.Generator) -> None:
    found = drift(whole(jitter(generator) + sign * 5 * np.arange(MINUTE)), MS).trend
    assert found is not None and np.sign(found.accumulated_ns) == sign


def test_autocorrelation_widens_the_interval(generator: np.random.Generator) -> None:
    independent = np.mean([inflation(generator.normal(size=100)) for _ in range(200)])
    dependent = np.mean([inflation(correlated(generator, 100, 0.8)) for _ in range(50)])
    assert 1 <= independent < 1.1
    assert dependent > 5


def test_blocks_without_a_served_release_are_left_out(generator: np.random.Generator) -> None:
    skipped = np.zeros(MINUTE, dtype=np.bool_)
    skipped[10_000:25_000] = True
    assert drift(whole(jitter(generator)), MS, skipped).growth == "skipping"


def test_lost_releases_are_no_skips(generator: np.random.Generator) -> None:
    delay = whole(jitter(generator))
    delay[::3] = LATER
    assert drift(delay, MS).growth == "bounded"
    assert drift(np.full(1000, LATER), MS) == Drift("bounded", None, 0, 0, ())


@pytest.mark.parametrize("piece", [100, 999, 10**6])
def test_a_long_run_is_looked_at_piece_by_piece_and_each_cycle_once(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two cycles in five work longer than the period, all of them early: most do not."""
    monkeypatch.setattr("rtmeter.statistics.drift.PIECE", piece)
    busy = np.where(np.arange(5_000) < 2_000, 1.5, 0.2) * MS
    delay = np.arange(5_000) * 50
    assert drift(delay, MS, completion_ns=delay + whole(busy)).growth == "drifting"
    busy = np.where(np.arange(5_000) < 3_000, 1.5, 0.2) * MS
    assert drift(delay, MS, completion_ns=delay + whole(busy)).growth == "overloaded"
