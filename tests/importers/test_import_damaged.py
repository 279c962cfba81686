"""Files that are cut, scrambled, of another tool or of a newer one, for every format."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from imported import DATA, refused

from rtmeter.errors import RtmeterError
from rtmeter.importers import FORMATS, read
from tool_files import CSV, TIMERLAT, cyclictest, hist2020, jitterdebugger, log2014, rttest

PERFORMANCE = {
    "perf_test_version": "2.1",
    "analysis_results": [
        {"num_samples_received": 10, "num_samples_lost": 1, "latency_min": 1e-5, "latency_max": 2.5e-3}
    ],
}
OSNOISE = (
    "# RTLA osnoise histogram\n# Time unit is nanoseconds (ns)\n# Duration:   0 00:01:00\n"
    "Index   CPU-000\n500          4\n1000         2\nover:         0 \ncount:        6 \n"
    "min:        507 \nmax:       1400 \n"
)

FILES = {
    "cyclictest-json": [json.dumps(cyclictest(), indent=2), (DATA / "oslat.json").read_text()],
    "cyclictest-histogram": [(DATA / "cyclictest.hist").read_text()],
    "jitterdebugger": [jitterdebugger()],
    "rtla": [TIMERLAT, OSNOISE],
    "rttest": [rttest([50, -3, 70_000])],
    "timer2020-histogram": [hist2020({3: 100})],
    "timer2020-series": ["idx,latency\n0,5100\n1,4900\n2,120000\n"],
    "timer2014": [log2014({0: 5, 40: 90, 120: 2, -3: 2}, 100, -3, 120)],
    "performance-test-csv": [CSV],
    "performance-test-json": [json.dumps(PERFORMANCE)],
}
TEXTS = [(form, text) for form, texts in FILES.items() for text in texts]
IN_ORDER = ("rttest", "timer2020-series", "performance-test-csv")
"""Formats without a total: cut at the end of a line they are whole, only shorter."""
WITHOUT_TOTAL = (*IN_ORDER, "timer2020-histogram", "performance-test-json")


def test_every_format_has_an_example() -> None:
    assert set(FILES) == set(FORMATS) - {"timer2020-largest"}


@pytest.mark.parametrize(("form", "text"), TEXTS)
def test_a_file_is_told_by_what_is_in_it(form: str, text: str, write) -> None:
    path = write(text)
    assert [series.n for series in read(path).series] == [series.n for series in read(path, form).series]


@pytest.mark.parametrize(("form", "text"), TEXTS)
def test_the_format_of_another_tool_is_refused(form: str, text: str, write) -> None:
    path = write(text)
    for other in set(FORMATS) - {form}:
        refused(path, other)


@pytest.mark.parametrize(("form", "text"), TEXTS)
def test_a_file_that_is_cut_anywhere_is_refused(form: str, text: str, write) -> None:
    whole = [series.n for series in read(write(text)).series]
    for end in np.linspace(0, len(text.rstrip()) - 1, 60, dtype=int):
        try:
            found = read(write(text[:end]), form)
        except RtmeterError:
            continue
        shorter = [series.n for series in found.series]
        assert shorter == whole or (form in IN_ORDER and text[end - 1] == "\n"), text[:end][-200:]


@pytest.mark.parametrize(("form", "text"), TEXTS)
def test_scrambled_files_end_in_an_error_or_in_counts(form: str, text: str, tmp_path: Path) -> None:
    """Other counts than there were only where no total betrays them."""
    generator = np.random.default_rng(len(text))
    path = tmp_path / "file"
    path.write_text(text)
    whole = [series.n for series in read(path, form).series]
    refusals = 0
    for _ in range(60):
        scrambled = bytearray(text.encode())
        for at in generator.integers(0, len(scrambled), 3):
            scrambled[at] = generator.choice(list(b'0123456789-.,:{}[]"#\n\t eNa\xff\x00'))
        path.write_bytes(scrambled)
        try:
            found = read(path, form)
        except RtmeterError as error:
            refusals += 1
            assert error.where is not None and error.where.startswith(str(path))
        else:
            assert [series.n for series in found.series] == whole or form in WITHOUT_TOTAL
    assert refusals > 0


@pytest.mark.parametrize("form", [None, *FORMATS])
@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 4096, bytes(range(256)) * 64, b"\x28\xb5\x2f\xfd\x04\x00" * 9, b"{" * 50_000]
)
def test_binary_junk_is_refused(content: bytes, form: str | None, tmp_path: Path) -> None:
    path = tmp_path / "junk"
    path.write_bytes(content)
    refused(path, form)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (json.dumps(cyclictest(file_version=2)), "file_version"),
        (jitterdebugger(version=4), "version"),
        (json.dumps(cyclictest(**{"cmdline:": "pmqtest -h 100 --json=cyclictest.json"})), "cmdline"),
        (TIMERLAT.replace("microseconds (us)", "picoseconds (ps)"), "histogram"),
        (CSV.replace("latency_max (ms)", "latency_max (us)"), "latency_max (us)"),
    ],
)
def test_newer_versions_and_other_tools_of_one_suite_are_refused(text: str, field: str, write) -> None:
    assert refused(write(text)).field == field


HIST = (DATA / "cyclictest.hist").read_text()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TIMERLAT.replace("4             0       303", "4             0"), 7),
        (HIST[: HIST.index("000001 ")] + HIST[HIST.index("000000 ") :], 4),
        (log2014({0: 5, 40: 90}, 95, 0, 40).replace("000003 \t", "000002 \t"), 9),
        (rttest([50, "x", 70]), 3),
        ("idx,latency\n0,5100\n1,x\n", 3),
        (CSV.replace("998,", "some,"), 9),
        (CSV.rstrip(), 10),
    ],
)
def test_the_line_at_fault_is_named(text: str, line: int, write) -> None:
    path = write(text)
    assert refused(path).where == f"{path}:{line}"


@pytest.mark.parametrize(
    "text",
    [
        '{"thread":' * 100_000,
        "[" * 100_000,
        '{"thread": ' + "9" * 5000 + "}",
        json.dumps(cyclictest(cycles=10**30)),
        json.dumps(cyclictest(histogram={"10": 10**30}, cycles=10**30)),
        json.dumps(cyclictest(histogram={"10": 5, str(10**17): 3}, max=10**17)),
        json.dumps(cyclictest(histogram=[1, 2])),
        json.dumps(cyclictest(thread=[1, 2])),
        json.dumps(cyclictest(thread={"0": None})),
        jitterdebugger(sysinfo=None),
        jitterdebugger(sysinfo={"resolution_in_ns": -1}),
        json.dumps({"thread": 3}),
        json.dumps({"analysis_results": [None]}),
    ],
)
def test_numbers_and_nesting_of_no_tool(text: str, write) -> None:
    for form in (None, "cyclictest-json", "jitterdebugger", "performance-test-json"):
        refused(write(text), form)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "directory" in refused(tmp_path).message
