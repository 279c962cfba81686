"""jitterdebugger's files: those in data/ were written by its version 0.3.1, in us and with -N."""

from __future__ import annotations

import json

import pytest
from imported import DATA, refused

from rtmeter.importers import read
from rtmeter.statistics.counted_data import PossibleMisses
from tool_files import jitterdebugger


@pytest.mark.parametrize(("name", "unit_ns"), [("jitterdebugger", 1000), ("jitterdebugger_ns", 1)])
def test_what_jitterdebugger_wrote(name: str, unit_ns: int) -> None:
    stated = json.loads((DATA / f"{name}.json").read_text())
    found = read(DATA / f"{name}.json")
    assert (found.unit, found.machine["hostname"]) == ({1000: "us", 1: "ns"}[unit_ns], "target")
    for series, cpu in zip(found.series, stated["cpu"].values(), strict=True):
        assert series.histogram is not None
        assert series.n == cpu["count"]
        assert series.histogram.max_ns == cpu["max"] * unit_ns
        assert series.histogram.over == cpu["count"] - sum(cpu["histogram"].values())


def test_jitterdebugger(write) -> None:
    found = read(write(jitterdebugger()))
    (series,) = found.series
    assert (found.tool, found.facts["file_version"], found.verified) == ("jitterdebugger", "3", True)
    assert series.n == 13
    assert series.histogram is not None
    assert (series.histogram.over, series.histogram.over_from_ns) == (1, 1_000_000)
    assert series.histogram.misses(900_000) == PossibleMisses(13, 1, 1)


def test_jitterdebuggers_bins_end_at_a_millisecond_whatever_their_width(write) -> None:
    text = jitterdebugger(sysinfo={"resolution_in_ns": 1}, max=2_000_000)
    found = read(write(text)).series[0].histogram
    assert found is not None and (found.width_ns, found.over, found.over_from_ns) == (1, 1, 1_000_000)


def test_jitterdebugger_before_it_had_versions(write) -> None:
    document = json.loads(jitterdebugger())
    del document["version"], document["sysinfo"]
    found = read(write(json.dumps(document)))
    assert (found.series[0].n, found.unit) == (13, None)


def test_a_newer_jitterdebugger(write) -> None:
    assert refused(write(jitterdebugger(version=4))).field == "version"


def test_a_negative_latency_that_wrapped_around(write) -> None:
    """Early wake-ups are taken as unsigned: 2^64 less a little."""
    error = refused(write(jitterdebugger(max=2**64 - 3)))
    assert "longer than a year" in error.message and "wrapped around" in (error.remedy or "")
