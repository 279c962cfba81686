"""Results of several kernels, each in a folder of its own, make the source's tables in one report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rtmeter.campaign.file import read_campaign
from rtmeter.cli import invoke
from synthetic import Made, write_cell

CAMPAIGN = Path(__file__).parents[2] / "campaigns" / "ros1-timer-2014.yaml"
CELLS = read_campaign(CAMPAIGN, only="block == timer").cells
KERNELS = {"3.4.0": "#1 SMP PREEMPT_DYNAMIC", "3.4.0-rt17": "#1 SMP PREEMPT_RT"}
"""The source's kernels, and how one of their kind tells its version here."""
LATER_NS = {"3.4.0": 50_000, "3.4.0-rt17": 9_000}
"""How late the shots are on each."""
TABLES = [{"kernel": kernel, "cpu_load_percent": load} for kernel in KERNELS for load in ("0", "80")]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The campaign, as two machines measured it: the ids of the cells are the same."""
    root = tmp_path_factory.mktemp("results")
    for kernel, version in KERNELS.items():
        machine = {"kernel": f"of {kernel}", "kernel_version": version, "hostname": kernel}
        for cell in CELLS:
            changes: dict[str, Any] = {"published": cell.published, "adapter": "ros1", "machine": machine}

            def delays(k: int, late_ns: int = LATER_NS[kernel]) -> tuple[int, ...]:
                return (late_ns, 0, 0)

            made = Made(
                id=cell.id,
                measurement="timer",
                mode="one_shot",
                samples=20,
                warm_up=0,
                delays=delays,
                changes=changes,
            )
            write_cell(root / kernel / "ros1-timer-2014" / "run" / cell.id, made)
    return [root / kernel for kernel in KERNELS]


def test_the_four_tables_of_the_source_stand_side_by_side(
    results: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(CELLS) == 12
    assert invoke(["published", *map(str, results), "--json"]) == 0
    [beside] = json.loads(capsys.readouterr().out)["published"]
    assert beside["without"] == []
    assert [part["labels"] for part in beside["parts"]] == TABLES
    for part in beside["parts"]:
        assert len(part["entries"]) == 6  # 2 timeouts, 3 policies
        late_ns = LATER_NS[part["labels"]["kernel"]]
        for entry in part["entries"]:
            published, *measured = entry["lines"]
            assert published["cell"] is None and published["values"]["max_us"]
            kernel, _, _, cell = measured[0]["cell"].split("/")
            assert (kernel, cell.split("-")[0]) == (part["labels"]["kernel"], "timer")
            assert {line["cell"] for line in measured} == {measured[0]["cell"]}
            [own] = (line for line in measured if line["quantity"] == "measured")
            assert own["values"]["max_us"]["ns"] == late_ns


def test_the_report_of_both_has_them(results: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    out = results[0].parent / "both.html"
    assert invoke(["report", *map(str, results), "-o", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    page = out.read_text(encoding="utf-8")
    tables = dict(re.findall(r"<caption>(.*?)</caption>(.*?)</table>", page, re.DOTALL))
    led_to: list[str] = []
    for labels in TABLES:
        table = tables[f"kernel {labels['kernel']}, cpu load (%) {labels['cpu_load_percent']}"]
        links = dict(re.findall(r'<a href="#(cell-\d+)">([^<]*)</a>', table))
        assert [name.split("/")[0] for name in links.values()] == [labels["kernel"]] * 6
        led_to += links
    assert len(set(led_to)) == 2 * len(CELLS)
    assert all(page.count(f'id="{anchor}"') == 1 for anchor in led_to)


def test_a_report_of_several_paths_says_where_it_is_to_be(
    results: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["report", *map(str, results)]) == 1
    assert "--out" in capsys.readouterr().err
    assert not list(results[0].parent.rglob("report.html"))


def test_a_path_that_is_given_twice_counts_once(
    results: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run = results[0] / "ros1-timer-2014" / "run"
    assert invoke(["published", str(run), str(results[0]), "--json"]) == 0
    [beside] = json.loads(capsys.readouterr().out)["published"]
    lines = [line for part in beside["parts"] for entry in part["entries"] for line in entry["lines"]]
    assert {line["cell"] for line in lines} - {None} == {cell.id for cell in CELLS}
