"""What the tools of rt-tests write that are installed here, from their run to a verdict.

One thread each: of several the last ones may still run when cyclictest writes its files.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from imported import refused

from rtmeter.cli import invoke
from rtmeter.importers import read
from rtmeter.statistics.counted_data import Histogram
from stored import cell_json


def run(*command: object) -> None:
    """Runs a tool; the test is skipped if it is not installed."""
    tool = shutil.which(str(command[0]))
    if tool is None:
        pytest.skip(f"{command[0]} (rt-tests) is not installed")
    if os.geteuid():
        pytest.skip(f"{command[0]} refuses who has no right to real-time priorities")
    subprocess.run([tool, *map(str, command[1:])], check=True, timeout=60, capture_output=True)


def histograms(file: Path) -> list[Histogram]:
    found = [series.histogram for series in read(file).series]
    assert None not in found
    return [histogram for histogram in found if histogram is not None]


def stated(document: Path) -> dict[str, int]:
    """What cyclictest says of its thread."""
    thread = json.loads(document.read_text())["thread"]["0"]
    assert isinstance(thread, dict)
    return thread


def test_both_files_of_one_run_of_cyclictest_say_the_same(tmp_path: Path) -> None:
    document, text = tmp_path / "run.json", tmp_path / "run.hist"
    tool = ["cyclictest", "-q", "-t1", "-mi1000", "-l100", "-h", "50000", "--policy=other"]
    run(*tool, f"--json={document}", f"--histfile={text}")
    (ours,), (theirs,) = histograms(document), histograms(text)
    assert (ours.n, ours.max_ns) == (theirs.n, theirs.max_ns) == (100, stated(document)["max"] * 1000)
    assert np.array_equal(ours.lower_ns, theirs.lower_ns)
    assert np.array_equal(ours.counts, theirs.counts)
    assert read(document).period_ns == 1_000_000


@pytest.mark.parametrize("options", [["-h", "20"], ["-H", "20"], ["-N", "-h", "200000"]])
def test_overflows_sums_and_nanoseconds_of_cyclictest(options: list[str], tmp_path: Path) -> None:
    document = tmp_path / "run.json"
    run("cyclictest", "-q", "-t1", "-i1000", "-l50", *options, "--policy=other", f"--json={document}")
    unit_ns = 1 if "-N" in options else 1000
    (histogram,) = histograms(document)
    assert (histogram.width_ns, histogram.max_ns) == (unit_ns, stated(document)["max"] * unit_ns)
    assert histogram.n == stated(document)["cycles"] == 50


def test_cyclictest_from_its_run_to_a_verdict(tmp_path: Path) -> None:
    document = tmp_path / "run.json"
    run("cyclictest", "-q", "-t1", "-i1000", "-l1000", "-h1000", "--policy=other", f"--json={document}")
    late = 10 * 10**9  # no wake-up is that late, but a busy machine may skip releases
    judged = invoke(["import", str(document), "--deadline", "10s", "--out", str(tmp_path / "out")])
    assert judged in (0, 2)
    cell = cell_json(tmp_path / "out" / "run")
    assert (cell["verdict"]["outcome"] == "pass") == (judged == 0) == (cell["verdict"]["skipped"] == 0)
    assert cell["summary"]["quantities"]["latency"]["per_release"]["max_ns"] < late
    assert cell["imported"]["version"] and cell["imported"]["verified"]
    assert cell["machine"]["kernel"]


def test_without_a_histogram_cyclictest_judges_nothing(tmp_path: Path) -> None:
    document = tmp_path / "run.json"
    run("cyclictest", "-q", "-t1", "-i1000", "-l10", "--policy=other", f"--json={document}")
    assert "-h" in (refused(document).remedy or "")


def test_oslat(tmp_path: Path) -> None:
    document = tmp_path / "run.json"
    run("oslat", "--cpu-list", "0", "--duration", "1s", f"--json={document}")
    (histogram,) = histograms(document)
    found = json.loads(document.read_text())["thread"]["0"]
    assert histogram.n == sum(found["histogram"].values())
    assert histogram.below_ns == found["max"] * 1000
    assert read(document).period_ns is None


def test_a_file_of_another_tool_of_rt_tests(tmp_path: Path) -> None:
    document = tmp_path / "cyclictest.json"
    run("ptsematest", "-l", "10", "-q", f"--json={document}")
    assert refused(document).field == "cmdline"
