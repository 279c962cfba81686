"""The gnuplot logs of the 2014 timer tests, as their source writes them."""

from __future__ import annotations

import pytest
from imported import refused

from rtmeter.importers import read
from tool_files import log2014


def test_the_2014_log(write) -> None:
    found = read(write(log2014({0: 5, 40: 90, 120: 2, -3: 2}, 100, -3, 120)))
    (series,) = found.series
    assert found.quantity == "measured latency of a one-shot timer"
    assert (found.period_ns, found.facts) == (1_000_000, {"loops": "100"})
    assert series.n == 100 and series.histogram is not None
    assert series.histogram.lower_ns.tolist() == [-4_000, -1_000, 0, 40_000, 120_000]
    assert series.histogram.counts.tolist() == [2, 1, 5, 90, 2]  # one early by less than a microsecond
    assert [doubt.type for doubt in found.doubts] == ["early_assumed"]


def test_a_2014_log_that_misses_no_value_is_not_doubted(write) -> None:
    assert read(write(log2014({40: 90}, 90, 40, 40))).doubts == ()


def test_a_2014_log_may_have_no_other_early_values_than_those_in_no_row(write) -> None:
    found = read(write(log2014({40: 90}, 95, 0, 40))).series[0].histogram
    assert found is not None
    assert (found.lower_ns.tolist(), found.counts.tolist()) == ([-1_000, 40_000], [5, 90])


def test_what_may_be_measured_or_a_difference_is_taken_for_the_first(write) -> None:
    text = log2014({-3: 1, 9: 2}, 3, -3, 9).replace("MIN: -9us \tAVG: 4us \tMAX: 7us", "MIN: -3us \tMAX: 9us")
    found = read(write(text))
    assert found.series[0].name == "measured"
    assert [doubt.type for doubt in found.doubts] == ["quantity_assumed"]


@pytest.mark.parametrize(
    ("least", "quantity", "doubts"),
    [(5, "reported", []), (7, "measured", ["quantity_assumed"])],
)
def test_what_a_2014_log_holds_has_its_minimum_and_maximum(least, quantity, doubts, write) -> None:
    text = log2014({7: 5, 99: 2}, 7, 7, 99).replace("MIN: 7us", f"MIN: {least}us")
    found = read(write(text.replace("MIN: 30us", "MIN: 7us")))
    assert found.series[0].name == quantity
    assert [doubt.type for doubt in found.doubts] == doubts


def test_a_2014_log_with_its_gnuplot_script(write) -> None:
    text = 'set logscale y\nplot "-" using 1:2\n' + log2014({40: 90}, 90, 40, 40) + "\nend\n"
    assert read(write(text)).series[0].n == 90


def of_differences(bins: dict[int, int], loops: int, least: int, most: int) -> str:
    text = log2014(bins, loops, least, most).replace("# Difference", "# Other")
    return text.replace("# Measured", "# Difference").replace("# Other", "# Measured")


@pytest.mark.parametrize(
    "text",
    [
        log2014({40: 90}, 80, 40, 40),
        log2014({40: 90}, 95, 0, 40).replace("000000 \t000000\n", ""),
        of_differences({2: 3, 9: 1}, 4, 0, 9),
        log2014({40: 90}, 95, 40, 40),
        log2014({40: 90}, 90, 40, 50),
        log2014({40: 90}, 90, 40, 40).replace("MAX: 40us", "MAX: 40000us"),
        log2014({40: 90}, 90, 40, 40) + log2014({40: 90}, 90, 40, 40),
        log2014({}, 0, 0, 40),
        log2014({10: 45, 18: 50}, 95, 0, 18).replace("000010 \t000045\n", ""),
        log2014({10: 45, 18: 50}, 95, 0, 18).rstrip()[:-1],
    ],
)
def test_a_2014_log_that_does_not_add_up(text: str, write) -> None:
    refused(write(text))


@pytest.mark.parametrize(
    ("bins", "least", "most", "n"),
    [({-4: 1, -9: 2}, -9, 4, 3), ({2: 3, 9: 1}, -4, 9, 4), ({-3: 1, 9: 1}, -4, 9, 3)],
)
def test_differences_whose_first_one_negated_was_taken_for_an_extreme(bins, least, most, n, write) -> None:
    """As src/OneShotLatencyMeasurer.cpp begins its minimum and maximum of them."""
    found = read(write(of_differences(bins, n, least, most)))
    assert (found.series[0].name, found.series[0].n) == ("difference", n)


@pytest.mark.parametrize("cut", ["", "000002 \t000001\n", "#-000001 \t000003\n"])
def test_a_log_of_the_later_versions_says_its_length_in_words(cut: str, write) -> None:
    text = log2014({0: 1, 2: 1, 5: 1, -1: 3, -3: 1}, 7, -3, 5)
    said = "# Measurement results with a loop length of 7 and a timeout of 1000 us:"
    text = text.replace("# Timeout: 1000us, LoopLength: 7", said)
    if cut:
        assert cut in text
        refused(write(text.replace(cut, "")))
    else:
        found = read(write(text))
        assert (found.series[0].n, found.period_ns) == (7, 1_000_000)
