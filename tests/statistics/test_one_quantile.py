"""Everything that states a quantile takes the same rank: ceil(n p), where floats would take the next one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc

from rtmeter.statistics import bins
from rtmeter.statistics.corrected import describe_corrected
from rtmeter.statistics.counted import estimates_counted, summarise_counted
from rtmeter.statistics.counted_data import Histogram
from rtmeter.statistics.order import describe
from rtmeter.statistics.quantiles import interval_ends, quantiles
from rtmeter.statistics.ranks import quantile_index, quantile_indices, share_of

DAY = 86_400_000
"""Releases of a day at 1 kHz, whose p99.9 has the rank 86,313,600."""

RANK = 86_313_600
LEAST, LEAST_RANK = 16_913_000, 16_896_087
"""The fewest thousands of releases at which ceil(n (99.9 / 100)) of floats is another rank."""


def histogram(up_to: int) -> Histogram:
    """A day's releases, so many of them in the first bin."""
    return Histogram(np.array([1_000, 2_000]), 1_000, np.array([up_to, DAY - up_to]), below_ns=3_000)


def test_a_share_is_what_the_percentage_says() -> None:
    assert share_of("99.9") == Fraction(999, 1000) and share_of("50") == Fraction(1, 2)


@pytest.mark.parametrize(
    ("percent", "rank"), [("50", 43_200_000), ("99.9", RANK), ("99.99", 86_391_360), ("99.999", 86_399_136)]
)
def test_the_rank_is_exact(percent: str, rank: int) -> None:
    assert quantile_index(DAY, share_of(percent)) == rank - 1
    assert quantile_index(DAY + 1, share_of(percent)) == rank
    several = np.array([DAY, DAY + 1, 1, 0])
    assert quantile_indices(several, share_of(percent)).tolist() == [rank - 1, rank, 0, 0]


@pytest.mark.parametrize(
    ("percent", "n", "rank"),
    [
        ("99.9", 35_184_372_088_999, 35_149_187_716_911),
        ("99.99", 4_398_046_529_999, 4_397_606_725_347),
        ("99.999", 274_880_699_999, 274_877_951_193),
    ],
)
def test_the_rank_is_exact_where_n_times_the_nearest_float_is_whole(percent: str, n: int, rank: int) -> None:
    """The share lies a hair above a whole number of releases, closer than a float of that size can tell:
    counts of merged distributions, kept for years. From multiples of the denominator, and of p50 and p90
    up to 2^48, n * float(share) takes the same rank."""
    share = share_of(percent)
    assert quantile_index(n, share) == rank - 1
    assert (rank - 1) * share.denominator < n * share.numerator <= rank * share.denominator
    assert n * float(share) == rank - 1


@pytest.mark.parametrize(("up_to", "expected"), [(RANK, 1_000), (RANK - 1, 2_000)])
def test_a_histogram_takes_it(up_to: int, expected: int) -> None:
    data = histogram(up_to)
    assert summarise_counted(data)["quantities"]["latency"]["per_release"]["p99_9_ns"] == expected
    assert estimates_counted(data, None, 0.95, ("99.9",)).quantities["p99.9"].value == expected


@pytest.mark.parametrize(("up_to", "expected"), [(RANK, 10), (RANK - 1, 20)])
def test_the_bins_of_plots_and_of_what_is_seen_live_take_it(up_to: int, expected: int) -> None:
    counts = np.zeros(bins.BINS, dtype=np.int64)
    counts[bins.bin_numbers(np.array([10, 20]))] = up_to, DAY - up_to
    assert bins.quantile_range_ns(counts, ("99.9", "99.9")) == (expected, expected)


def test_the_corrected_view_takes_it() -> None:
    """One value of a day stands for all that come before it."""
    assert describe_corrected(np.array([DAY * 1_000]), 1_000, 0)["p99_9_ns"] == RANK * 1_000


def test_summary_and_comparison_take_it() -> None:
    values = np.arange(1, LEAST + 1)
    assert quantiles(values, ("99.9",), 0.95)["99.9"].value == LEAST_RANK
    assert describe(values, None)["p99_9_ns"] == LEAST_RANK


def test_the_ends_of_an_interval_lie_about_it() -> None:
    first, last = interval_ends(DAY, share_of("99.9"), 0.95)
    assert first is not None and last is not None
    assert RANK - 1 - first == pytest.approx(1.96 * (DAY * 0.999 * 0.001) ** 0.5, rel=0.01)
    assert last - (RANK - 1) == pytest.approx(1.96 * (DAY * 0.999 * 0.001) ** 0.5, rel=0.01)


@pytest.mark.parametrize("percent", ["50", "90", "99"])
def test_an_interval_holds_its_quantile_as_often_as_it_says(percent: str) -> None:
    """By the binomial distribution of how many of n lie below it, at each end by itself; one release further
    in, the upper end does not."""
    share, too_near = share_of(percent), 0
    for n in (*range(20, 400), 5_000, 9_999):
        first, last = interval_ends(n, share, 0.95)
        if first is not None:
            assert bdtr(first, n, float(share)) <= 0.025
        if last is not None:
            assert bdtrc(last, n, float(share)) <= 0.025
            too_near += bdtrc(last - 1, n, float(share)) > 0.025
    assert too_near
