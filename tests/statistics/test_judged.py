"""What is judged of a run knows whose grid it is on, and what of it is late."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rtmeter.judge.verdict import judge_run
from rtmeter.model import LOST, SERVED, Requirement
from rtmeter.statistics.bounds import miss_ratio_bounds
from rtmeter.statistics.estimates import estimates
from rtmeter.statistics.evidence import Evidence
from rtmeter.statistics.judged import judged_run
from rtmeter.statistics.support import return_level, support_of

MS = 1_000_000
N = 20_000
PERIODIC = {"measurement": "timer", "mode": "periodic", "period_ns": MS}
ONE_SHOT = {"measurement": "timer", "mode": "one_shot", "period_ns": None, "timeout_ns": MS}
WAKEUP = {"measurement": "wakeup", "mode": None, "period_ns": MS}
IMPORTED = {"measurement": "imported", "mode": None, "period_ns": MS}


def rows(latency: np.ndarray, meta: dict[str, Any], status: np.ndarray) -> list[dict[str, np.ndarray]]:
    k = np.arange(len(latency))
    columns = {"k": k, "status": status, "release_ns": k * MS, "latency_ns": latency}
    columns |= dict.fromkeys(("wake_ns", "callback_ns"), k * MS + latency)
    if meta is ONE_SHOT:
        columns |= {"armed_before_ns": k * MS, "callback_ns": k * MS + latency + MS}
    return [columns]


def seen(latency: np.ndarray, meta: dict[str, Any], deadline_ns: int = 10**9) -> Evidence:
    status = np.full(len(latency), SERVED)
    return judged_run(meta, lambda: rows(latency, meta, status)).examine(deadline_ns)


def growing(generator: np.random.Generator) -> np.ndarray:
    return np.rint(generator.normal(100_000, 10_000, N) + 5 * np.arange(N)).astype(np.int64)


@pytest.mark.parametrize(
    ("meta", "more"),
    [
        (PERIODIC, {"t0_from": "reported", "ticks": "reported"}),
        (PERIODIC, {"t0_from": "inferred", "ticks": "every_tick"}),
        (IMPORTED, {}),
    ],
)
def test_a_timer_that_tells_its_releases_may_drift(
    meta: dict[str, Any], more: dict[str, Any], generator: np.random.Generator
) -> None:
    found = seen(growing(generator), meta | more)
    assert (found.drift.growth, found.drift.rises) == ("drifting", False)
    assert {finding.type for finding in found.refusals} >= {"drift"}


@pytest.mark.parametrize(
    ("meta", "more"),
    [
        (WAKEUP, {"t0_from": "core"}),
        (PERIODIC, {"t0_from": "core", "ticks": "every_tick"}),
        (PERIODIC, {"t0_from": "inferred", "ticks": "jumps"}),
        (ONE_SHOT, {}),
    ],
    ids=["wakeup", "sleep_then_spin_some", "jumps", "one_shot"],
)
def test_nothing_drifts_on_another_grid_and_growth_is_still_refused(
    meta: dict[str, Any], more: dict[str, Any], generator: np.random.Generator
) -> None:
    meta = meta | more if more else meta
    found = seen(growing(generator), meta)
    assert (found.drift.growth, found.drift.causes, found.drift.rises) == ("bounded", (), True)
    types = {finding.type for finding in found.refusals}
    assert "stationarity" in types and "drift" not in types


def test_thirty_releases_of_our_own_grid_do_not_drift() -> None:
    """As they came of a machine that just woke: each release a little later than the one before."""
    found = seen(np.arange(30) * 1_000 + 60_000, WAKEUP | {"t0_from": "core"})
    assert (found.drift.growth, found.drift.causes, found.drift.rises) == ("bounded", (), False)
    assert {finding.type for finding in found.refusals} == {"too_few_samples"}


def test_late_by_is_said_of_releases_that_came(generator: np.random.Generator) -> None:
    """A lost release is a miss, and later than anything: by how much is not known."""
    latency = np.full(1_000, 50_000)
    latency[[100, 200, 300]] = 1_200_000, 1_400_000, 1_900_000
    status = np.full(1_000, SERVED)
    status[[400, 500]] = LOST
    meta = WAKEUP | {"t0_from": "core"}
    run = judged_run(meta, lambda: rows(latency, meta, status))
    evidence = run.examine(MS)
    assert len(evidence.misses) == 5
    support = support_of(run, evidence, Requirement(deadline_ns=MS))
    assert (support.median_lateness_ns, support.largest_lateness_ns) == (400_000, 900_000)


@pytest.mark.parametrize("deadline_ns", [90_000, 10**9, 5 * 10**9])
@pytest.mark.parametrize("kind", ["hard", "firm"])
def test_a_verdict_is_the_same_at_either_width(
    deadline_ns: int, kind: Any, generator: np.random.Generator
) -> None:
    """Values are held in 32 bits where all fit: nothing else may come of it."""
    bursts = np.repeat(generator.random(N // 10) < 0.005, 10) * 10**8
    for latency in (growing(generator), np.rint(generator.lognormal(11, 0.3, N)).astype(np.int64) + bursts):
        run = judged_run(WAKEUP, lambda ns=latency: rows(ns, WAKEUP, np.full(N, SERVED)))  # type: ignore[misc]
        assert run.values.dtype == np.int32
        wide = replace(run, values=run.values.astype(np.int64))
        requirement = Requirement(deadline_ns, None if kind == "hard" else 1e-3, 0.95, kind)
        assert repr(judge_run(run, requirement, False)) == repr(judge_run(wide, requirement, False))
        shares = ("50", "99", "99.9")
        found = [estimates(one.values, deadline_ns, 0.95, shares) for one in (run, wide)]
        assert repr(found[0]) == repr(found[1])


def test_what_would_pass_allows_for_the_clusters_that_were_seen(generator: np.random.Generator) -> None:
    """So many further releases, none of them late, bring the bound of such a run down to what is allowed."""
    latency = generator.integers(40_000, 60_000, N)
    latency[np.add.outer(np.arange(500, N, 2_500), np.arange(12)).ravel()] = 2 * MS
    meta = WAKEUP | {"t0_from": "core"}
    run = judged_run(meta, lambda: rows(latency, meta, np.full(N, SERVED)))
    evidence = run.examine(MS)
    asked = Requirement(deadline_ns=MS, miss_ratio=1e-3)
    support = support_of(run, evidence, asked)
    assert support.design_effect > 2 and support.more_hours is not None
    whole = N + round(support.more_hours * 3600 * 1e9 / MS)
    misses, confidence, effect = len(evidence.misses), asked.confidence, support.design_effect
    assert (support.lower, support.upper) == miss_ratio_bounds(misses, N, confidence, effect)
    enough, one_less = (miss_ratio_bounds(misses, n, confidence, effect)[1] for n in (whole, whole - 1))
    assert enough <= 1e-3 < one_less


def test_a_hard_deadline_asks_no_level_of_within_the_run() -> None:
    latency = np.random.default_rng(6).integers(1_000, 90_000, N)  # 20 s
    run = judged_run(WAKEUP, lambda: rows(latency, WAKEUP, np.full(N, SERVED)))
    required = Requirement(MS, criticality="hard")
    level = return_level(run, run.examine(MS), required, 10 / 3600)
    (finding,) = level.findings
    assert (finding.type, finding.statistic, finding.consequence) == ("within_the_run", "factor", "refuse")
    assert finding.value == pytest.approx(0.5) and level.level_ns is None
    assert "once in 10 s is shorter than the run of 20 s" in finding.message
    beyond = return_level(run, run.examine(MS), required, 20 / 3600)
    assert "within_the_run" not in {one.type for one in beyond.findings}


def test_what_supports_a_verdict_is_what_was_seen(generator: np.random.Generator) -> None:
    """Of a run that grows by 5 ns a release of 1 ms, with misses: bounds per hour, the trend and its span."""
    run = judged_run(WAKEUP, lambda: rows(growing(generator), WAKEUP, np.full(N, SERVED)))
    evidence = run.examine(190_000)
    trend = evidence.drift.trend
    assert trend is not None
    support = support_of(run, evidence, Requirement(190_000))
    assert support.slope_ns_per_s == trend.slope_ns_per_s == pytest.approx(5_000, rel=0.05)
    assert support.slope_interval_ns_per_s == (trend.lower_ns_per_s, trend.upper_ns_per_s)
    assert support.accumulated_ns == trend.accumulated_ns == pytest.approx(100_000, rel=0.05)
    latency = generator.integers(0, 90_000, N)
    even = judged_run(WAKEUP, lambda: rows(latency, WAKEUP, np.full(N, SERVED)))
    support = support_of(even, even.examine(MS), Requirement(MS))
    assert support.lower == support.lower_per_hour == 0 and support.upper is not None
    assert support.upper_per_hour == pytest.approx(support.upper * 3.6e6)
