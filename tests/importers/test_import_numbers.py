"""Numbers that no tool writes, or that no cell can have, are refused by their field."""

from __future__ import annotations

import json

import pytest
from imported import DATA, refused

from rtmeter.importers import read
from tool_files import CSV, RTTEST, cyclictest, jitterdebugger, log2014, rttest

HIST = (DATA / "cyclictest.hist").read_text()
LOG = log2014({0: 5, 40: 90, 120: 2, -3: 3}, 100, -3, 120)


def of_cyclictest(**changes: object) -> str:
    return json.dumps(cyclictest(**changes))


def interval(given: str) -> str:
    return of_cyclictest().replace("-i 1000", given)


def oslat(**thread: object) -> str:
    document = json.loads((DATA / "oslat.json").read_text())
    return json.dumps(document | {"thread": {"0": thread}})


def performance(rate: object) -> str:
    row = {"num_samples_received": 2**47, "num_samples_lost": 0, "latency_min": 1e-5, "latency_max": 2.5e-3}
    return json.dumps({"Publishing rate": rate, "analysis_results": [row]})


def again(text: str) -> str:
    """The last row once more."""
    rows = text.splitlines(keepends=True)
    return "".join([*rows[:-1], rows[-2], rows[-1]])


PERIODS = [
    (f"{RTTEST}\n0 9000 5 0 0\n1 8000 5 0 0\n", "step of timestamp"),
    (rttest([5, 6], 0), "step of timestamp"),
    (interval("-i 99999999999999999999"), "--interval"),
    (interval("-i 99999999999999"), "--interval"),
    (LOG.replace("1000us,", "99999999999999999999us,"), "Timeout"),
    *((performance(rate), "Publishing rate") for rate in (1e-9, 1e-300, -5, 1e30)),
    *((CSV.replace("rate: 1000", f"rate: {rate}"), "Publishing rate") for rate in ("1e-300", "-5", "1e30")),
]
NUMBERS = [
    (HIST.replace("# Max Latencies: 02821 02706", "# Max Latencies: 02821"), "Max Latencies"),
    (HIST.replace("Overflows: 00003 00003", "Overflows: 00003"), "Histogram Overflows"),
    (HIST.replace("# Total: ", "# Total: 7\n# "), "Total"),
    (oslat(histogram={}, max=5), "histogram of thread 0"),
    (LOG.replace("#-000003", f"#-{'9' * 20}").replace("MIN: -3us", f"MIN: -{'9' * 20}us"), "Measured MIN"),
    (LOG.replace("#-000003", f"#-{'9' * 20}"), "bin"),
    (LOG.replace("LoopLength: 100", f"LoopLength: {'9' * 5000}"), "LoopLength"),
    (of_cyclictest(cycles=2**48 + 1), "cycles of thread 0"),
    (of_cyclictest(histogram={"10": 2**47, "12": 2**47 + 1}), "values of thread 0"),
    (performance(1000).replace(": 0,", f": {2**47 + 1},"), "received and lost"),
    *((rttest([5, one, 7]), "latency") for one in ("5.5", "0x10", "0X10", "1_000")),
    (of_cyclictest(resolution_in_ns=5), "resolution_in_ns"),
    (of_cyclictest(resolution_in_ns=True), "resolution_in_ns"),
    (of_cyclictest(file_version=True), "file_version"),
    (jitterdebugger(version=True), "version"),
    (again(CSV), "T_experiment"),
]


@pytest.mark.parametrize(("text", "field"), PERIODS + NUMBERS)
def test_a_number_that_cannot_be_is_refused(text: str, field: str, write) -> None:
    assert refused(write(text)).field == field


def test_as_many_values_as_a_cell_can_have_are_taken(write) -> None:
    assert read(write(of_cyclictest(histogram={"10": 2**48 - 1}, cycles=2**48))).series[0].n == 2**48


@pytest.mark.parametrize("given", ["--inter=200", "--inter 200", "-qi200", "--interval=300 --inte=200"])
def test_the_beginning_of_an_options_name_is_that_option(given: str, write) -> None:
    assert read(write(interval(given))).period_ns == 200_000
