"""performance_test's logs, as its source writes them."""

from __future__ import annotations

import json

import pytest
from imported import refused

from rtmeter.importers import read
from rtmeter.statistics.counted_data import PossibleMisses
from tool_files import CSV


def test_performance_test_csv(write) -> None:
    found = read(write(CSV))
    (series,) = found.series
    assert (found.tool, found.version, found.period_ns) == ("performance_test", "2.0.0", 1_000_000)
    assert series.intervals is not None and series.n == 2000
    assert series.intervals.maxima_ns.tolist() == [900_000, 1_700_000]
    assert series.intervals.misses(1_000_000) == PossibleMisses(2000, 3, 1000, 2)
    assert series.intervals.misses(2_000_000) == PossibleMisses(2000, 2, 2, 2)


def test_a_rate_of_zero_is_no_period(write) -> None:
    assert read(write(CSV.replace("Publishing rate: 1000", "Publishing rate: 0"))).period_ns is None


def test_a_log_that_a_signal_ended_is_whole(write) -> None:
    text = CSV.replace("Maximum runtime reached. Exiting.", "Caught signal. Exiting")
    assert read(write(text)).series[0].n == 2000


def test_a_column_without_a_unit_is_in_seconds(write) -> None:
    (series,) = read(write(CSV.replace(" (ms)", ""))).series
    assert series.intervals is not None
    assert series.intervals.maxima_ns.tolist() == [900_000_000, 1_700_000_000]


def test_performance_test_json(write) -> None:
    results = [
        {"num_samples_received": 10, "num_samples_lost": 1, "latency_min": 1e-5, "latency_max": 2.5e-3},
        {"num_samples_received": 0, "num_samples_lost": 0, "latency_min": 1e9, "latency_max": -1e9},
    ]
    found = read(write(json.dumps({"perf_test_version": "2.1", "analysis_results": results})))
    (series,) = found.series
    assert series.intervals is not None and found.version == "2.1"
    assert series.intervals.maxima_ns.tolist() == [2_500_000, 0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("latency_max (ms)", "latency_top (ms)"),
        ("latency_max (ms)", "latency_max (weeks)"),
        ("0.05,\t\t1.7", "5000,\t\t1.7"),
        ("0.05,\t\t1.7", "0.05,\t\tnan"),
        ("0.05,\t\t1.7", "0.05,\t\t-1.7"),
        ("998,", "some,"),
        ("0.05,\t\t1.7", "0,05,\t\t1,7"),
        ("0.05,\t\t1.7", "0.05,\t\t1,7"),
        ("2.000000,\t\t1.000000,\t\t998,", "2.000000,"),
    ],
)
def test_performance_test_that_is_damaged(old: str, new: str, write) -> None:
    assert old in CSV
    refused(write(CSV.replace(old, new)))
