"""The three CSV files of the 2020 timer tool, as its source writes them."""

from __future__ import annotations

import pytest
from imported import refused

from rtmeter.importers import read
from tool_files import hist2020


def test_the_2020_histogram(write) -> None:
    found = read(write(hist2020({3: 100, 700: 1}), "hist.csv"))
    (series,) = found.series
    assert series.n == 101 and series.histogram is not None
    assert series.histogram.at(50) == (3_000, 4_000)
    assert {doubt.type for doubt in found.doubts} == {"absolute_values", "histogram_overflow"}
    (longer,) = read(write(hist2020({3: 100}) + "1000,2\n", "hist.csv")).series
    assert longer.histogram is not None and (longer.n, longer.histogram.over_from_ns) == (102, 1_001_000)


def test_what_the_2020_histogram_drops_is_looked_for_beside_it(write) -> None:
    write("latency,index\n1078345,77\n990000,5\n", "spin_topn.csv")
    (series,) = read(write(hist2020({3: 100}), "spin_hist.csv")).series
    assert series.histogram is not None
    assert series.n == 101 and series.histogram.lower_ns.tolist() == [3_000, 1_078_000]
    assert not series.doubts


def test_what_is_at_the_2020_histograms_end_is_beyond_it(write) -> None:
    write("latency,index\n1000000,77\n990000,5\n", "spin_topn.csv")
    (series,) = read(write(hist2020({3: 100}), "spin_hist.csv")).series
    assert series.histogram is not None
    assert series.n == 101 and series.histogram.lower_ns.tolist() == [3_000, 1_000_000]


def test_of_the_2020_largest_values_each_is_known(write) -> None:
    rows = "".join(f"{value},{index}\n" for index, value in enumerate([5_000_400] * 8 + [5_000] * 2))
    write(f"latency,index\n{rows}", "spin_topn.csv")
    (series,) = read(write(hist2020({5: 300}), "spin_hist.csv")).series
    assert series.histogram is not None
    late = {us: series.histogram.misses(us * 1000) for us in (4_999, 5_002)}
    assert {us: (one.surely, one.possibly) for us, one in late.items()} == {4_999: (8, 8), 5_002: (0, 0)}


@pytest.mark.parametrize(("most_ns", "of_it"), [(2_999, False), (3_000, True), (3_999, True), (4_000, False)])
def test_the_largest_values_of_another_run_are_refused(most_ns: int, of_it: bool, write) -> None:
    """By whose files this histogram would have dropped nothing."""
    write(f"latency,index\n{most_ns},77\n1000,5\n", "spin_topn.csv")
    path = write(hist2020({3: 100}), "spin_hist.csv")
    if of_it:
        assert read(path).series[0].n == 100
    else:
        assert refused(path).field == "histogram of spin_hist"


def test_where_all_of_the_largest_lie_beyond_its_end_more_may(write) -> None:
    write("latency,index\n1900000,77\n1078345,5\n", "spin_topn.csv")
    found = read(write(hist2020({3: 100}), "spin_hist.csv"))
    (series,) = found.series
    assert series.histogram is not None
    assert (series.n, series.histogram.dropped) == (102, True)
    (doubt,) = [doubt for doubt in found.doubts if doubt.type == "histogram_overflow"]
    assert "2 of them are known" in doubt.message and not doubt.hint


def test_a_clock_that_was_set_shows_in_the_2020_time_series(write) -> None:
    rows = "".join(f"{at},{5_000 + (at >= 200) * 3_600 * 10**9}\n" for at in range(400))
    assert "CLOCK_MONOTONIC" in (refused(write(f"idx,latency\n{rows}")).remedy or "")


def test_the_2020_time_series(write) -> None:
    (series,) = read(write("idx,latency\n0,5100\n1,4900\n2,120000\n")).series
    assert series.samples is not None and series.samples.tolist() == [5100, 4900, 120_000]


def test_the_2020_largest_values_judge_nothing(write) -> None:
    assert "largest values only" in refused(write("latency,index\n5100,3\n")).message


@pytest.mark.parametrize(
    "text",
    [
        "idx,latency\n0,18446744073709551000\n",
        "idx,latency\n1,5\n",
        "idx,latency\n0,5,6\n",
        "idx,latency\n0\n",
        "idx,latency\n0,NaN\n",
        "idx,latency\n0,-5\n",
        "idx,latency\n",
        "latency,count\n0,1\n5,1\n",
        hist2020({}).replace("\n5,0\n", "\n2000,0\n"),
    ],
)
def test_a_2020_file_that_is_damaged(text: str, write) -> None:
    refused(write(text))


def test_a_bin_of_the_2020_histogram_that_comes_again_is_refused(write) -> None:
    text = hist2020({5: 300}) + "5,3\n"
    error = refused(write(text))
    assert (error.field, error.value) == ("latency", "5") and str(error.where).endswith(":1002")
