"""A cell whose data are damaged: refused with file and remedy, by every command that reads them alike."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cell_commands import OF_NO_CELL, Tried
from rtmeter import cli
from rtmeter.results import store
from stored import write_run
from synthetic import usual, write_cell
from traced_cells import TRACED, write_traced

CAMPAIGN = """
name: c
cells:
  - {measurement: wakeup, adapter: posix, samples: 600, deadline: 1ms}
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results with a run of two cells that have samples."""
    root = tmp_path_factory.mktemp("whole") / "results"
    run = root / store.machine_name() / "c" / "20261121T050000Z"
    write_run(run, {"cells": ["cell", "plain"], "started": "2026-11-21T05:00:00Z"}, CAMPAIGN)
    made = replace(TRACED, samples=600, warm_up=10, delays=usual(1, 50), deadline_ns=1_000_000)
    write_traced(run / "cell", "thief", replace(made, id="cell", axes={"load": "none"}))
    write_cell(run / "plain", replace(made, id="plain", axes={"load": "cpu"}))
    return root


@pytest.fixture
def tried(whole: Path, tmp_path: Path) -> Tried:
    results = shutil.copytree(whole, tmp_path / "results")
    (cell,) = results.rglob("cell")
    (tmp_path / "out").mkdir()
    return Tried(results, cell, cell.parent / "plain", tmp_path / "out")


def deleted(file: Path) -> None:
    file.unlink()


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def emptied(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("damage", [deleted, a_folder])
def test_every_command_that_reads_data_refuses_them(
    tried: Tried, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    damage(tried.cell / store.SAMPLES)
    for name, command in tried.of_data().items():
        code, said = cli.invoke(command), capsys.readouterr()
        assert code == 1, f"{name} accepts it: {said.out}{said.err}"
        assert str(tried.cell / store.SAMPLES) in said.err, f"{name}: {said.err}"
        assert "; " in said.err, f"{name} has no remedy: {said.err}"


def test_what_shows_the_record_shows_it(tried: Tried, capsys: pytest.CaptureFixture[str]) -> None:
    deleted(tried.cell / store.SAMPLES)
    measuring = {"recover", "measure", "run --resume", "published"}
    for name, command in tried.of_records().items():
        if name not in measuring:
            assert cli.invoke(command) == 0, f"{name}: {capsys.readouterr().err}"


def test_a_report_is_written_before_its_error(tried: Tried, capsys: pytest.CaptureFixture[str]) -> None:
    emptied(tried.cell / store.SAMPLES)
    emptied(tried.other / store.SAMPLES)
    assert cli.invoke(["report", str(tried.run)]) == 1
    said, page = capsys.readouterr(), (tried.run / "report.html").read_text()
    assert said.out.strip() == str(tried.run / "report.html")
    assert said.err.count(store.SAMPLES) == 1 and "1 more cells cannot be read" in said.err
    assert "cannot be read" in page and f"{store.SAMPLES}:" in page
    assert str(tried.cell) not in page


def test_a_site_tells_damage_that_came_later_until_it_is_mended(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["site", str(tried.results), "-o", str(tried.out / "site")]
    file = tried.cell / store.SAMPLES
    content = file.read_bytes()
    assert cli.invoke(command) == 0
    (page,) = (tried.out / "site" / "reports").iterdir()
    assert "damaged" not in page.read_text()
    emptied(file)
    for _ in range(2):
        assert cli.invoke(command) == 1
        said = capsys.readouterr()
        assert said.out.strip().endswith(str(tried.out / "site" / "index.html"))
        assert str(file) in said.err
        assert "damaged" in page.read_text()
    file.write_bytes(content)
    assert cli.invoke(command) == 0
    assert "damaged" not in page.read_text()


def test_every_command_that_reads_cells_is_tried(tried: Tried) -> None:
    of_cells = {command[0] for command in tried.of_both().values()}
    assert not of_cells & OF_NO_CELL.keys()
    assert of_cells | OF_NO_CELL.keys() == cli.COMMANDS.keys()
