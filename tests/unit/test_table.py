"""cells.parquet: what it says, when it is made anew, and that commands over many cells read it alone."""

from __future__ import annotations

import gc
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rtmeter
from rtmeter.cli import invoke
from rtmeter.judge.cell import judged
from rtmeter.live.run import FollowedRun
from rtmeter.results import store, table
from rtmeter.results.cells import each_cell
from rtmeter.results.record import text_of
from synthetic import Made, usual, write_cell, write_failed_cell

RUN = {"format": "rtmeter-run", "version": 2, "campaign": "many", "description": "", "scale": 1.0}
RUN |= {"started": "2026-11-21T05:00:00Z", "ended": None, "host": None, "rtmeter": "0.1.0"}
IDS = ["b", "a", "lost", "failed"]


def made(name: str) -> Made:
    delays = usual(1, 50)
    if name == "lost":
        trips = Made(id=name, measurement="roundtrip", samples=50, warm_up=0)
        trips.delays = lambda k: (50_000, None if k % 10 == 3 else 20_000, 20_000)
        return trips
    return Made(id=name, samples=200, delays=delays, axes={"load": f"cpu:{name}"})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of four cells, one that lost messages and one that failed."""
    folder = tmp_path / "results" / "robot-7" / "many" / "20261121T050000Z"
    for name in IDS[:-1]:
        write_cell(folder / name, made(name))
    write_failed_cell(folder / "failed", made("failed"), {"message": "no probe"})
    (folder / store.RUN).write_text(json.dumps(RUN | {"cells": IDS}))
    return folder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each cell.json was read, by the name of its folder."""
    counted: Counter[str] = Counter()
    plain_open = os.open

    def opening(path: str | Path, *args: int, **more: int) -> int:
        counted.update([Path(path).parent.name] if Path(path).name == store.CELL else [])
        return plain_open(path, *args, **more)

    monkeypatch.setattr(os, "open", opening)
    yield counted


def rows(run: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = table.read(run).read().to_pylist()
    return found


def test_no_memory_of_python_is_read_by_threads_of_arrow(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that lets go of it while the interpreter ends aborts the process."""
    lent: list[object] = []
    reader = pa.BufferReader
    monkeypatch.setattr(pa, "BufferReader", lambda memory: lent.append(memory) or reader(memory))
    gc.collect()  # what others left
    before = pa.total_allocated_bytes()
    read = table.read(run)
    assert read.metadata.num_rows > 0
    assert [type(memory) for memory in lent] == [pa.Buffer]
    assert pa.total_allocated_bytes() - before >= (run / table.TABLE).stat().st_size


def test_the_cells_are_read_once_while_the_table_is_made(run: Path, opened: Counter[str]) -> None:
    (run / "a" / store.CELL).write_text("{")
    first = dict(table.records([run / name for name in IDS]))
    assert opened == Counter(IDS)
    kept = (run / table.TABLE).read_bytes()
    again = dict(table.records([run / name for name in IDS]))
    assert opened == Counter(IDS) and [str(one) for one in first.values()] == list(map(str, again.values()))
    (run / table.TABLE).unlink()
    assert table.read(run).read() == pq.read_table(pa.BufferReader(kept))


def test_a_reader_that_stops_on_the_way_leaves_no_table(run: Path) -> None:
    next(table.records([run / name for name in IDS]))
    assert not (run / table.TABLE).exists()


def test_a_row_for_each_cell_quantity_and_view(run: Path) -> None:
    found = rows(run)
    assert list(dict.fromkeys(row["cell"] for row in found)) == IDS
    for cell in each_cell(run):
        own = [row for row in found if row["cell"] == cell.folder.name]
        quantities = cell.record.summary.quantities if cell.record.summary else {}
        views = {(q, v): s for q, views in quantities.items() for v, s in views.items() if s}
        assert [(row["quantity"], row["view"]) for row in own] == (list(views) or [(None, None)])
        for row in own:
            assert row["id"] == cell.record.id and row["status"] == cell.record.status
            assert row["hostname"] == "robot-7" and row["verdict"] == cell.record.verdict.outcome
            assert json.loads(str(row["axes"])) == cell.record.axes
            for name, value in views[row["quantity"], row["view"]] if row["view"] else ():
                assert row[name] == (None if value == "lost" else value)
        assert [row["record"] is not None for row in own] == [True] + [False] * (len(own) - 1)
    quantities_judged = [row["quantity"] for row in found if row["judged"]]
    assert quantities_judged == ["latency", "latency", "response"]


def test_the_bound_in_a_row_is_the_one_that_may_be_stated(run: Path) -> None:
    record = store.read_cell(run / "a")
    assert record.verdict is not None and record.verdict.support is not None
    verdict = replace(record.verdict, upper=0.25, support=replace(record.verdict.support, upper=0.5))
    bounds = [
        table._facts(record.changed(verdict=one))["upper"]
        for one in (verdict, replace(verdict, support=None))
    ]
    assert bounds == [0.5, 0.25]


def test_cells_of_an_older_version_are_kept_as_of_the_one_that_is_read(run: Path) -> None:
    assert json.loads((run / "a" / store.CELL).read_text())["version"] == 1
    contents = [json.loads(str(row["record"], "utf-8")) for row in rows(run) if row["record"]]  # type: ignore[call-overload]
    assert [content["version"] for content in contents] == [2] * 4
    assert [table.cell_of(json.dumps(one).encode(), run) for one in contents] == [
        store.read_cell(run / name) for name in IDS
    ]


def test_what_falls_on_a_lost_release_is_null_and_said(run: Path) -> None:
    response = next(row for row in rows(run) if row["judged"] and row["cell"] == "lost")
    assert response["lost"] == "p99" or response["lost"] == "p90"
    assert response[f"{response['lost']}_ns"] is response["max_ns"] is None
    assert isinstance(response["p50_ns"], int)


def test_the_schema_is_as_it_is_written_down(run: Path) -> None:
    spec = (Path(__file__).resolve().parents[2] / "spec" / "results.md").read_text(encoding="utf-8")
    section = spec.partition("## cells.parquet")[2].partition("\n## ")[0]
    for name in table.read(run).schema_arrow.names:
        assert f"`{name}`" in section, name


def test_it_is_read_in_the_place_of_the_cells(run: Path, opened: Counter[str]) -> None:
    first = [cell.record for cell in each_cell(run)]
    assert opened == dict.fromkeys(IDS, 1)
    opened.clear()
    assert [cell.record for cell in each_cell(run)] == first
    assert not opened


@pytest.mark.parametrize("command", [["summary"], ["summary", "--json"], ["verdict"], ["verdict", "--json"]])
def test_commands_over_many_cells_open_no_cell_json(
    run: Path, opened: Counter[str], command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for cell in list(each_cell(run)):
        if cell.record.requirement is not None:
            record = judged(cell.record, cell.folder, cell.record.requirement)
            (cell.folder / store.CELL).write_text(text_of(record))
    results = str(run.parent.parent.parent)
    code = invoke([command[0], results, *command[1:]])
    before = capsys.readouterr().out
    opened.clear()
    assert invoke([command[0], results, *command[1:]]) == code
    assert capsys.readouterr().out == before
    assert not opened


def test_only_what_changed_is_read_again(run: Path, opened: Counter[str]) -> None:
    rows(run)
    file = run / "a" / store.CELL
    file.write_text(file.read_text().replace('"adapter": "posix"', '"adapter": "other"'))
    write_cell(run / "new", made("new"))
    for file in (run / "b").iterdir():
        file.unlink()
    opened.clear()
    found = rows(run)
    assert opened == {"a": 1, "new": 1}
    assert {row["cell"]: row["adapter"] for row in found} == {
        "a": "other",
        "new": "posix",
        "lost": "posix",
        "failed": "posix",
    }
    assert {row["cell"] for row in pq.read_table(run / table.TABLE).to_pylist()} == {
        row["cell"] for row in found
    }


def test_the_same_size_at_another_time_is_another_cell(run: Path) -> None:
    rows(run)
    file = run / "a" / store.CELL
    about = file.stat()
    file.write_text(file.read_text().replace('"robot-7"', '"robot-8"'))
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns + 1))
    assert {row["hostname"] for row in rows(run) if row["cell"] == "a"} == {"robot-8"}


@pytest.mark.parametrize("what", ["empty", "torn", "damaged", "another", "later", "by another"])
def test_a_damaged_table_is_made_anew(run: Path, what: str) -> None:
    expected = rows(run)
    path = run / table.TABLE
    whole = path.read_bytes()
    later = json.dumps({"format": table.FORMAT, "version": 99})
    made_by = json.loads(pq.read_schema(path).metadata[b"rtmeter"])
    assert made_by == {"format": table.FORMAT, "version": table.VERSION, "rtmeter": rtmeter.version()}
    elsewhere = json.dumps(made_by | {"rtmeter": "0.0.1"})
    if what in ("later", "by another"):
        later = later if what == "later" else elsewhere
        known = pq.read_table(path)
        pq.write_table(known.replace_schema_metadata({"rtmeter": later}), path)
    else:
        middle = whole[:40] + b"\xa5" * (len(whole) // 2) + whole[40 + len(whole) // 2 :]
        path.write_bytes({"empty": b"", "torn": whole[:-20], "damaged": middle, "another": b"PAR1junk"}[what])
    assert rows(run) == expected
    assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_is_read_all_the_same(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise table.RtmeterError("cannot be written")

    expected = rows(run)
    (run / table.TABLE).unlink()
    monkeypatch.setattr(table, "replace_file", refuse)
    assert rows(run) == expected
    assert not (run / table.TABLE).exists()


def test_a_damaged_cell_is_told_as_without_the_table(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "a" / store.CELL).write_text("{}")
    assert [row["status"] for row in rows(run) if row["cell"] == "a"] == ["damaged"]
    assert invoke(["summary", str(run)]) == 1
    assert str(run / "a" / store.CELL) in capsys.readouterr().err


def test_a_run_that_is_watched_is_read_once(run: Path, opened: Counter[str]) -> None:
    followed = FollowedRun.at(run)
    first = followed.state()
    assert set(opened) == set(IDS) and not (run / table.TABLE).exists()
    opened.clear()
    assert followed.state() == first and not opened
    again = run / "a.partial"
    write_cell(again, made("a"))
    file = again / store.CELL
    file.write_text(file.read_text().replace('"status": "complete"', '"status": "interrupted"'))
    assert followed.state().running == "a"
    for one in (run / "a").iterdir():
        one.unlink()
    (run / "a").rmdir()
    again.rename(run / "a")
    opened.clear()
    assert followed.state().done["a"] == "interrupted"
    assert opened == {"a": 1}
