"""rtla's histograms: those in data/ are of its version 6.1 on a PREEMPT_RT kernel in an emulated machine, the
others as tools/tracing/rtla/src/{timerlat,osnoise}_hist.c print them."""

from __future__ import annotations

import pytest
from imported import DATA, refused

from rtmeter.importers import read
from tool_files import TIMERLAT


@pytest.mark.parametrize(
    ("name", "width_us"), [("rtla_timerlat", 1), ("rtla_timerlat_b10", 10), ("rtla_osnoise_b50", 50)]
)
def test_what_rtla_wrote(name: str, width_us: int) -> None:
    text = (DATA / f"{name}.txt").read_text()
    stated = {words[0]: words[1:] for line in text.splitlines() if (words := line.split())}
    found = read(DATA / f"{name}.txt")
    assert found.unit == "microseconds" and found.facts == {"duration": "0 00:00:05"}
    for column, series in enumerate(found.series):
        assert series.histogram is not None
        assert series.histogram.width_ns == width_us * 1000
        assert series.n == int(stated["count:"][column])
        assert series.histogram.over == int(stated["over:"][column])
        assert series.histogram.max_ns == int(stated["max:"][column]) // width_us * width_us * 1000


def test_rtla_timerlat(write) -> None:
    found = read(write(TIMERLAT))
    assert (found.tool, found.verified, found.skips) == ("rtla timerlat", True, True)
    names = ["CPU 0 interrupt", "CPU 0 thread", "CPU 1 interrupt", "CPU 1 thread"]
    assert [series.name for series in found.series] == names
    assert [series.n for series in found.series] == [313, 314, 541, 541]
    thread = found.series[1].histogram
    assert thread is not None
    assert (thread.over, thread.over_from_ns, thread.below_ns) == (2, 9_000, 613_000)


def test_rtla_without_an_all_block_and_with_nothing_on_a_cpu(write) -> None:
    text = TIMERLAT.split("ALL:")[0].replace("min:          0         1", "min:          0         1")
    assert len(read(write(text)).series) == 4


def test_what_lies_beyond_the_last_bucket_is_later_than_every_row_of_any_cpu(write) -> None:
    head = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\nIndex   Thr-000   Thr-001\n"
    text = head + "10 4 0\n11 1 0\nover: 0 3\ncount: 5 3\nmin: 10 300\nmax: 11 900\n"
    found = read(write(text)).series[1].histogram
    assert found is not None and (len(found.counts), found.over, found.over_from_ns) == (0, 3, 12_000)


def of_one_row(row: str, *, over: int, count: int, least: int, most: int) -> str:
    head = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\nIndex   Thr-000\n"
    return head + row + f"over: {over}\ncount: {count}\nmin: {least}\nmax: {most}\n"


def test_rtla_that_has_no_row(write) -> None:
    found = read(write(of_one_row("", over=3, count=3, least=300, most=900))).series[0].histogram
    assert found is not None and (found.n, found.over, found.over_from_ns) == (3, 3, 0)


@pytest.mark.parametrize(
    ("row", "most", "at_most"), [("0 40\n", 30_000, 43), ("20 40\n", 27, 43), ("20 40\n", 41, 3)]
)
def test_of_one_row_nothing_is_later_than_the_stated_maximum(
    row: str, most: int, at_most: int, write
) -> None:
    """Where the width that is taken reaches beyond the last bucket."""
    text = of_one_row(row, over=3, count=43, least=int(row.split()[0]) + 1, most=most)
    found = read(write(text)).series[0].histogram
    assert found is not None and found.n == 43
    assert found.misses(1000 * most + 999).surely == 0
    assert found.misses(1000 * most - 1000).possibly == at_most


def test_buckets_of_a_microsecond_are_no_guess(write) -> None:
    """What is said to lie beyond the last one lies beyond the stated maximum, too: the file is damaged."""
    text = of_one_row("20 20\n21 20\n", over=3, count=43, least=20, most=21)
    assert "3 values from 22 on, beyond the stated maximum" in str(refused(write(text)))


def test_rtla_cut_anywhere_in_its_totals(write) -> None:
    for end in range(TIMERLAT.index("over:"), TIMERLAT.index("\nALL:") + 1):
        refused(write(TIMERLAT[:end]))


def rows(*edges: int, largest: int) -> str:
    return (
        "# RTLA timerlat histogram\n# Time unit is microseconds (us)\nIndex   Thr-000\n"
        + "".join(f"{edge} 10\n" for edge in edges)
        + f"over: 0\ncount: {10 * len(edges)}\nmin: {edges[0]}\nmax: {largest}\n"
    )


@pytest.mark.parametrize(
    ("edges", "largest", "width_us"), [((0, 10, 30), 37, 10), ((0,), 7, 8), ((3, 4), 4, 1), ((20,), 25, 20)]
)
def test_the_bucket_size_is_the_widest_that_fits(edges, largest: int, width_us: int, write) -> None:
    found = read(write(rows(*edges, largest=largest)))
    assert found.series[0].histogram is not None
    assert found.series[0].histogram.width_ns == width_us * 1000
    assert [doubt.type for doubt in found.doubts] == ([] if width_us == 1 else ["bucket_assumed"])


def test_rtla_osnoise_in_nanoseconds(write) -> None:
    text = (
        "# RTLA osnoise histogram\n# Time unit is nanoseconds (ns)\n# Duration:   0 00:01:00\n"
        "Index   CPU-000\n500          4\n1000         2\n1500         1\n2500         1\n3000         1\n"
        "over:         0 \ncount:        9 \nmin:        507 \navg:     900.00 \nmax:       3400 \n"
    )
    found = read(write(text))
    (series,) = found.series
    assert found.tool == "rtla osnoise" and series.name == "CPU 0 noise"
    assert found.quantity == "noise in a period" and not found.skips
    assert series.histogram is not None and series.histogram.width_ns == 500
    assert series.histogram.below_ns == 3_500


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# RTLA timerlat histogram\n", ""),
        ("microseconds (us)", "fortnights (fn)"),
        ("Index   IRQ-000", "Index   "),
        ("over:", "ofer:"),
        ("count:      313", "count:      312"),
        (
            "max:          7       612         8         7\nALL",
            "max:          6       612         8         7\nALL",
        ),
        ("4             0       303", "4             0       nan"),
        ("4             0       303", "4             0      -303"),
        ("4             0       303", "4             0"),
    ],
)
def test_rtla_that_is_damaged(old: str, new: str, write) -> None:
    assert old in TIMERLAT
    refused(write(TIMERLAT.replace(old, new)), "rtla")


def test_two_runs_of_rtla_in_one_file(write) -> None:
    assert "one run at a time" in (refused(write(TIMERLAT + TIMERLAT)).remedy or "")
