"""`rtmeter archive add` of what programs recorded of their own loops: once, when they have ended."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from own_loop_logs import locked, log_of, rows, start

from rtmeter import cli
from rtmeter.archive.tables import archive_at
from rtmeter.results import store


def test_a_loop_is_added_once_however_often_it_was_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, to = tmp_path / "results", str(tmp_path / "archive")
    loop = start(results, (0, log_of(0, rows(0, 2000), ended=False)))
    lock, cell = locked(loop), loop.with_suffix("")
    words = ["archive", "add", str(results), "--to", to]
    assert cli.invoke(words) == 0
    said = f"{to}: 0 cells added\nleft out: {cell}, whose program goes on: add it when that has ended\n"
    assert capsys.readouterr().out == said
    (loop / f"whole-{0:015}.rtlog").write_bytes(log_of(0, rows(0, 2000), rows(2000, 500)))
    assert cli.invoke([*words, "--json"]) == 0
    about = {"archive": to, "new": 0, "known": 0, "completed": 0}
    assert json.loads(capsys.readouterr().out) == about | {
        "running": [str(cell)],
        "failed": [],
        "unexplained": [],
    }
    os.close(lock)
    for new in (1, 0):
        assert cli.invoke([*words, "--json"]) == 0
        about = {"archive": to, "new": new, "known": 1 - new, "completed": 0}
        assert json.loads(capsys.readouterr().out) == about | {"running": [], "failed": [], "unexplained": []}
    found = archive_at(to).table("cells").to_pyarrow_table(columns=["n"]).column("n").to_pylist()
    assert found == [2490]


def test_a_loop_that_cannot_be_made_a_cell_of_holds_up_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = start(tmp_path / "good", (0, log_of(0, rows(0, 2000))))
    bad = start(tmp_path / "bad", (0, b"nothing of a log"))
    words = ["archive", "add", str(bad), str(good), "--to", str(tmp_path / "archive"), "--json"]
    assert cli.invoke(words) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["new"], len(said["failed"])) == (1, 1)
    assert store.is_cell(good.with_suffix(""))
