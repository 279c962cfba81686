"""`rtmeter archive add` of results of which some cannot be read: all others are added, these are named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archives import cells_in, write_cells

from rtmeter import cli
from rtmeter.archive.add import add
from rtmeter.archive.cells import rows_of
from rtmeter.archive.check import check
from rtmeter.archive.tables import archive_at
from rtmeter.cli import reading_progress
from rtmeter.host import checked
from rtmeter.results import store
from rtmeter.results.cells import find_cells, stored
from rtmeter.trace.table import FILE
from traced_cells import TRACED, write_traced

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def cells(tmp_path: Path) -> list[Path]:
    """Two each of three rigs."""
    return write_cells(tmp_path / "results", rigs=3, days=2, samples=400)


def added(code: int, capsys: Captured, *arguments: object) -> dict[str, Any]:
    assert cli.invoke(["archive", "add", *map(str, arguments), "--json"]) == code
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


def test_what_cannot_be_read_holds_up_nothing_else(
    cells: list[Path], tmp_path: Path, capsys: Captured
) -> None:
    """A record, samples and the list of a run, each damaged, and a folder that is not there."""
    to, run = tmp_path / "archive", cells[4].parent / "run.json"
    damaged = {path: path.read_bytes() for path in (cells[0] / "cell.json", cells[2] / "samples.parquet")}
    for path, content in damaged.items():
        path.write_bytes(content[: len(content) // 2])
    run.write_text("{")
    gone = tmp_path / "gone"

    said = added(1, capsys, gone, tmp_path / "results", "--to", to)
    assert (said["new"], said["known"]) == (2, 0)
    assert [one["where"] or one["value"] for one in said["failed"]] == list(map(str, (gone, run, *damaged)))
    assert all(one["message"] and one["remedy"] for one in said["failed"])
    assert check(archive_at(to)) == (2, [])

    for path, content in damaged.items():
        path.write_bytes(content)
    run.unlink()
    said = added(0, capsys, tmp_path / "results", "--to", to)
    counts = {"archive": str(to), "new": 4, "known": 2, "completed": 0}
    assert said == counts | {"failed": [], "unexplained": [], "running": []}
    assert check(archive_at(to)) == (6, [])


@pytest.mark.parametrize("number", [5, 6])
def test_the_first_few_are_named_on_a_screen(
    number: int, cells: list[Path], tmp_path: Path, capsys: Captured
) -> None:
    for cell in cells[:number]:
        (cell / "cell.json").write_text("{")
    to = str(tmp_path / "archive")
    assert cli.invoke(["archive", "add", str(tmp_path / "results"), "--to", to]) == 1
    out, err = capsys.readouterr()
    assert out == f"{to}: {6 - number} cells added\n"
    lines = err.splitlines()
    for cell, line in zip(cells[:5], lines, strict=False):
        assert line.startswith(f"rtmeter: {cell / 'cell.json'}: ")
    more = ["rtmeter: and 1 more cells or runs that could not be read; --json names all"]
    assert lines[5:] == more * (number - 5)


def test_samples_that_cannot_be_read_hold_up_no_other_samples(
    cells: list[Path], tmp_path: Path, capsys: Captured
) -> None:
    """Of two cells of six: seen while the samples of all are written, when the cells are there already."""
    for cell in cells:
        content = json.loads((cell / store.CELL).read_text())
        content["config"]["first_k"] = 1
        (cell / store.CELL).write_text(json.dumps(content))
    late = [cell / store.LATE_RELEASES for cell in (cells[1], cells[4])]
    for path in late:
        path.write_bytes(b"PAR1")
    to = tmp_path / "archive"
    said = added(1, capsys, tmp_path / "results", "--to", to, "--with-samples")
    assert (said["new"], said["sampled"]) == (6, 4)
    assert [one["where"] for one in said["failed"]] == list(map(str, late))
    archive = archive_at(to)
    rows = archive.table("samples").to_pyarrow_table(columns=["cell"]).column("cell").to_pylist()
    assert len(set(rows)) == 4 and check(archive) == (6, [])

    for path in late:
        path.unlink()
    said = added(0, capsys, tmp_path / "results", "--to", to, "--with-samples")
    assert (said["new"], said["known"], said["sampled"], said["failed"]) == (0, 6, 2, [])
    assert check(archive) == (6, [])


def test_what_the_machine_refuses_of_a_cell_is_an_error_of_that_cell(
    cells: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(cell, labels, now):  # type: ignore[no-untyped-def]
        if cell.folder == cells[3]:
            raise OSError(5, "Input/output error")
        return rows_of(cell, labels, now)

    monkeypatch.setattr("rtmeter.archive.add.rows_of", refusing)
    archive = archive_at(tmp_path / "archive")
    done = add(archive, find_cells(tmp_path / "results"))
    assert done.new == len(cells_in(archive)) == 5
    assert [str(error) for error in done.failed] == [
        f"{cells[3]}: cannot be read: input/output error; check the path"
    ]


def test_a_path_without_cells_makes_no_archive(tmp_path: Path, capsys: Captured) -> None:
    to = tmp_path / "archive"
    (tmp_path / "empty").mkdir()
    for path in ("nowhere", "empty"):
        assert cli.invoke(["archive", "add", str(tmp_path / path), "--to", str(to)]) == 1
        assert str(tmp_path / path) in capsys.readouterr().err and not to.exists()


def test_progress_says_how_many_cells_are_read(
    cells: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    heard: list[int] = []
    (cells[1] / "cell.json").write_text("{")
    add(archive_at(tmp_path / "one"), stored(cells), say=heard.append)
    assert heard == [1, 2, 3, 4, 5, 6]

    command = ["archive", "add", str(tmp_path / "results"), "--to", str(tmp_path / "two")]
    monkeypatch.setattr(reading_progress, "_DRAWN_S", -1.0)
    monkeypatch.setattr(reading_progress, "_SILENT_S", float("inf"))
    cli.invoke(command)
    assert "cells read" not in capsys.readouterr().err
    monkeypatch.setattr(reading_progress, "_SILENT_S", -1.0)
    cli.invoke(command)
    assert "1 of 6 cells read\n" in capsys.readouterr().err


@pytest.mark.parametrize("column", ["event", "state", "name"])
def test_a_trace_with_words_of_another_kind_holds_up_no_other_cell(
    column: str, tmp_path: Path, capsys: Captured
) -> None:
    """The file is whole, its schema is not rtmeter's."""
    results, to = tmp_path / "results", tmp_path / "archive"
    other, _ = (write_traced(results / name, "thief", replace(TRACED, id=name)) for name in "ab")
    table = pq.read_table(other / FILE)
    at = table.column_names.index(column)
    checked.write(table.set_column(at, column, table[column].cast(pa.string())), other / FILE)
    said = added(0, capsys, results, "--to", to)
    assert said["new"] == 2 and [one["where"] for one in said["unexplained"]] == [str(other / FILE)]
    assert "the trace cannot be read" in said["unexplained"][0]["message"]
    causes = archive_at(to).table("cells").to_pyarrow_table().column("causes").to_pylist()
    assert sorted(cause is None for cause in causes) == [False, True]
