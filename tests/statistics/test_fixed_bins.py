"""Bins that add up: as measurements.md defines them, and exact over any groups."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rtmeter.statistics.fixed_bins import bin_numbers, binned, edges, merged
from rtmeter.statistics.ranks import quantile_index, share_of
from rtmeter.statistics.views import LATER

ANY = st.integers(-(2**62), 2**62) | st.integers(-200, 200)
ENDS = [s * (2**k + d) for k in range(62) for d in (-1, 0, 1) for s in (1, -1)]


def as_defined(v: int) -> int:
    """The bin of a value, in exact integers, word for word as it is defined."""
    if v < 0:
        return -1 - as_defined(-v - 1)
    if v < 64:
        return v
    e = (v.bit_length() - 1) - 6
    return 64 * (e + 1) + (v >> e) - 64


def test_bins_are_as_defined_at_every_power_of_two() -> None:
    assert bin_numbers(np.array(ENDS)).tolist() == [as_defined(v) for v in ENDS]


@given(ANY)
def test_a_value_lies_in_its_bin_which_is_narrow(v: int) -> None:
    (number,) = bin_numbers(np.array([v])).tolist()
    low, high = edges(number)
    assert number == as_defined(v) and low <= v < high
    assert edges(number + 1)[0] == high
    assert high - low == 1 or 64 * (high - low) <= (low if low >= 0 else 1 - high)


@given(st.lists(st.lists(ANY | st.just(LATER), max_size=40), max_size=6))
def test_the_sum_of_parts_is_the_distribution_of_one_heap(parts: list[list[int]]) -> None:
    each = [binned(np.array(part, dtype=np.int64)) for part in parts]
    heap = [value for part in parts for value in part]
    one = binned(np.array(heap, dtype=np.int64))
    together = merged(each)
    assert together.bins.tobytes() == one.bins.tobytes()
    assert together.counts.tobytes() == one.counts.tobytes()
    assert (together.lost, together.n) == (heap.count(LATER), len(heap))


@given(st.lists(ANY | st.just(LATER), min_size=1, max_size=60), st.sampled_from(["50", "90", "99.9"]))
def test_a_quantile_lies_between_the_edges_that_are_told(values: list[int], percent: str) -> None:
    exact = sorted(values)[quantile_index(len(values), share_of(percent))]
    quantile = binned(np.array(values, dtype=np.int64)).quantile(percent)
    if exact == LATER:
        assert quantile == "lost"
    else:
        assert isinstance(quantile, tuple) and quantile[0] <= exact < quantile[1]


@given(st.lists(ANY | st.just(LATER), max_size=60), ANY)
def test_releases_above_a_limit_lie_between_two_counts(values: list[int], limit: int) -> None:
    least, most = binned(np.array(values, dtype=np.int64)).above(limit)
    exact = sum(value > limit for value in values)
    assert least <= exact <= most
    assert least == most or any(as_defined(v) == as_defined(limit) for v in values if v != LATER)
