"""rttest's files, as its source writes them."""

from __future__ import annotations

import numpy as np
import pytest
from imported import refused

from rtmeter.importers import read
from tool_files import rttest


def test_rttest_is_signed_and_in_order(write) -> None:
    found = read(write(rttest([50, -3, 70_000])))
    (series,) = found.series
    assert series.samples is not None and series.samples.tolist() == [50, -3, 70_000]
    assert found.period_ns == 1_000_000
    assert [doubt.type for doubt in found.doubts] == ["no_warm_up"]


def test_page_faults_are_told_by_their_kind(write) -> None:
    text = rttest([50, 60, 70]).replace(" 60 0 0", " 60 3 1").replace(" 70 0 0", " 70 4 0")
    assert read(write(text)).facts == {"page faults": "7 minor and 1 major"}


def test_a_delay_that_grows_all_along_is_no_step(write) -> None:
    """Of work that takes longer than the period."""
    found = read(write(rttest((np.arange(2000) * 5_000_000).tolist())))
    assert [doubt.type for doubt in found.doubts] == ["no_warm_up"]


def test_a_delay_that_comes_to_stay_is_no_clock_that_was_set(write) -> None:
    (series,) = read(write(rttest([1000] * 200 + [99_000_000] * 200))).series
    assert series.n == 400


def test_a_file_read_at_once_and_by_line_is_the_same(write) -> None:
    text = rttest(np.random.default_rng(1).integers(-9_000, 90_000, 500).tolist())
    at_once, by_line = read(write(text)), read(write(text.replace("\n7 ", "\n7  "), "spaced.txt"))
    first, second = at_once.series[0].samples, by_line.series[0].samples
    assert first is not None and second is not None and np.array_equal(first, second)
    assert at_once.period_ns == by_line.period_ns


@pytest.mark.parametrize("latency", ["nan", "inf", "12us", "", 2**63, -(2**62), -(2**63)])
def test_a_latency_that_is_none(latency: object, write) -> None:
    refused(write(rttest([50, latency, 70])))


@pytest.mark.parametrize(
    "text",
    [
        "iteration timestamp latency\n0 0 5\n",
        "iteration timestamp latency minor_pagefaults major_pagefaults\n",
        rttest([1, 2, 3]).replace("1 1000000", "2 1000000"),
        rttest([1, 2, 3, 4]).replace(" 2000000 ", " 2500000 "),
        rttest([1, 2, 3]).replace(" 2 0 0", " 2 -1 0"),
    ],
)
def test_a_file_that_is_not_of_rttest(text: str, write) -> None:
    refused(write(text), "rttest")


@pytest.mark.parametrize("step_ns", [3_600_000_000_000, -3_600_000_000_000])
def test_a_clock_that_was_set(step_ns: int, write) -> None:
    generator = np.random.default_rng(1)
    latencies = generator.integers(10_000, 90_000, 2000)
    latencies[1200:] += step_ns
    error = refused(write(rttest(latencies.tolist())))
    assert "steps by 1 h at about sample 1,1" in error.message
    assert "CLOCK_MONOTONIC" in (error.remedy or "")


def test_a_stall_is_no_step(write) -> None:
    latencies = np.full(2000, 50_000)
    latencies[500:510] = 900_000_000
    assert read(write(rttest(latencies.tolist()))).series[0].n == 2000


@pytest.mark.parametrize("body_ns", [90_000, 60_000_000])
@pytest.mark.parametrize(
    ("samples", "steps"),
    [
        (3000, {1500: 150_000_000}),
        (3000, {1500: 150_000_000, 2500: 150_000_000}),
        (3000, {1500: 150_000_000, 2500: -300_000_000}),
        (3000, {2961: 150_000_000}),
        (90, {45: 150_000_000}),
    ],
    ids=["once", "twice", "more back than forth", "at the end", "few"],
)
def test_a_clock_that_was_set_by_little(samples: int, steps: dict[int, int], body_ns: int, write) -> None:
    latencies = np.random.default_rng(1).integers(10_000, body_ns, samples)
    for at, by_ns in steps.items():
        latencies[at:] += by_ns
    error = refused(write(rttest(latencies.tolist())))
    assert error.field == "latency" and "steps by 1" in error.message


def test_what_is_early_from_the_beginning_is_of_a_clock_that_was_set(write) -> None:
    error = refused(write(rttest([-200_000_000, -199_000_000])))
    assert error.message == "is early by more than any delay" and "the clock was set" in str(error.remedy)


def test_heavy_noise_is_no_step(write) -> None:
    latencies = np.random.default_rng(1).integers(0, 400_000_000, 20_000)
    assert [doubt.type for doubt in read(write(rttest(latencies.tolist()))).doubts] == ["no_warm_up"]


def stalled(samples: int, first: int, period_ns: int = 1_000_000, *, missed: int = 500) -> list[int]:
    """As many samples; a stall that ``missed`` so many releases, which are caught up, begins at one."""
    latencies = np.random.default_rng(1).integers(50_000, 60_000, samples)
    latencies[first : first + missed] += np.arange(missed, 0, -1)[: samples - first] * period_ns
    return latencies.tolist()


@pytest.mark.parametrize(
    ("latencies", "jump"),
    [
        (stalled(20_000, 10_000), "about sample 9,9"),
        (stalled(1200, 800), "about sample 7"),  # it ends before all is caught up
        (stalled(1200, 1104), "about sample 1,0"),
        (stalled(2000, 320, 10_000_000, missed=64), "steps by 485 ms"),  # as large a jump back
    ],
)
def test_a_stall_that_is_caught_up_is_a_doubt(latencies: list[int], jump: str, write) -> None:
    found = read(write(rttest(latencies)))
    assert found.series[0].n == len(latencies)
    (doubt,) = [doubt for doubt in found.doubts if doubt.type == "stall_or_clock_set"]
    assert jump in doubt.message and doubt.message.endswith(": a stall, or a clock that was set")


def test_the_step_that_stays_is_named_and_no_stall_before_it(write) -> None:
    latencies = np.array(stalled(4000, 1000))
    latencies[3000:] += 900_000_000
    assert "steps by 900 ms at about sample 2,9" in refused(write(rttest(latencies.tolist()))).message


def test_a_clock_that_was_set_back_and_forth(write) -> None:
    latencies = np.full(2000, 50_000)
    latencies[500:700] -= 3_600_000_000_000
    assert "early by more than any delay" in refused(write(rttest(latencies.tolist()))).message
