"""What was sampled of a target's machine is told by the clock that its releases have."""

from __future__ import annotations

from pathlib import Path

from rtmeter.conditions.monitor import FILE
from rtmeter.conditions.monitor_table import MonitorTable
from rtmeter.host import checked
from rtmeter.measure.source.their_clock import by_the_clock_of
from stored import record

THERE = record(clock={"id": "CLOCK_MONOTONIC", "anchors": {"boottime_ns": 500, "monotonic_ns": 200}})


def sampled(folder: Path) -> MonitorTable:
    table = MonitorTable(folder / FILE)
    table.add({"at_ns": 1000, "cpu0_busy": 0.5})
    return table


def test_the_samples_are_brought_to_their_clock(tmp_path: Path) -> None:
    sampled(tmp_path).close()
    by_the_clock_of(THERE, tmp_path / FILE, 50)
    assert checked.read(tmp_path / FILE).to_pylist() == [{"at_ns": 750, "cpu0_busy": 0.5}]


def test_a_file_that_was_not_finished_stays_as_it_is(tmp_path: Path) -> None:
    table = sampled(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    by_the_clock_of(THERE, tmp_path / FILE, 50)
    assert (tmp_path / FILE).read_bytes() == before
    table.close()
