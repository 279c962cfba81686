"""`rtmeter archive check`: what the tables of an archive say of each other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from archives import written

from rtmeter import cli
from rtmeter.archive.add import add
from rtmeter.archive.check import check
from rtmeter.archive.tables import archive_at
from rtmeter.results.cells import find_cells
from synthetic import Made, usual, write_cell


@pytest.fixture(scope="module")
def judged_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of one cell of three blocks, of which some releases missed."""
    folder = tmp_path_factory.mktemp("judged")
    made = Made(samples=700, period_ns=10**9, delays=usual(3, 50, spikes=0.05, spike_us=900), miss_ratio=0.2)
    write_cell(folder / "results" / "cell", made)
    add(archive_at(folder / "archive"), find_cells(folder / "results"))
    assert check(archive_at(folder / "archive")) == (1, [])
    return folder / "archive"


@pytest.fixture
def judged(judged_template: Path, tmp_path: Path) -> Path:
    """A copy of it that may be damaged."""
    return Path(shutil.copytree(judged_template, tmp_path / "judged"))


CHANGED = {
    "UPDATE maxima SET block = block + 1": "blocks that are not those from 0 on",
    "UPDATE maxima SET block = 0": "blocks that are not those from 0 on",
    "UPDATE maxima SET lost = lost + 1": "blocks that lost another number of releases",
    "UPDATE maxima SET max_at_k = max_at_k + CASE WHEN block = 1 THEN 300 ELSE 0 END": "block whose latest",
    "UPDATE maxima SET max_at_k = max_at_k - 300": "a block whose latest release is not one of it",
    "UPDATE maxima SET max_at_k = max_at_k + 1": "another latest release than its blocks",
    "UPDATE cells SET lost = lost + 1": "another number of lost releases than its distribution allows",
    "UPDATE distributions SET lost = lost + 1": "another number of lost releases than its distribution",
    "UPDATE cells SET outcome = 'fail', misses = 0": "an outcome that its misses, or its bound, rule out",
    "UPDATE cells SET outcome = 'pass', miss_ratio = NULL": "an outcome that its misses, or its bound, rule",
    "UPDATE cells SET outcome = 'pass', miss_ratio = upper / 2": "an outcome that its misses, or its bound",
    "UPDATE cells SET outcome = 'pass', criticality = 'hard'": "an outcome that its misses, or its bound",
    "UPDATE cells SET misses = -5": "a number that cannot be",
    "UPDATE cells SET confidence = 1": "a number that cannot be",
    "UPDATE cells SET confidence = 0": "a number that cannot be",
    "UPDATE cells SET design_effect = 'nan'": "a number that cannot be",
    "UPDATE cells SET upper = -0.1": "a number that cannot be",
    "UPDATE cells SET horizon = 0": "a number that cannot be",
    "UPDATE cells SET deadline_ns = -1": "a number that cannot be",
    "UPDATE cells SET miss_ratio = 1e9": "a number that cannot be",
    "UPDATE cells SET measured = measured + INTERVAL 1 MINUTE": "another rig, or another time, in another",
    "UPDATE maxima SET rig = 'rig-9'": "another rig, or another time, in another table",
    "UPDATE distributions SET measured = measured - INTERVAL 1 DAY": "another rig, or another time",
}


@pytest.mark.parametrize("change", CHANGED)
def test_what_the_tables_contradict_is_seen(judged: Path, change: str) -> None:
    archive = archive_at(judged)
    written(archive, change)
    found = [flaw.message for flaw in check(archive)[1]]
    assert any(CHANGED[change] in one for one in found), found


CANNOT_BE = [f"confidence = {value}" for value in ("0", "1", "7", "'nan'")]
CANNOT_BE += ["misses = n + 5", "misses = -5", "design_effect = 0", "design_effect = 'nan'"]


@pytest.mark.parametrize("change", CANNOT_BE)
def test_numbers_that_cannot_be_are_no_verdict(
    judged: Path, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written(archive_at(judged), f"UPDATE cells SET {change}")
    assert cli.invoke(["archive", "merge", str(judged)]) == 1
    assert "cells with numbers that cannot be" in capsys.readouterr().err
    assert [flaw.kind for flaw in check(archive_at(judged))[1]]  # as it says, they are named


def test_the_page_of_a_fleet_stands_where_a_time_was_lost(judged: Path, tmp_path: Path) -> None:
    written(archive_at(judged), "UPDATE cells SET measured = NULL")
    assert cli.invoke(["site", "--archive", str(judged), "-o", str(tmp_path / "site")]) == 0
    assert "<td>–</td>" in (tmp_path / "site" / "index.html").read_text()
    assert any("another time" in flaw.message for flaw in check(archive_at(judged))[1])
