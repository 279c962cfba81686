"""Published values: tables that ship, what of a campaign goes with a cell, and what stands beside what."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rtmeter.campaign.file import read_campaign
from rtmeter.campaign.published import tables
from rtmeter.cli import invoke
from rtmeter.errors import RtmeterError
from rtmeter.judge import published
from rtmeter.results import store
from synthetic import Made, write_cell, write_failed_cell

CAMPAIGNS = Path(__file__).parents[2] / "campaigns"
CAMPAIGN = """\
name: timers
published:
  table: ros1_timer_2014
  conditions:
    - {condition: preempt_rt, was: 3.4.0-rt17, where: {kernel: 3.4.0-rt17}}
    - {condition: releases, was: "2,000,000", least: 2000000}
    - {condition: memory, was: locked}
    - {condition: load, was: 80 %, where: {cpu_load_percent: 80}}
  notes: [early is negative]
  compare:
    - cells: adapter == ros1
      rows:
        cpu_load_percent: {0: load == idle, 80: load == cpu80}
        timeout_ms: {1: timeout == 1ms, 10: timeout == 10ms}
        scheduling: {other: scheduling == other, rr: "scheduling == rr:95"}
      kernel: {column: kernel, preempt_rt: 3.4.0-rt17, ordinary: 3.4.0}
      tables: [kernel, cpu_load_percent]
      values: {min_us: measured_after min, avg_us: measured_after mean, max_us: measured_after max}
      also: [measured]
cells:
  - {measurement: timer, mode: one_shot, timeout: [1ms, 500us], adapter: [ros1, posix], load: idle}
"""


def campaign_of(tmp_path: Path, text: str = CAMPAIGN) -> dict[str, list[dict[str, Any]] | None]:
    path = tmp_path / "timers.yaml"
    path.write_text(text)
    return {cell.id: cell.published for cell in read_campaign(path).cells}


def refused(tmp_path: Path, old: str, new: str) -> str:
    assert old in CAMPAIGN
    with pytest.raises(RtmeterError) as caught:
        campaign_of(tmp_path, CAMPAIGN.replace(old, new))
    assert caught.value.remedy
    return str(caught.value)


@pytest.mark.parametrize("name", tables.names())
def test_a_table_ships_with_its_source(name: str) -> None:
    table = tables.table(name)
    assert table.about and len(table.source) > 20 and len(table.rows) > 5
    assert all(set(row) == set(table.columns) and None not in row.values() for row in table.rows)


def test_the_published_values_are_those_of_the_sources() -> None:
    rows = tables.table("ros1_timer_2014").rows
    assert len(rows) == 24 and sum(int(row["max_us"]) for row in rows) == 67_960
    trips = tables.table("ros2_roundtrip_2018").rows
    assert len(trips) == 45 and sum(int(row["lost"]) for row in trips) == 4_536


def test_a_cell_keeps_the_rows_that_it_is_to_be_set_beside(tmp_path: Path) -> None:
    cells = campaign_of(tmp_path)
    [match] = cells["timer-ros1-timeout-1ms"] or []
    assert match["where"] == {"cpu_load_percent": ["0"], "timeout_ms": ["1"], "scheduling": ["other"]}
    assert match["values"]["max_us"] == "measured_after max" and match["notes"] == ["early is negative"]
    assert cells["timer-ros1-timeout-500us"] == []  # a row that was not published
    assert cells["timer-posix-timeout-1ms"] == []  # a cell that is not to be compared
    assert json.loads(json.dumps(match)) == match


def test_a_campaign_without_published_values_keeps_none(tmp_path: Path) -> None:
    text = "cells:\n  - {measurement: wakeup, adapter: posix}\n"
    assert campaign_of(tmp_path, text) == {"wakeup-posix": None}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "ros1_timer_2014",
            "ros1_timer_2015",
            "timers.yaml:3: published.table = 'ros1_timer_2015': is no",
        ),
        ("condition: memory", "condition: memroy", "timers.yaml:7: published.conditions.2.condition"),
        ("{kernel: 3.4.0-rt17}}", "{kernel: 3.5.0}}", "is no value of this column of ros1_timer_2014"),
        ("80: load == cpu80", "70: load == cpu80", "published.compare.0.rows.cpu_load_percent = '70'"),
        ("max_us:", "max_use:", "did you mean max_us?"),
        ("measured_after max", "measured_after most", "compare.0.values.max_us = 'measured_after most'"),
        ("measured_after max", "mesured max", "is no quantity"),
        ("timeout == 1ms", "timeout == 1m", "timers.yaml:14: published.compare.0.rows.timeout_ms.1"),
        (
            "also: [measured]",
            "allso: [measured]",
            "published.compare.0 = 'allso': is not known; did you mean also?",
        ),
        ("preempt_rt: 3.4.0-rt17, o", "preempt: 3.4.0-rt17, o", "published.compare.0.kernel"),
        ("  notes: [early is negative]\n", "  notes: early\n", "published.notes"),
    ],
)
def test_a_mistake_is_named_with_its_place(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert said in refused(tmp_path, old, new)


def made(tmp_path: Path, name: str, **changes: Any) -> Made:
    """A one-shot cell of the campaign whose shots are 5, 6, 7, … us late."""
    [match] = campaign_of(tmp_path)["timer-ros1-timeout-1ms"] or []
    changes = {"published": [match], "adapter": "ros1", **changes}

    def delays(k: int) -> tuple[int, ...]:
        return (5_000 + 1_000 * (k % 3), 0, 0)

    kind: dict[str, Any] = {"measurement": "timer", "mode": "one_shot", "warm_up": 0}
    return Made(id=name, samples=30, delays=delays, changes=changes, **kind)


RT = {"kernel": "6.1.0-rt", "kernel_version": "#1 SMP PREEMPT_RT", "cpu_model": "x", "cpus_online": 2}
ORDINARY = RT | {"kernel": "6.1.0", "kernel_version": "#1 SMP PREEMPT_DYNAMIC"}


def test_published_and_measured_stand_side_by_side_for_each_kernel(tmp_path: Path) -> None:
    found = {}
    for name, machine in (("rt", RT), ("ordinary", ORDINARY)):
        folder = write_cell(tmp_path / name, made(tmp_path, name, machine=machine))
        found[name] = store.read_cell(folder)
    [beside] = published.beside(found.items())
    ordinary, rt = beside.parts
    assert ordinary.labels == {"kernel": "3.4.0", "cpu_load_percent": "0"}
    assert rt.labels == {"kernel": "3.4.0-rt17", "cpu_load_percent": "0"}
    [entry] = rt.entries
    assert entry.labels == {"timeout_ms": "1", "scheduling": "other"}
    there, after, measured = entry.lines
    assert there.values == {"min_us": "-139", "avg_us": "84", "max_us": "12017"} and there.cell is None
    assert (after.cell, after.quantity, after.view, after.n) == ("rt", "measured_after", "as_served", 30)
    assert after.values["max_us"] == published.MeasuredTime(7_000 - 300, "max")
    assert measured.values["min_us"] == published.MeasuredTime(5_000, "min")
    assert after.unmet == ("releases",)
    [unmet] = beside.unmet
    assert (unmet.condition, unmet.here, unmet.cells) == ("releases", "30", ("rt", "ordinary"))
    assert beside.held == (("memory", "locked"), ("preempt_rt", "3.4.0-rt17"))


def test_a_kernel_that_is_not_known_is_set_beside_both(tmp_path: Path) -> None:
    folder = write_cell(tmp_path / "cell", made(tmp_path, "cell", machine={}))
    [beside] = published.beside([("cell", store.read_cell(folder))])
    [part] = beside.parts
    assert part.labels == {"cpu_load_percent": "0"}
    assert [line.who for line in part.entries[0].lines if not line.cell] == ["3.4.0", "3.4.0-rt17"]
    assert len([line for line in part.entries[0].lines if line.cell is None]) == 2
    assert ("preempt_rt", False) in [(one.condition, one.known) for one in beside.unmet]


def test_a_cell_that_failed_stands_there_with_its_reason(tmp_path: Path) -> None:
    error = {"field": "adapter", "value": "ros1", "message": "is not built here", "remedy": "install it"}
    folder = write_failed_cell(tmp_path / "cell", made(tmp_path, "cell"), error)
    [beside] = published.beside([("cell", store.read_cell(folder))])
    last = beside.parts[0].entries[0].lines[-1]
    assert (last.cell, last.state, last.values) == ("cell", "failed: adapter ros1: is not built here", {})


def test_the_command_shows_tables_and_conditions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_cell(tmp_path / "cell", made(tmp_path, "cell", machine=RT))
    assert invoke(["published", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "kernel 3.4.0-rt17, cpu load (%) 0" in shown and "12017" in shown and "did not hold here" in shown
    assert invoke(["published", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["published"][0]["table"] == "ros1_timer_2014"
    assert invoke(["published"]) == 0
    assert "hsgwa/ros2_timer_latency_measurement" in capsys.readouterr().out


def test_cells_without_published_values_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_cell(tmp_path / "cell", Made())
    assert invoke(["published", str(folder)]) == 1
    assert "has no published values" in capsys.readouterr().err


def test_a_table_is_plain_csv_below_its_comments() -> None:
    for name in tables.names():
        path = Path(tables.__file__).parent / "data" / f"{name}.csv"
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        assert {len(row) for row in csv.reader(lines)} == {len(tables.table(name).columns)}


@pytest.mark.parametrize("name", ["ros2-roundtrip-2018", "ros2-timer-2020"])
def test_over_ros_2_each_cell_is_there_for_each_rmw(name: str) -> None:
    cells = [c for c in read_campaign(CAMPAIGNS / f"{name}.yaml").cells if c.adapter in ("rcl", "ros2")]
    over = Counter(cell.config["options"].get("rmw") for cell in cells)
    assert over == dict.fromkeys(("rmw_fastrtps_cpp", "rmw_cyclonedds_cpp"), len(cells) / 2)


def test_the_cells_of_2018_are_set_up_as_the_rows_that_they_stand_beside() -> None:
    rows = tables.table("ros2_roundtrip_2018").rows
    beside: set[str] = set()
    for cell in read_campaign(CAMPAIGNS / "ros2-roundtrip-2018.yaml").cells:
        for match in cell.published or ():
            [name] = match["where"]["table"]
            beside.add(name)
            config, asked = cell.config, cell.conditions
            s = config["samples"] * config["period_ns"] // 1_000_000_000
            here = {
                "under_load": "yes" if asked["load"]["preset"] == "erle_pc" else "no",
                "rt_settings": "yes" if config["scheduling"] == {"policy": "fifo", "priority": 80} else "no",
                "traffic_mbps": str(asked.get("traffic", {}).get("rate", 0) // 1_000_000),
                "payload_bytes": str(config["payload_bytes"]),
                "ksoftirqd_priority_set": "yes"
                if "ksoftirqd_priority" in asked.get("settings", {})
                else "no",
                "duration_s": str(s),
            }
            for row in (row for row in rows if row["table"] == name):
                assert {column: row[column] for column in here} == here, cell.id
            assert (config["deadline_ns"], config["in_flight"]) == (10_000_000, "one")
            assert (config["loss_timeout_ns"], config["overrun"]) == (500_000_000, "skip")
            assert (config["reliability"], config["history_depth"]) == ("best_effort", 1)
            tlsf = "tlsf_or_std" if cell.adapter == "ros2" and here["rt_settings"] == "yes" else None
            assert config["options"].get("allocator") == tlsf, cell.id
    assert beside == {row["table"] for row in rows}


def test_every_published_row_has_a_cell_of_its_campaign() -> None:
    """Measured on one kernel or the other."""
    for path in sorted(CAMPAIGNS.glob("*-20[0-9][0-9].yaml")):
        matches = [match for cell in read_campaign(path).cells for match in cell.published or ()]
        table = tables.table(matches[0]["table"])
        left = [
            row
            for row in table.rows
            if not any(all(row[c] in values for c, values in m["where"].items()) for m in matches)
        ]
        assert left == [], path.name
