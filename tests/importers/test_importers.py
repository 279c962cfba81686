"""Files of other tools: real ones of rt-tests, and others as their tools' source writes them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rtmeter.errors import RtmeterError
from rtmeter.importers import read
from rtmeter.statistics.histogram import Counted

DATA = Path(__file__).parent / "data"


@pytest.fixture
def write(tmp_path: Path):
    def file(text: str, name: str = "file.txt") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return file


def refused(path: Path, form: str | None = None) -> RtmeterError:
    with pytest.raises(RtmeterError) as error:
        read(path, form)
    assert error.value.where is not None and error.value.where.startswith(str(path))
    assert error.value.remedy or error.value.value
    return error.value


# cyclictest and oslat: written by rt-tests 2.40.


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
    assert first.misses(1_000_000) == Counted(2000, 0, 3)
    assert first.misses(399_999) == Counted(2000, 3, 3)
    assert first.misses(3_000_000) == Counted(2000, 0, 0)
    assert {doubt.type for doubt in found.doubts} == {"histogram_overflow"}


def test_cyclictest_histogram_agrees_with_its_json() -> None:
    text, document = read(DATA / "cyclictest.hist"), read(DATA / "cyclictest.json")
    for ours, theirs in zip(text.series, document.series, strict=True):
        assert ours.histogram is not None and theirs.histogram is not None
        assert np.array_equal(ours.histogram.lower_ns, theirs.histogram.lower_ns)
        assert np.array_equal(ours.histogram.counts, theirs.histogram.counts)
        assert ours.histogram.over == theirs.histogram.over


def test_oslat_json() -> None:
    document = json.loads((DATA / "oslat.json").read_text())["thread"]["0"]
    found = read(DATA / "oslat.json")
    (series,) = found.series
    assert found.tool == "oslat" and series.histogram is not None
    assert series.n == sum(document["histogram"].values())
    assert series.histogram.below_ns == document["max"] * 1000
    assert series.histogram.lower_ns[0] == 0  # bin 1 is what took less than a microsecond
    assert series.histogram.over == document["histogram"]["32"]


@pytest.mark.parametrize("option", ["json", "histfile"])
def test_the_cyclictest_installed_here(option: str, tmp_path: Path) -> None:
    tool = shutil.which("cyclictest")
    if tool is None:
        pytest.skip("cyclictest (rt-tests) is not installed")
    out = tmp_path / "out"
    command = [tool, "-q", "-t1", "-i", "1000", "-l", "50", "-h", "1000", f"--{option}={out}"]
    subprocess.run([*command, "--policy=other"], check=True, timeout=60, capture_output=True)
    (series,) = read(out).series
    assert series.n == 50


def cyclictest(**changes: object) -> dict[str, object]:
    thread = {"histogram": {"10": 5, "12": 3}, "cycles": 9, "min": 10, "max": 700, "avg": 20.0}
    document = {"file_version": 1, "cmdline:": "cyclictest -h 100 -i 1000", "thread": {"0": thread}}
    for key, value in changes.items():
        (thread if key in thread else document)[key] = value
    return document


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
        ({"cycles": 7}, "histogram of thread 0"),
        ({"cycles": 8}, "histogram of thread 0"),
        ({"histogram": {"10": -5}}, "bin 10 of thread 0"),
        ({"histogram": {"-3": 5}}, "bin of thread 0"),
        ({"histogram": {"10": 1.5}}, "bin 10 of thread 0"),
        ({"histogram": {"ten": 1}}, "bin of thread 0"),
        ({"histogram": {}}, "thread 0"),
        ({"thread": {}}, "cmdline"),
        ({"cmdline:": "pmqtest"}, "cmdline"),
        ({"min": None}, "min of thread 0"),
    ],
)
def test_a_file_that_cannot_be_of_cyclictest(changes: dict, field: str, write) -> None:
    assert refused(write(json.dumps(cyclictest(**changes)))).field == field


def test_nan_in_json(write) -> None:
    text = json.dumps(cyclictest()).replace('"avg": 20.0', '"avg": NaN')
    assert refused(write(text)).value == "NaN"


def test_json_that_is_cut(write) -> None:
    error = refused(write((DATA / "cyclictest.json").read_text()[:800]))
    assert "is not JSON" in error.message and ":" in (error.where or "")


@pytest.mark.parametrize("end", [200, 3000, 8200])
def test_a_histogram_that_is_cut(end: int, write) -> None:
    refused(write((DATA / "cyclictest.hist").read_text()[:end]))


def test_a_histogram_of_two_units(write) -> None:
    text = (DATA / "cyclictest.hist").read_text().replace("# Min Latencies: 00014", "# Min Latencies: 14321")
    assert "mixed" in (refused(write(text)).remedy or "")


def test_a_sum_column_is_left_out(write) -> None:
    rows = "000010 000002\t000003\t000005\n000011 000001\t000000\t000001\n"
    totals = "# Total: 000000003 000000003\n# Min Latencies: 00010 00010\n# Avg Latencies: 00010 00010\n"
    totals += "# Max Latencies: 00011 00010 00011\n# Histogram Overflows: 00000 00000 00000\n"
    assert [series.n for series in read(write("# Histogram\n" + rows + totals)).series] == [3, 3]


# jitterdebugger.


def jitterdebugger(**changes: object) -> str:
    cpu = {"histogram": {"3": 10, "7": 2}, "count": 13, "min": 3, "max": 1500, "avg": 5.0}
    document: dict = {
        "version": 3,
        "sysinfo": {"sysname": "Linux", "resolution_in_ns": 1000},
        "cpu": {"0": cpu},
    }
    for key, value in changes.items():
        (cpu if key in cpu else document)[key] = value
    return json.dumps(document)


def test_jitterdebugger(write) -> None:
    found = read(write(jitterdebugger()))
    (series,) = found.series
    assert (found.tool, found.version, found.verified, series.n) == ("jitterdebugger", "3", False, 13)
    assert series.histogram is not None
    assert (series.histogram.over, series.histogram.over_from_ns) == (1, 1_000_000)
    assert series.histogram.misses(900_000) == Counted(13, 1, 1)


def test_jitterdebugger_before_it_had_versions(write) -> None:
    document = json.loads(jitterdebugger())
    del document["version"], document["sysinfo"]
    assert read(write(json.dumps(document))).series[0].n == 13


def test_a_newer_jitterdebugger(write) -> None:
    assert refused(write(jitterdebugger(version=4))).field == "version"


def test_a_negative_latency_that_wrapped_around(write) -> None:
    """Early wake-ups are taken as unsigned: 2^64 less a little."""
    error = refused(write(jitterdebugger(max=2**64 - 3)))
    assert "longer than a year" in error.message and "wrapped around" in (error.remedy or "")


# rtla, as tools/tracing/rtla/src/{timerlat,osnoise}_hist.c print it.

TIMERLAT = """\
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:05
Index   IRQ-000   Thr-000   IRQ-001   Thr-001
0            12         0        40         0
1           300         9       500         1
4             0       303         0       538
7             1         0         0         2
8             0         0         1         0
over:         0         2         0         0
count:      313       314       541       541
min:          0         1         0         1
avg:          1         5         1         4
max:          7       612         8         7
ALL:        IRQ       Thr
count:      854       855
min:          0         1
avg:          1         4
max:          8       612
"""


def test_rtla_timerlat(write) -> None:
    found = read(write(TIMERLAT))
    assert (found.tool, found.verified) == ("rtla timerlat", False)
    names = ["CPU 0 interrupt", "CPU 0 thread", "CPU 1 interrupt", "CPU 1 thread"]
    assert [series.name for series in found.series] == names
    assert [series.n for series in found.series] == [313, 314, 541, 541]
    thread = found.series[1].histogram
    assert thread is not None
    assert (thread.over, thread.over_from_ns, thread.below_ns) == (2, 5_000, 613_000)


def test_rtla_without_an_all_block_and_with_nothing_on_a_cpu(write) -> None:
    text = TIMERLAT.split("ALL:")[0].replace("min:          0         1", "min:          0         1")
    assert len(read(write(text)).series) == 4


def test_rtla_osnoise_in_nanoseconds(write) -> None:
    text = (
        "# RTLA osnoise histogram\n# Time unit is nanoseconds (ns)\n# Duration:   0 00:01:00\n"
        "Index   CPU-000\n500          4\n1000         2\n1500         1\n2500         1\n3000         1\n"
        "over:         0 \ncount:        9 \nmin:        507 \navg:     900.00 \nmax:       3400 \n"
    )
    found = read(write(text))
    (series,) = found.series
    assert found.tool == "rtla osnoise" and series.name == "CPU 0 noise"
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


# rttest.


def rttest(latencies: list[object], period: int = 1_000_000) -> str:
    rows = [f"{i} {i * period} {latency} 0 0" for i, latency in enumerate(latencies)]
    return "\n".join(["iteration timestamp latency minor_pagefaults major_pagefaults", *rows, ""])


def test_rttest_is_signed_and_in_order(write) -> None:
    found = read(write(rttest([50, -3, 70_000])))
    (series,) = found.series
    assert series.samples is not None and series.samples.tolist() == [50, -3, 70_000]
    assert found.period_ns == 1_000_000


@pytest.mark.parametrize("latency", ["nan", "inf", "12us", "", 2**63, -(2**62)])
def test_a_latency_that_is_none(latency: object, write) -> None:
    refused(write(rttest([50, latency, 70])))


@pytest.mark.parametrize(
    "text",
    [
        "iteration timestamp latency\n0 0 5\n",
        "iteration timestamp latency minor_pagefaults major_pagefaults\n",
        rttest([1, 2, 3]).replace("1 1000000", "2 1000000"),
        rttest([1, 2, 3, 4]).replace(" 2000000 ", " 2500000 "),
    ],
)
def test_a_file_that_is_not_of_rttest(text: str, write) -> None:
    refused(write(text), "rttest")


def test_a_clock_that_was_set(write) -> None:
    generator = np.random.default_rng(1)
    latencies = generator.integers(10_000, 90_000, 2000)
    latencies[1200:] += 3_600_000_000_000
    error = refused(write(rttest(latencies.tolist())))
    assert "steps by 3.6e+03 s at about sample 1,1" in error.message
    assert "CLOCK_MONOTONIC" in (error.remedy or "")


def test_a_stall_is_no_step(write) -> None:
    latencies = np.full(2000, 50_000)
    latencies[500:510] = 900_000_000
    assert read(write(rttest(latencies.tolist()))).series[0].n == 2000


# The 2020 timer tool.


def hist2020(counts: dict[int, int]) -> str:
    return "latency,count\n" + "".join(f"{i},{counts.get(i, 0)}\n" for i in range(1000))


def test_the_2020_histogram(write) -> None:
    found = read(write(hist2020({3: 100, 700: 1}), "hist.csv"))
    (series,) = found.series
    assert series.n == 101 and series.histogram is not None
    assert series.histogram.quantile(0.5) == (3_000, 4_000)
    assert {doubt.type for doubt in found.doubts} == {"absolute_values", "histogram_overflow"}


def test_what_the_2020_histogram_drops_is_looked_for_beside_it(write) -> None:
    write("latency,index\n1078345,77\n990000,5\n", "spin_topn.csv")
    (series,) = read(write(hist2020({3: 100}), "spin_hist.csv")).series
    assert series.histogram is not None
    assert (series.n, series.histogram.over, series.histogram.below_ns) == (101, 1, 1_078_346)


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
    ],
)
def test_a_2020_file_that_is_damaged(text: str, write) -> None:
    refused(write(text))


# The 2014 timer tests.


def log2014(bins: dict[int, int], loops: int, least: int, most: int) -> str:
    rows = "".join(f"{i:06} \t{bins.get(i, 0):06}\n" for i in range(most + 1))
    early = "".join(f"#-{i:06} \t{bins.get(-i, 0):06}\n" for i in range(1, -least + 1))
    return (
        "# Plot data for GnuPlot\n"
        f"# Timeout: 1000us, LoopLength: {loops}\n"
        f"# Measured:\t MIN: {least}us \tAVG: 44us \tMAX: {most}us\n"
        "# Reported:\t MIN: 30us \tAVG: 40us \tMAX: 99us\n"
        "# Difference:\t MIN: -9us \tAVG: 4us \tMAX: 7us\n"
        f"{rows}{'# negative Values following' + chr(10) + early if least < 0 else ''}\n"
    )


def test_the_2014_log(write) -> None:
    found = read(write(log2014({0: 5, 40: 90, 120: 2, -3: 2}, 100, -3, 120)))
    (series,) = found.series
    assert found.quantity == "measured latency of a one-shot timer"
    assert found.period_ns == 1_000_000
    assert series.n == 100 and series.histogram is not None
    assert series.histogram.lower_ns.tolist() == [-4_000, -1_000, 0, 40_000, 120_000]
    assert series.histogram.counts.tolist() == [2, 1, 5, 90, 2]  # one early by less than a microsecond


def test_a_2014_log_with_its_gnuplot_script(write) -> None:
    text = 'set logscale y\nplot "-" using 1:2\n' + log2014({40: 90}, 90, 40, 40) + "\nend\n"
    assert read(write(text)).series[0].n == 90


@pytest.mark.parametrize(
    "text",
    [
        log2014({40: 90}, 80, 40, 40),
        log2014({40: 90}, 95, 40, 40),
        log2014({40: 90}, 90, 40, 40).replace("MAX: 40us", "MAX: 40000us"),
        log2014({40: 90}, 90, 40, 40) + log2014({40: 90}, 90, 40, 40),
        log2014({}, 0, 0, 40),
    ],
)
def test_a_2014_log_that_does_not_add_up(text: str, write) -> None:
    refused(write(text))


# performance_test.

CSV = """\
Experiment id: 0b1c
Performance Test Version: 2.0.0
Publishing rate: 1000


---EXPERIMENT-START---
T_experiment,\tT_loop,\treceived,\tsent,\tlost,\trelative_loss,\tdata_received,\tlatency_min (ms),\
\tlatency_max (ms),\tlatency_mean (ms),\tlatency_variance (ms),\t
1.000000,\t\t1.000000,\t\t1000,\t\t1000,\t\t0,\t\t0.00,\t\t1024,\t\t0.05,\t\t0.9,\t\t0.1,\t\t1e-05,\t\t
2.000000,\t\t1.000000,\t\t998,\t\t1000,\t\t2,\t\t0.00,\t\t1024,\t\t0.05,\t\t1.7,\t\t0.1,\t\t1e-05,\t\t
Maximum runtime reached. Exiting.
"""


def test_performance_test_csv(write) -> None:
    found = read(write(CSV))
    (series,) = found.series
    assert (found.tool, found.version) == ("performance_test", "2.0.0")
    assert series.intervals is not None and series.n == 2000
    assert series.intervals.maxima_ns.tolist() == [900_000, 1_700_000]
    assert series.intervals.misses(1_000_000) == Counted(2000, 3, 1000, 2)
    assert series.intervals.misses(2_000_000) == Counted(2000, 2, 2, 2)


def test_performance_test_json(write) -> None:
    results = [
        {"num_samples_received": 10, "num_samples_lost": 1, "latency_min": 1e-5, "latency_max": 2.5e-3},
        {"num_samples_received": 0, "num_samples_lost": 0, "latency_min": 1e9, "latency_max": -1e9},
    ]
    (series,) = read(write(json.dumps({"perf_test_version": "2.1", "analysis_results": results}))).series
    assert series.intervals is not None
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
        ("2.000000,\t\t1.000000,\t\t998,", "2.000000,"),
    ],
)
def test_performance_test_that_is_damaged(old: str, new: str, write) -> None:
    assert old in CSV
    refused(write(CSV.replace(old, new)))


# All.


@pytest.mark.parametrize("text", ["", "hello\n", "{}", "[1]", '{"a": 1}', "k,release_ns\n0,1\n"])
def test_a_file_of_no_known_tool(text: str, write) -> None:
    refused(write(text))


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"\x89RTM\xff\xfe")
    assert refused(path).message == "is not text"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "none").message


def test_an_unknown_format(write) -> None:
    assert refused(write("x"), "excel").field == "format"


def test_the_wrong_format(write) -> None:
    refused(write(rttest([1, 2])), "cyclictest-json")
    refused(write(rttest([1, 2])), "timer2020-series")
