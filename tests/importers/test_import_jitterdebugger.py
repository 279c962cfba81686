"""jitterdebugger's files, as its source writes them."""

from __future__ import annotations

import json

from imported import refused

from rtmeter.importers import read
from rtmeter.statistics.histogram import Counted
from tool_files import jitterdebugger


def test_jitterdebugger(write) -> None:
    found = read(write(jitterdebugger()))
    (series,) = found.series
    assert (found.tool, found.facts["file_version"], found.verified) == ("jitterdebugger", "3", False)
    assert series.n == 13
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
