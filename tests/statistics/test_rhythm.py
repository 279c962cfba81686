import numpy as np
import pytest
from rates import Rates, Sized
from simulation import Simulation

from rtmeter.statistics.rhythm import WINDOW, cause_of, rhythm

MS = 1_000_000
TEN_MINUTES = 600_000


def events(
    generator: np.random.Generator, period_s: float, n: int, *, spread_s: float = 0.0, stray: int = 0
) -> np.ndarray:
    """Releases (at 1 kHz) late by events each ``period_s``, some spread about it, and stray ones."""
    at_s = np.arange(generator.random() * period_s, n / 1000, period_s)
    at_s += generator.normal(0, spread_s, len(at_s))
    k = np.concatenate((np.ceil(at_s * 1000).astype(np.int64), generator.integers(0, n, stray)))
    return np.unique(k[(k >= 0) & (k < n)])


@pytest.mark.parametrize(
    ("period_s", "cause"),
    [
        (60.0, "a job each minute"),
        (1.0, "real-time throttling (sched_rt_runtime_us) or a task each second"),
        (0.1, "a host's or control group's CPU quota (100 ms)"),
        (0.01, None),  # a tick of some kernel: not known to be that of this one
        (0.004, None),
        (1 / 300, None),
        (7.0, None),
        (0.37, None),
    ],
)
def test_a_planted_rhythm_is_found_and_named(
    period_s: float, cause: str | None, generator: np.random.Generator
) -> None:
    found = rhythm(events(generator, period_s, TEN_MINUTES), TEN_MINUTES, MS)
    assert found is not None
    assert found.period_s == pytest.approx(period_s, rel=0.005)
    assert found.cause == cause
    assert found.strength > 0.8


def test_a_rhythm_is_found_among_stray_events(generator: np.random.Generator) -> None:
    late = events(generator, 1.0, TEN_MINUTES, spread_s=0.05, stray=300)
    found = rhythm(late, TEN_MINUTES, MS)
    assert found is not None and found.period_s == pytest.approx(1.0, rel=0.001)
    assert 0.5 < found.strength < 0.8


def test_twelve_seconds_show_a_throttling_each_second(generator: np.random.Generator) -> None:
    found = rhythm(events(generator, 1.0, 12_000), 12_000, MS)
    assert found is not None and found.cause is not None and "throttling" in found.cause


@pytest.mark.parametrize("period_s", [1.0, 0.1, 0.01])
def test_long_runs_show_long_and_short_rhythms(period_s: float, generator: np.random.Generator) -> None:
    n = 3_000_000
    found = rhythm(events(generator, period_s, n), n, MS)
    assert found is not None and found.period_s == pytest.approx(period_s, rel=0.001)


def test_a_rhythm_of_a_part_of_a_long_run_is_found_there(generator: np.random.Generator) -> None:
    """Over the whole run it is lost among what comes at random."""
    stray = np.unique(generator.integers(0, 4 * WINDOW, 4_000))
    there = 2 * WINDOW + events(generator, 1.0, WINDOW // 2)
    found = rhythm(np.unique(np.concatenate((stray, there))), 4 * WINDOW, MS)
    assert found is not None and found.period_s == pytest.approx(1.0, rel=0.001)


def keeps_a_rhythm(generator: np.random.Generator) -> bool:
    late = np.unique(generator.integers(0, 60_000, generator.integers(8, 400)))
    return rhythm(late, 60_000, MS) is not None


def test_independent_events_keep_no_rhythm(simulate: Simulation, rates: Rates, sized: Sized) -> None:
    seen = simulate(keeps_a_rhythm, sized("runs", reduced=200, full=2000))
    rates.at_most(0.05, seen, "a rhythm is seen in independent events", "8 to 400 of 60,000 releases")


def test_a_harmonic_is_not_taken_for_the_period(generator: np.random.Generator) -> None:
    found = rhythm(events(generator, 3.0, TEN_MINUTES), TEN_MINUTES, MS)
    assert found is not None and found.period_s == pytest.approx(3.0, rel=0.001)
    assert found.cause is None


@pytest.mark.parametrize("count", [0, 1, 7])
def test_few_events_keep_no_rhythm(count: int) -> None:
    assert rhythm(np.arange(count, dtype=np.int64) * 1000, TEN_MINUTES, MS) is None


def test_events_in_every_release_have_no_rhythm_of_their_own() -> None:
    assert rhythm(np.arange(10_000, dtype=np.int64), 10_000, MS) is None


def test_few_events_show_a_known_period_wherever_it_counts_as_that_one(
    generator: np.random.Generator,
) -> None:
    """Fourteen of the 121 times in two minutes, each nearly a second after the one before."""
    late = 991 * np.sort(generator.choice(121, 14, replace=False))
    found = rhythm(late, 120_000, 1_000_000)
    assert found is not None and found.cause == cause_of(1.0)
    assert found.period_s == pytest.approx(0.991, rel=1e-3)


def test_a_known_period_is_known_within_a_hundredth() -> None:
    assert cause_of(1.005) == cause_of(1.0)
    assert cause_of(1.02) is None
