"""Verdicts: exact bounds, the rule, and the samples that are still needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest
from test_joint_support import run

from rtmeter.judge.verdict import SPREAD, Misses, judge, judge_misses, misses
from rtmeter.model import ABSENT, LOST, SERVED, SKIPPED, GateFinding, Requirement, Verdict
from rtmeter.statistics.judged import JudgedRun
from rtmeter.statistics.views import LATER

MS = 1_000_000


def verdict(missed: int, n: int, miss_ratio: float | None, confidence: float = 0.95) -> Verdict:
    return judge_misses(Misses("latency", n, missed, 0, 0), Requirement(MS, miss_ratio, confidence))


def verdict_by_bounds(missed: int, n: int, miss_ratio: float, confidence: float) -> Verdict:
    """With a horizon beyond which nothing fails."""
    required = Requirement(MS, miss_ratio, confidence, horizon=999_999)
    return judge_misses(Misses("latency", n, missed, 0, 0), required)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), confidence=st.sampled_from((0.5, 0.9, 0.95, 0.99, 0.999)))
def test_bounds_agree_with_scipy(data: st.DataObject, confidence: float) -> None:
    n = data.draw(st.integers(1, 10_000_000))
    missed = data.draw(st.integers(0, min(n, 1000)) | st.just(n))
    got = verdict(missed, n, 1e-4, confidence)
    below = binomtest(missed, n, alternative="less").proportion_ci(confidence, "exact")
    above = binomtest(missed, n, alternative="greater").proportion_ci(confidence, "exact")
    assert got.upper == pytest.approx(below.high, rel=1e-6)  # SciPy inverts to some 1e-8
    assert got.lower == pytest.approx(above.low, rel=1e-6)


@settings(max_examples=200, deadline=None)
@given(
    missed=st.integers(0, 50),
    in_time=st.integers(1, 10**7),
    miss_ratio=st.floats(1e-7, 0.5),
    confidence=st.sampled_from((0.9, 0.95, 0.999)),
)
def test_outcome_follows_the_tails_of_the_binomial(
    missed: int, in_time: int, miss_ratio: float, confidence: float
) -> None:
    n = missed + in_time
    got = verdict_by_bounds(missed, n, miss_ratio, confidence)
    so_few = binom.cdf(missed, n, miss_ratio)  # pass: so few misses are improbable at the allowed ratio
    so_many = binom.sf(missed - 1, n, miss_ratio)
    alpha = 1 - confidence
    if so_few < alpha * (1 - 1e-5):
        assert got.outcome == "pass"
    elif so_many < alpha * (1 - 1e-5):
        assert got.outcome == "fail"
    elif so_few > alpha * (1 + 1e-5) and so_many > alpha * (1 + 1e-5):
        assert got.outcome == "inconclusive"
    if got.outcome == "inconclusive":
        assert got.more_samples is not None
        assert verdict_by_bounds(missed, n + got.more_samples, miss_ratio, confidence).outcome == "pass"
        assert (
            verdict_by_bounds(missed, n + got.more_samples - 1, miss_ratio, confidence).outcome
            == "inconclusive"
        )
    else:
        assert got.more_samples is None


def test_rule_of_three() -> None:
    assert verdict(0, 2_995_731, 1e-6).outcome == "pass"
    almost = verdict(0, 2_995_730, 1e-6)
    assert (almost.outcome, almost.more_samples) == ("inconclusive", 1)
    assert verdict(0, 1000, 1e-6).more_samples == 2_994_731
    assert verdict(0, 2_995_731, 1e-6).upper == pytest.approx(-np.log(0.05) / 2_995_731, rel=1e-6)


def test_a_miss_costs_more_samples() -> None:
    # one miss, 95 %: the upper bound is about 4.744 / n
    got = verdict(1, 1_000_000, 1e-6)
    assert got.outcome == "inconclusive"
    assert got.more_samples is not None
    assert got.more_samples + 1_000_000 == pytest.approx(4.7438645 / 1e-6, rel=1e-6)


def test_without_a_miss_ratio_any_miss_fails() -> None:
    assert verdict(1, 10**6, None).outcome == "fail"
    got = verdict(0, 10**6, None)
    assert got.outcome == "pass"
    assert "with 95 % confidence the miss ratio is at most 0.0003 %" in got.reason


@pytest.mark.parametrize("missed", [0, 2])
def test_more_samples_than_anyone_has(missed: int) -> None:
    # With misses the lower bound must not fail it first: allow little more than the lower bound.
    allowed = 1e-16 if missed == 0 else verdict(2, 10**16, None).lower * 1.001
    got = verdict(missed, 1000 if missed == 0 else 10**16, allowed)
    assert got.outcome == "inconclusive"
    assert got.more_samples is None


def test_reason_in_words() -> None:
    got = judge_misses(Misses("response", 1_000_000, 3, 0, 1), Requirement(1_500_000, 1e-9, 0.999))
    assert got.outcome == "fail"
    assert got.reason == (
        "4 of 1,000,000 releases missed the deadline of 1,500 us on response (3 late, 1 lost): "
        "with 99.9 % confidence the miss ratio is at least 4.29 × 10⁻⁷, and 10⁻⁹ is allowed"
    )


def test_nothing_measured_is_inconclusive() -> None:
    assert (verdict(0, 0, None).outcome, verdict(0, 0, None).more_samples) == ("inconclusive", 1000)
    assert (verdict(0, 0, 1e-6).outcome, verdict(0, 0, 1e-6).more_samples) == ("inconclusive", 2_995_731)


def test_every_release_missed() -> None:
    got = verdict(10, 10, 0.5)
    assert (got.outcome, got.upper) == ("fail", 1.0)


WAKEUP = {"measurement": "wakeup", "mode": None, "period_ns": 10, "warm_up": 0, "deadline_ns": 7}


def rows() -> list[dict[str, np.ndarray]]:
    columns = {
        "k": [0, 1, 2, 3],
        "release_ns": [0, 10, 20, 30],
        "wake_ns": [5, 16, ABSENT, 37],
        "free_ns": [ABSENT, ABSENT, 21, ABSENT],
        "status": [SERVED, SERVED, SKIPPED, SERVED],
    }
    return [{name: np.array(column) for name, column in columns.items()}]


def test_consecutive_misses_are_one_cluster() -> None:
    got = judge(WAKEUP, rows, Requirement(2))  # all four miss: 5, 6, skipped, 7
    assert got.support is not None
    assert (got.misses, got.support.clusters, got.support.longest_run) == (4, 1, 4)


def test_a_skipped_release_is_a_miss_and_the_deadline_itself_is_in_time() -> None:
    got = judge(WAKEUP, rows, Requirement(7))  # latencies 5, 6, 1 (skipped), 7
    assert (got.n, got.misses, got.late, got.skipped, got.lost) == (4, 1, 0, 1, 0)


def test_the_requirement_may_have_a_deadline_of_its_own() -> None:
    got = judge(WAKEUP, rows, Requirement(5))
    assert (got.misses, got.late, got.skipped) == (3, 2, 1)


def test_a_skipped_ping_counts_by_what_became_of_it() -> None:
    meta = {"measurement": "roundtrip", "mode": None, "period_ns": 10, "warm_up": 0, "in_flight": "one"}
    columns = {
        "k": [0, 1, 2, 3, 4, 5],
        "release_ns": [0, 10, 20, 30, 40, 50],
        "sent_ns": [0, ABSENT, 25, ABSENT, 45, ABSENT],
        "received_ns": [24, ABSENT, 28, ABSENT, ABSENT, ABSENT],
        "free_ns": [ABSENT, 24, ABSENT, 41, ABSENT, 90],
        "status": [SERVED, SKIPPED, SERVED, SKIPPED, LOST, SKIPPED],
    }
    chunk = {name: np.array(column) for name, column in columns.items()}
    got = judge(meta, lambda: [chunk], Requirement(10))  # 24, 18 (by k = 2), 8, lost with k = 4, lost, lost
    assert (got.quantity, got.n, got.misses) == ("response", 6, 5)
    assert (got.late, got.skipped, got.lost) == (2, 0, 3)
    assert "(2 late, 3 lost, 2 of them skipped with no later ping to serve them)" in got.reason


@pytest.mark.parametrize(
    ("lost", "unserved", "said"),
    [
        (8, 8, "8 lost, all of them skipped with no later ping to serve them"),
        (8, 1, "8 lost, 1 of them skipped with no later ping to serve it"),
        (1, 1, "1 lost, skipped with no later ping to serve it"),
    ],
)
def test_of_what_was_lost_it_is_said_which_was_skipped(lost: int, unserved: int, said: str) -> None:
    words = Misses("response", 2_000, 0, 0, lost, unserved).words(2_000_000)
    assert words == f"{lost} of 2,000 releases missed the deadline of 2,000 us on response ({said})"


def test_invalid_data_are_not_judged() -> None:
    got = judge(WAKEUP, rows, Requirement(7, 1e-6), invalid="12 rows were lost to a full ring")
    assert (got.outcome, got.reason, got.n, got.upper) == (
        "error",
        "12 rows were lost to a full ring",
        0,
        None,
    )


def test_bounds_that_equal_the_allowed_ratio() -> None:
    bounds = verdict(3, 1000, None)
    assert verdict(3, 1000, bounds.upper).outcome == "pass"
    assert verdict(3, 1000, bounds.lower).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("missed", "clusters", "longest_run", "said"),
    [
        (1, 1, 1, ""),
        (2, 2, 1, "; the misses come in 2 clusters"),
        (2, 1, 2, "; the misses come in one cluster, at most 2 of them consecutive"),
        (2, None, None, ""),
    ],
)
def test_how_misses_come_is_told_of_several(
    missed: int, clusters: int | None, longest_run: int | None, said: str
) -> None:
    reason = run(missed, clusters=clusters, longest_run=longest_run).reason
    assert reason.endswith(f", and 5 % is allowed{said}")


@pytest.mark.parametrize(
    ("about", "said"),
    [
        (
            {"effective_n": 2_500.0},
            "; the latest releases hang together: 5,000 releases say as much as 2,500 s",
        ),
        ({"effective_n": 1.5}, "say as much as 2 single ones"),
        ({"effective_n": 1.49}, "say as much as a single one"),
        ({"effective_n": 2_500.0, "design_effect": 1.0}, ""),
        ({"effective_n": 2_500.0, "upper": None}, ""),
        ({"effective_n": 2_500.0, "findings": (GateFinding(SPREAD, "", 2.0, "deflate", "they differ"),)}, ""),
    ],
)
def test_what_releases_that_hang_together_are_worth_is_told_where_a_bound_is(
    about: dict[str, Any], said: str
) -> None:
    reason = run(0, **{"design_effect": 2.0} | about).reason
    assert said in reason and ("hang together" in reason) == bool(said)


@pytest.mark.parametrize(
    ("skips_miss", "late", "skipped", "lost", "unserved"), [(True, 1, 4, 2, 0), (False, 2, 0, 3, 1)]
)
def test_misses_of_a_run_in_pieces_are_counted_as_in_one(
    skips_miss: bool, late: int, skipped: int, lost: int, unserved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.array([5, LATER, 9, LATER, 12, 3, LATER, 20])
    passed = np.array([0, 1, 1, 0, 0, 1, 0, 1], dtype=bool)
    of = JudgedRun("latency", values, passed, None, MS, skips_miss)
    monkeypatch.setattr("rtmeter.judge.verdict.pieces", lambda of: np.split(of, [3, 6]))
    assert misses(of, 10) == Misses("latency", 8, late, skipped, lost, unserved)


def test_as_many_misses_as_are_allowed_are_not_more() -> None:
    """0.043 of 5,000 are 215, and in floats less."""
    assert "more missed than is allowed" not in verdict(215, 5_000, 0.043).reason
    assert "more missed than is allowed" in verdict(216, 5_000, 0.043).reason


def test_a_bound_above_what_is_allowed_does_not_read_as_that() -> None:
    said = verdict(0, 3000, 9.98e-4).reason
    assert "at most 0.09981 %, and 0.0998 % is allowed: too few releases to tell" in said
    assert "at most 0.0998 %, and 0.1 % is allowed" in verdict(0, 3000, 1e-3).reason
