"""`rtmeter archive prune`: fewer files, the same rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from archives import cells_in, files_of, rows

from rtmeter import cli
from rtmeter.archive.add import add_rows
from rtmeter.archive.check import check
from rtmeter.archive.prune import prune
from rtmeter.archive.tables import archive_at


def test_files_are_joined_and_no_row_is_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = archive_at(tmp_path / "archive")
    archive.make()
    added = [rows(number, [number, 1000]) for number in range(5)]
    for one in added[:4]:
        add_rows(archive, {one.cell["cell"]: one})
    before, seen = cells_in(archive), archive.table("cells")
    assert len(list(files_of(archive, "cells"))) == 4
    assert cli.invoke(["archive", "prune", archive.url, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["joined"], done["became"], done["removed"]) == (8, 2, 0)
    assert len(list(files_of(archive, "cells"))) == len(list(files_of(archive, "distributions"))) == 1
    assert cells_in(archive) == before and check(archive) == (4, [])
    assert seen.to_pyarrow_table(columns=["cell"]).num_rows == 4  # whoever reads meanwhile has its files
    add_rows(archive, {one.cell["cell"]: one for one in added})
    assert check(archive) == (5, [])


def test_what_nothing_refers_to_goes_when_it_is_old(tmp_path: Path) -> None:
    archive = archive_at(tmp_path / "archive")
    archive.make()
    for number in range(3):
        add_rows(archive, {str(number): rows(number, [number])})
    assert prune(archive).removed == 0
    assert prune(archive, kept_hours=0).removed == 6
    assert check(archive) == (3, [])
