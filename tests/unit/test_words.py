"""Numbers and settings as a report writes them, at the borders between two ways to write one."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rtmeter.results import condition_words, words


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (None, "–"),
        (math.nan, "–"),
        (0, "0.000"),
        (312, "0.312"),
        (-5_000, "-5.000"),
        (9_999, "9.999"),
        (10_000, "10.00"),
        (54_310, "54.31"),
        (99_990, "99.99"),
        (100_000, "100.0"),
        (1_234_500, "1,234.5"),
        (math.inf, "lost"),
        ("lost", "lost"),
    ],
)
def test_a_time_has_as_many_decimals_as_say_something(ns: float | str | None, said: str) -> None:
    assert words.us(ns) == said


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (0.0, "0 %"),
        (1e-9, "10⁻⁹"),
        (2e-5, "0.002 %"),
        (1e-3, "0.1 %"),
        (0.419, "41.9 %"),
        (0.9999, "99.99 %"),
        (0.9999999, "99.9999 %"),
        (1.0, "100 %"),
        (math.nan, "-"),
    ],
)
def test_no_share_reads_as_none_or_all_that_is_neither(part: float, said: str) -> None:
    assert words.share(part) == said


@pytest.mark.parametrize(
    ("share", "digits", "said"),
    [
        (1e-4, 3, "0.0001"),
        (9.999e-5, 3, "10⁻⁴"),
        (9.99e-5, 3, "9.99 × 10⁻⁵"),
        (4.5e-7, 1, "4 × 10⁻⁷"),
        (1.0004e-6, 5, "1.0004 × 10⁻⁶"),
        (3e-12, 3, "3 × 10⁻¹²"),
    ],
)
def test_what_stands_before_a_power_of_ten_is_less_than_ten(share: float, digits: int, said: str) -> None:
    assert words.ratio(share, digits) == said


def test_a_share_has_the_digits_that_set_it_apart_from_its_limit() -> None:
    assert words.digits_beside(0.01, 0.02) == words.digits_beside(0.01, 0.01) == 3
    assert words.digits_beside(1e-3, 1.0004e-3) == 5


def test_a_lower_bound_is_told_where_it_says_something() -> None:
    assert words.share_between(0.002, 0.01) == "at least 0.2 %, at most 1 %"
    assert words.share_between(0.0001, 0.01) == "at most 1 %", "a hundredth of it"
    assert words.between(0.0001, 0.0012) == "0.01 % to 0.12 %"
    assert words.between(0.0012, 0.0012) == "0.12 %"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (1.5, "1.5 s"),
        (2, "2 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7_199, "120 min"),
        (7_200, "2 h"),
        (172_799, "48 h"),
        (172_800, "2 days"),
        (2 * 31_557_600, "2 years"),
    ],
)
def test_how_long_something_takes_is_told_in_no_unit_of_which_there_is_but_one(
    seconds: float, said: str
) -> None:
    assert words.span(seconds) == said


@pytest.mark.parametrize(
    ("bytes_", "said"),
    [
        (0, "0 B"),
        (500, "500 B"),
        (1_024, "1 KiB"),
        (1_536, "1,536 B"),
        (131_072, "128 KiB"),
        (8 << 20, "8 MiB"),
        (2 << 30, "2,048 MiB"),
    ],
)
def test_a_size_is_whole_in_its_unit(bytes_: int, said: str) -> None:
    assert words.size(bytes_) == said


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("cpus", None, "–"),
        ("strict", True, "yes"),
        ("strict", False, "no"),
        ("samples", 2_000, "2,000"),
        ("period_ns", 1_000_000, "1ms"),
        ("payload_bytes", 131_072, "128 KiB"),
        ("cpus", [1, 2], "1, 2"),
        ("scheduling", {"policy": "fifo", "priority": 80}, "fifo:80"),
        ("options", {}, "–"),
        ("options", {"lease_ns": 1_000, "shared": True}, "lease_ns = 1us, shared = yes"),
        ("mode", "one_shot", "one_shot"),
    ],
)
def test_a_setting_is_written_as_people_write_it(name: str, value: Any, said: str) -> None:
    assert words.setting(name, value) == said


def test_what_carries_its_unit_is_named_without() -> None:
    assert [words.label(name) for name in ("period_ns", "payload_bytes", "cpus")] == [
        "period",
        "payload",
        "cpus",
    ]
    assert words.round_us(1_000_000) == "1,000" and words.round_us(500) == "0.5"
    assert words.count(None) == "–" and words.count(1_234) == "1,234"


def test_of_several_cells_three_are_named() -> None:
    names = ["a", "b", "c", "d"]
    assert condition_words.which_cells(names, 9) == "a, b, c and 1 more"
    assert condition_words.which_cells(names[:3], 9) == "a, b, c"
    assert condition_words.which_cells(names, 4, "rigs") == "all 4 rigs"
    assert condition_words.which_cells(names[:1], 1) == "a"
