"""The campaigns of the source documents, run at tiny counts on the real middleware: every cell is measured or
skipped with a reason, and stands beside the published values with the conditions that did not hold."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import ros2_runs

from front import rtmeter
from rtmeter import report
from rtmeter.campaign import published
from rtmeter.campaign.file import read_campaign
from rtmeter.cli import invoke
from rtmeter.measure.cyclictest_tool import CYCLICTEST
from rtmeter.measure.probe.probes import find_probes
from rtmeter.results import store
from stored import cell_json

CAMPAIGNS = Path(__file__).parents[2] / "campaigns"
SHORT = "not duration >= 1h and not block == day"
"""All but what takes too long however few the releases."""

FEW = {
    "ros1-timer-2014": "load == idle and scheduling == other and timeout == 1ms and block in (timer, floor)",
    "ros2-roundtrip-2018": "adapter in (fastdds, ros2) and variant == Test4.A",
    "orocos-ros2-cycle-2021": "load == idle",
    "ros2-timer-2020": "block in (cyclictest, wakeup, floor) and not variant == children_rr",
}
SCALE = {
    "ros1-timer-2014": 1e-5,
    "ros2-roundtrip-2018": 5e-4,
    "orocos-ros2-cycle-2021": 5e-5,
    "ros2-timer-2020": 3e-5,
}
NOT_HERE = {"hardware", "releases"}
"""What no machine that runs this test gives a source: its processor, and the number of releases."""

Cells = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], tuple[Path, Cells]]:
    """Runs those of a campaign's cells that an expression chooses, once; returns the results' folder, and the
    cells. Other tasks stay where they are: this machine has other work."""

    @cache
    def measured(name: str, only: str) -> tuple[Path, Cells]:
        out = tmp_path_factory.mktemp(name)
        campaign = out / f"{name}.yaml"
        text = (CAMPAIGNS / campaign.name).read_text(encoding="utf-8")
        campaign.write_text(text.replace("stray_tasks: move", "stray_tasks: stay"), encoding="utf-8")
        done = rtmeter("run", campaign, "--scale", SCALE[name], "--only", only, "--out", out)
        cells = {folder.name: cell_json(folder) for folder in store.cell_folders(out)}
        planned = read_campaign(campaign, scale=SCALE[name], only=only).cells
        assert list(cells) == [cell.id for cell in planned], done.err
        return out, cells

    return measured


def can_be_measured(adapter: str) -> bool:
    """By what is built: a program of an adapter's name, as ROS 2's fastdds, measures nothing."""
    return which(CYCLICTEST) is not None if adapter == CYCLICTEST else adapter in find_probes()


def chosen(name: str, sized: Callable[..., int]) -> str:
    """The cells to run: a few, or all that end within a quarter of an hour at this scale."""
    every, few = (len(read_campaign(CAMPAIGNS / f"{name}.yaml", only=o).cells) for o in (SHORT, FEW[name]))
    return SHORT if sized("cells", reduced=few, full=every) == every else FEW[name]


def shown(out: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The published tables beside the cells, as `rtmeter published --json` prints them."""
    assert invoke(["published", str(out), "--json"]) == 0
    tables: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["published"]
    return tables


def test_a_program_of_an_adapters_name_is_no_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "fastdds"  # as a sourced ROS 2 has one
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert which("fastdds") == str(program)
    assert can_be_measured("fastdds") == ("fastdds" in find_probes())
    monkeypatch.setattr(f"{__name__}.find_probes", dict)
    assert not can_be_measured("fastdds")


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", FEW)
def test_every_cell_is_measured_or_skipped_with_what_is_missing(
    name: str, results: Callable[[str, str], tuple[Path, Cells]], sized: Callable[..., int]
) -> None:
    _, cells = results(name, chosen(name, sized))
    for cell_id, cell in cells.items():
        missing = not can_be_measured(cell["adapter"])
        rmw = cell["config"].get("options", {}).get("rmw")
        installed = ros2_runs.RMWS_OF_RCL if cell["adapter"] == "rcl" else ros2_runs.RMWS
        without_rmw = not missing and rmw is not None and rmw not in installed
        status = "skipped" if missing else "failed" if without_rmw else "complete"
        assert cell["status"] == status, (cell_id, cell["error"])
        if without_rmw:  # fails its own cells alone
            assert (cell["error"]["field"], cell["error"]["value"]) == ("option rmw", rmw)
        elif missing:
            assert "is not built here" in cell["error"]["message"] and cell["error"]["remedy"]
        else:
            assert cell["valid"] and cell["summary"]["identity"], cell["warnings"]


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", FEW)
def test_it_stands_beside_its_source_with_the_conditions_that_did_not_hold(
    name: str,
    results: Callable[[str, str], tuple[Path, Cells]],
    sized: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, cells = results(name, chosen(name, sized))
    tables = shown(out, capsys)
    parts = [part for table in tables for part in table["parts"]]
    lines = [line for part in parts for entry in part["entries"] for line in entry["lines"]]
    of_cells = {line["cell"] for line in lines} - {None}
    assert of_cells and [line for line in lines if line["cell"] is None]
    assert of_cells | {cell for table in tables for cell in table["without"]} == set(cells)
    for line in lines:
        if line["cell"] is not None and cells[line["cell"]]["status"] == "skipped":
            assert "is not built here" in line["state"]
    ran = {cell for cell in of_cells if cells[cell]["status"] == "complete"}
    stated = [
        one["condition"] for cell in ran for match in cells[cell]["published"] for one in match["conditions"]
    ]
    for condition in NOT_HERE.intersection(stated):
        unmet = (one["cells"] for table in tables for one in table["unmet"] if one["condition"] == condition)
        assert set().union(*unmet) == ran
    page = report.write(out, out / "report.html").read_text(encoding="utf-8")
    assert "Beside published values" in page
    for table in tables:
        assert published.table(table["table"]).source.split(",")[0] in page


@pytest.mark.timeout(7200)
@pytest.mark.skipif("fastdds" not in find_probes(), reason="the adapter fastdds is not built here")
def test_what_this_machine_cannot_give_is_left_out_with_its_reason(
    results: Callable[[str, str], tuple[Path, Cells]],
    sized: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "ros2-roundtrip-2018"
    out, cells = results(name, chosen(name, sized))
    cell = cells["dds-Test4.A-fastdds"]
    asked = cell["conditions"]["asked"]["settings"]
    made = {name.partition(".")[0] for name in cell["conditions"]["effective"]["settings"]}
    left_out = cell["conditions"].get("left_out", {})
    assert made | set(left_out) == set(asked) - {"unavailable"}
    doubts = [doubt["message"] for doubt in cell["warnings"] if doubt["type"] == "setting_left_out"]
    assert len(doubts) == len(left_out) and all(doubts)
    assert cell["conditions"]["achieved"]["traffic"].keys() == {"forward", "reverse"}
    assert cell["conditions"]["achieved"]["load"]["operations"]
    [table] = shown(out, capsys)
    unmet = {one["condition"]: one["here"] for one in table["unmet"] if cell["id"] in one["cells"]}
    assert {"second_host", "network", "server_load"} <= set(unmet)
    for name, why in left_out.items():
        assert unmet[name] == f"left out: {why}"
