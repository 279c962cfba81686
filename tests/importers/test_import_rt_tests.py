"""cyclictest's and oslat's files: data/ was written by rt-tests 2.40."""

from __future__ import annotations

import json

import numpy as np
import pytest
from imported import DATA, refused

from rtmeter.importers import read
from rtmeter.statistics.counted_data import PossibleMisses
from tool_files import cyclictest


def test_cyclictest_json() -> None:
    found = read(DATA / "cyclictest.json")
    assert (found.tool, found.version, found.period_ns, found.verified) == (
        "cyclictest",
        "2.40",
        500_000,
        True,
    )
    assert [(series.name, series.n) for series in found.series] == [("thread 0", 2000), ("thread 1", 2000)]
    first = found.series[0].histogram
    assert first is not None
    assert (first.over, first.over_from_ns, first.below_ns) == (3, 400_000, 2_822_000)
    assert first.misses(1_000_000) == PossibleMisses(2000, 1, 3)  # the largest one is known
    assert first.misses(399_999) == PossibleMisses(2000, 3, 3)
    assert first.misses(3_000_000) == PossibleMisses(2000, 0, 0)
    assert [doubt.type for doubt in found.series[0].doubts] == ["histogram_overflow"]


def test_cyclictest_histogram_agrees_with_its_json() -> None:
    text, document = read(DATA / "cyclictest.hist"), read(DATA / "cyclictest.json")
    for ours, theirs in zip(text.series, document.series, strict=True):
        assert ours.histogram is not None and theirs.histogram is not None
        assert np.array_equal(ours.histogram.lower_ns, theirs.histogram.lower_ns)
        assert np.array_equal(ours.histogram.counts, theirs.histogram.counts)
        assert ours.histogram.over == theirs.histogram.over
        assert ours.histogram.over_from_ns == theirs.histogram.over_from_ns, "its last rows are empty"


@pytest.mark.parametrize(
    ("options", "period_us"), [("-h 100", 1000), ("-i 200 -h 100", 200), ("-mqi200 --interval=300", 300)]
)
def test_the_period_is_the_last_that_is_given_or_a_millisecond(options: str, period_us: int, write) -> None:
    document = cyclictest() | {"cmdline:": f"cyclictest {options}"}
    assert read(write(json.dumps(document))).period_ns == 1000 * period_us


def test_oslat_json() -> None:
    document = json.loads((DATA / "oslat.json").read_text())["thread"]["0"]
    found = read(DATA / "oslat.json")
    (series,) = found.series
    assert (found.tool, found.period_ns, found.skips) == ("oslat", None, False)
    assert series.histogram is not None
    assert series.n == sum(document["histogram"].values())
    assert series.histogram.below_ns == document["max"] * 1000
    assert series.histogram.lower_ns[0] == 0  # bin 1 is what took less than a microsecond
    assert series.histogram.over == document["histogram"]["32"]


def test_oslat_that_never_reached_its_last_bin_lost_sight_of_nothing(write) -> None:
    document = json.loads((DATA / "oslat.json").read_text())
    document["thread"] = {"0": {"histogram": {"1": 5, "3": 2}, "max": 3}}
    found = read(write(json.dumps(document))).series[0].histogram
    assert found is not None and (found.lower_ns.tolist(), found.counts.tolist()) == ([0, 2000], [5, 2])
    assert found.over == 0


def test_nanoseconds_are_told_by_the_resolution(write) -> None:
    (series,) = read(write(json.dumps(cyclictest(resolution_in_ns=1)))).series
    assert series.histogram is not None and series.histogram.width_ns == 1
    assert series.histogram.lower_ns.tolist() == [10, 12]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"file_version": 2}, "file_version"),
        ({"min": 11}, "histogram of thread 0"),
        ({"max": 11}, "histogram of thread 0"),
        ({"max": 99}, "histogram of thread 0"),  # of 9 one lies beyond 100
        ({"cycles": 7}, "histogram of thread 0"),
        ({"cycles": 8}, "histogram of thread 0"),
        ({"histogram": {"10": -5}}, "bin 10 of thread 0"),
        ({"histogram": {"-3": 5}}, "bin of thread 0"),
        ({"histogram": {"10": 1.5}}, "bin 10 of thread 0"),
        ({"histogram": {"ten": 1}}, "bin of thread 0"),
        ({"histogram": {}}, "histogram of thread 0"),
        ({"histogram": {}, "cmdline:": "cyclictest -i 1000"}, "thread 0"),
        ({"thread": {}}, "cmdline"),
        ({"cmdline:": "pmqtest"}, "cmdline"),
        ({"min": None}, "min of thread 0"),
    ],
)
def test_a_file_that_cannot_be_of_cyclictest(changes: dict, field: str, write) -> None:
    assert refused(write(json.dumps(cyclictest(**changes)))).field == field


def test_a_thread_that_never_ran_has_no_mean(write) -> None:
    text = json.dumps(cyclictest(histogram={}, cycles=0, min=1_000_000, max=0))
    (series,) = read(write(text.replace('"avg": 20.0', '"avg": -nan'))).series
    assert series.n == 0
    assert refused(write(text.replace('"cycles": 0', '"cycles": -nan'))).where


def test_nan_in_json(write) -> None:
    text = json.dumps(cyclictest()).replace('"avg": 20.0', '"avg": NaN')
    error = refused(write(text))
    assert (error.field, error.value) == ("avg", "NaN")


def test_json_that_is_cut(write) -> None:
    error = refused(write((DATA / "cyclictest.json").read_text()[:800]))
    assert "is not JSON" in error.message and ":" in (error.where or "")


@pytest.mark.parametrize("end", [200, 3000, 8200])
def test_a_histogram_that_is_cut(end: int, write) -> None:
    refused(write((DATA / "cyclictest.hist").read_text()[:end]))


def test_a_histogram_whose_last_number_is_cut(write) -> None:
    text = (DATA / "cyclictest.hist").read_text().partition("# Histogram Overflows")[0]
    read(write(f"{text}# Histogram Overflows: 00003 00192\n"))
    refused(write(f"{text}# Histogram Overflows: 00003 001"))


@pytest.mark.parametrize(
    ("old", "new"),
    [("000006 000000\t000000\n", "000006 000000\n"), ("# Total: 00000", "# Total: 00001")],
)
def test_a_histogram_that_does_not_add_up(old: str, new: str, write) -> None:
    text = (DATA / "cyclictest.hist").read_text()
    assert text.count(old) == 1
    refused(write(text.replace(old, new)))


def test_two_runs_of_cyclictest_in_one_file(write) -> None:
    text = (DATA / "cyclictest.hist").read_text()
    error = refused(write(text + text, "two.hist"))
    assert (error.field, error.value) == ("bin", "000000")
    assert "one run at a time" in (error.remedy or "")


def test_a_histogram_of_two_units(write) -> None:
    text = (DATA / "cyclictest.hist").read_text().replace("# Min Latencies: 00014", "# Min Latencies: 14321")
    assert "mixed" in (refused(write(text)).remedy or "")


def test_a_sum_column_is_left_out(write) -> None:
    rows = "000010 000002\t000003\t000005\n000011 000001\t000000\t000001\n"
    totals = "# Total: 000000003 000000003\n# Min Latencies: 00010 00010\n# Avg Latencies: 00010 00010\n"
    totals += "# Max Latencies: 00011 00010 00011\n# Histogram Overflows: 00000 00000 00000\n"
    assert [series.n for series in read(write("# Histogram\n" + rows + totals)).series] == [3, 3]
