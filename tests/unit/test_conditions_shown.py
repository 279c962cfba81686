"""Repeats of a cell are one condition: in summary, in exit codes, among the entries of reports and sites."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.cli.condition_rows import ConditionRows
from rtmeter.judge.entries import by_condition
from rtmeter.model import Requirement
from rtmeter.results import store
from rtmeter.results.overview import cell_entries
from wakeups import MS, draw, write_wakeups

ASKED = Requirement(MS, 2e-4)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three repeats that are too short by themselves, and pass together; and another cell."""
    for number in (1, 2, 3):
        write_wakeups(tmp_path / f"cell-r{number}", draw(number, 10_000), repeat=number, requirement=ASKED)
    write_wakeups(tmp_path / "other", draw(4, 10_000), requirement=Requirement(MS, 1e-2))
    return tmp_path


def test_summary_has_a_line_for_a_condition_and_its_repeats_where_asked(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["summary", str(run)]) == 0
    out = capsys.readouterr().out
    assert "cell-r1" not in out and "30,000" in out and out.count("pass") == 2
    assert cli.invoke(["summary", str(run), "--repeats"]) == 0
    out = capsys.readouterr().out
    assert "cell-r1" in out and "cell-r3" in out and out.count("inconclusive") == 3


def test_exit_codes_are_those_of_conditions(run: Path) -> None:
    rows = ConditionRows()
    for folder in store.cell_folders(run):
        rows.add(store.read_cell(folder), folder.name)
    assert [(row.name, len(row.repeats)) for row in rows] == [("cell", 3), ("other", 0)]
    assert [exit_codes.of_row(row) for row in rows] == [exit_codes.PASS, exit_codes.PASS]
    assert [exit_codes.of_row(row) for row in next(iter(rows)).repeats] == [exit_codes.INCONCLUSIVE] * 3


def test_a_repeat_that_is_not_there_yet_leaves_its_condition_unfinished(run: Path) -> None:
    (found, _) = by_condition(cell_entries(run))
    assert (found.id, found.outcome, found.n, len(found.repeats)) == ("cell", "pass", 30_000, 3)
    (run / "cell-r4.partial").mkdir()
    (found, _) = by_condition(cell_entries(run))
    assert (found.id, found.outcome, len(found.repeats)) == ("cell", "unfinished", 4)
