"""The bisection for the largest value that passes, against every limit there can be; ranges in one line."""

from __future__ import annotations

import math

import pytest

from rtmeter.campaign.ranges import ends, option_of, values_of
from rtmeter.campaign.search import Search
from rtmeter.errors import RtmeterError


def searched(search: Search, limit: int) -> tuple[Search, list[int]]:
    tried = []
    while (value := search.next()) is not None:
        tried.append(value)
        search = search.narrowed(value, passed=value <= limit)
    return search, tried


@pytest.mark.parametrize(("low", "high"), [(1, 2), (1, 70), (10, 300), (16, 17)])
def test_every_limit_is_found_exactly_and_no_value_tried_twice(low: int, high: int) -> None:
    for limit in range(low - 1, high + 2):
        found, tried = searched(Search(low, high), limit)
        assert found.passes == (min(limit, high) if limit >= low else None)
        assert found.fails == (max(limit + 1, low) if limit < high else None)
        assert tried[0] == high
        assert len(set(tried)) == len(tried)
        assert all(low <= value <= high for value in tried)
        assert len(tried) <= max(map(len, Search(low, high).left()))


@pytest.mark.parametrize("within", [0.0005, 0.01, 0.05, 0.5])
@pytest.mark.parametrize(("low", "high"), [(0, 100), (10, 1_000), (1, 500)])
def test_no_limit_takes_more_values_than_were_announced(low: int, high: int, within: float) -> None:
    search = Search(low, high, within)
    most = max(len(searched(search, limit)[1]) for limit in range(low - 1, high + 1))
    announced = max(map(len, search.left()))
    assert most == announced or (within < 0.001 and most < announced)


def test_what_is_so_near_that_all_ways_take_too_long_is_announced_as_if_nothing_were_near_enough() -> None:
    assert Search(2_000, 6_000, within=0.0009).left()[1] == Search(2_000, 6_000).left()[1]


@pytest.mark.parametrize("within", [0.0, 0.05])
@pytest.mark.parametrize(("low", "high"), [(1, 100), (10, 2_000), (50, 60), (102, 2_000), (7, 8)])
def test_of_a_rate_no_limit_takes_longer_than_was_announced(low: int, high: int, within: float) -> None:
    def takes(path: list[int]) -> float:
        return sum(1 / value for value in path)

    search = Search(low, high, within)
    most = max(takes(searched(search, limit)[1]) for limit in range(low - 1, high + 1))
    assert takes(search.slowest()) == most


def test_few_values_as_near_as_the_least_are_left_to_it() -> None:
    """Half as much again as the least is near enough: the least is tried at once, and not the middle."""
    assert Search(10, 100, 0.5, None, 15).next() == 10
    assert Search(10, 100, 0.5, None, 16).next() == 12


def test_large_ranges_take_few_values_and_large_values_come_late() -> None:
    for limit in (16, 1000, 65_507, 2**23 - 1):
        _, tried = searched(Search(16, 2**23), limit)
        assert len(tried) <= 2 + math.ceil(math.log2(19)) + 23
        assert tried[1] == math.isqrt(15 * 2**23)


@pytest.mark.parametrize(("fails", "tried"), [(201, 141), (200, 150)])
def test_between_two_values_it_halves_by_ratio_while_they_are_more_than_twice_apart(
    fails: int, tried: int
) -> None:
    assert Search(10, 1_000, passes=100, fails=fails).next() == tried


def test_near_enough_ends_it_and_the_least_value_is_tried_before_none_is_said_to_pass() -> None:
    found, tried = searched(Search(10, 10_000, within=0.05), 1428)
    exact = searched(Search(10, 10_000), 1428)[1]
    assert found.passes is not None
    assert found.fails is not None
    assert found.passes <= 1428 < found.fails <= 1.05 * found.passes
    assert len(tried) < len(exact)
    found, tried = searched(Search(10, 10_000, within=0.5), 9)
    assert (found.passes, found.fails, tried[-1]) == (None, 10, 10)


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("payload", "16B..8KiB", [16, 64, 256, 1024, 4096, 8192]),
        ("payload", "16..64", [16, 64]),
        ("payload", "16B..1KiB/4", [16, 64, 256, 1024]),
        ("payload", "128KiB,500", [500, 131072]),
        ("rate", "10..1kHz", [10, 20, 50, 100, 200, 500, 1000]),
        ("rate", "30Hz..70Hz", [30, 50, 70]),
        ("rate", "10..1kHz/3", [10, 100, 1000]),
        ("period", "100us..1ms", [100_000, 200_000, 500_000, 1_000_000]),
    ],
)
def test_a_range_says_its_values(name: str, text: str, values: list[int]) -> None:
    assert values_of(name, text) == values


def test_the_issues_ranges_have_both_ends() -> None:
    payloads, rates = values_of("payload", "16B..8MiB"), values_of("rate", "10..10kHz")
    assert (payloads[0], payloads[-1], len(payloads)) == (16, 2**23, 11)
    assert (rates[0], rates[-1], len(rates)) == (10, 10_000, 10)


def test_a_rate_is_a_period() -> None:
    assert option_of("rate", 500) == ("period", "2ms")
    assert option_of("rate", 3) == ("period", "333.333333ms")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("payload", "8MiB..16B", "does not go up"),
        ("payload", "16B..16B", "does not go up"),
        ("rate", "10..10k", "unknown unit 'k'"),
        ("rate", "0..10", "is not from 1 Hz"),
        ("subscribers", "0..3", "begins at 0"),
        ("payload", "16B..1KiB/1", "says no number of values"),
        ("payload", "16B..17B/5", "has no 5 values"),
        ("payload", f"16B..1KiB/{'9' * 5000}", "says no number of values"),
        ("subscribers", f"1..{'9' * 5000}", "is no whole number up to 1,000,000"),
        ("payload", "16B..", "is not a number"),
    ],
)
def test_a_range_that_is_none_is_refused_by_name(name: str, text: str, said: str) -> None:
    with pytest.raises(RtmeterError, match=said) as refused:
        values_of(name, text)
    assert (refused.value.field, refused.value.value) == (f"--{name}", text)
    assert refused.value.remedy


def test_the_ends_of_a_range() -> None:
    assert ends("rate", "10..10kHz") == (10, 10_000)
    with pytest.raises(RtmeterError, match="is no range"):
        ends("rate", "500")
