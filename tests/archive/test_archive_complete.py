"""`rtmeter archive add` of cells that are there: what the archive lacks of them is told, and nothing else."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from archives import plain, rows, write_cells

from rtmeter import cli
from rtmeter.archive.add import add, add_rows
from rtmeter.archive.cells import CellRows, rows_of
from rtmeter.archive.check import check
from rtmeter.archive.complete import complete
from rtmeter.archive.engine import Engine, answering
from rtmeter.archive.engine import rows as rows_found
from rtmeter.archive.groups import GroupsAsked, merged
from rtmeter.archive.schema import CAUSES, CELLS, COMPLETABLE, COMPLETED, SCHEMAS, VERDICT
from rtmeter.archive.tables import Archive, archive_at
from rtmeter.errors import RtmeterError
from rtmeter.explain.causes import Ranked
from rtmeter.explain.segments import Key
from rtmeter.results.cells import StoredCell, find_cells

SPARK = importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None
ENGINES: tuple[Engine, ...] = ("duckdb", "spark")
NOW = datetime(2026, 11, 22, tzinfo=UTC)
LATER = ("lost", "refused", "design_effect", "upper", "adapter", "repeat", "causes")
"""Columns of ``cells`` that an older archive, made up here, has not."""

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Four cells, of which two have an (empty) trace."""
    cells = write_cells(tmp_path / "results", samples=400)
    for cell in cells[:2]:
        (cell / "trace.parquet").touch()
    return tmp_path / "results"


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Traces can be read, and tell two causes, while ``readable``."""
    state = {"readable": True}

    def explained(cell: StoredCell) -> SimpleNamespace:
        if not state["readable"]:
            raise RtmeterError("the trace cannot be read", where=str(cell.folder))
        causes = [Ranked(Key("displaced", who, "equal", None), 3, 7) for who in ("stress-ng", "server")]
        return SimpleNamespace(found=SimpleNamespace(causes=causes))

    monkeypatch.setattr("rtmeter.judge.explained.explained", explained)
    return state


def older(folder: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """An archive of the results by a rtmeter that had neither those columns nor what completes them."""
    archive = archive_at(folder)
    with monkeypatch.context() as then:
        then.setitem(SCHEMAS, CELLS, pa.schema([f for f in SCHEMAS[CELLS] if f.name not in LATER]))
        then.delitem(SCHEMAS, COMPLETED)
        archive.make()
        cells = [rows_of(cell, {}, NOW) for cell in find_cells(results)]
        none = {CAUSES: []}
        found = {of.cell["cell"]: CellRows(of.cell, of.binned, of.others | none) for of in cells}
        assert add_rows(archive, found) == len(cells)
    return archive


def asked(archive: Archive, query: str, capsys: Captured) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert cli.invoke(["archive", "sql", query, archive.url, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    return found


def versions(archive: Archive) -> dict[str, int]:
    return {name: archive.table(name).version() for name in SCHEMAS}


def test_what_an_older_archive_lacks_is_told_when_its_cells_are_added_again(
    results: Path,
    traced: Mapping[str, bool],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    archive, fresh = older(tmp_path / "older", results, monkeypatch), archive_at(tmp_path / "fresh")
    assert check(archive) == (4, [])
    command = ["archive", "add", str(results), "--to", archive.url]
    assert cli.invoke(command) == 0
    assert capsys.readouterr().out == f"{archive.url}: 0 cells added, 4 were there, 4 of them completed\n"
    add(fresh, find_cells(results))
    query = "SELECT * EXCLUDE (batch, added) FROM cells ORDER BY cell"
    told = asked(archive, query, capsys)
    assert told == asked(fresh, query, capsys)
    assert all(row["lost"] == 0 and row["adapter"] for row in told)
    assert {row["causes"] for row in told} == {2, None}
    for name in ("distributions", "maxima", "causes", "findings"):
        query = f"SELECT * EXCLUDE (batch) FROM {name} ORDER BY ALL"
        assert asked(archive, query, capsys) == asked(fresh, query, capsys)
    assert check(archive) == (4, [])
    verdicts = []
    for one in (archive, fresh):
        with answering(one) as backend:
            verdicts.append([repr(group.verdict) for group in merged(backend, GroupsAsked(("rig",)))])
    assert verdicts[0] == verdicts[1]

    before = versions(archive)
    for _ in range(2):
        assert cli.invoke([*command, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert (said["new"], said["known"], said["completed"]) == (0, 4, 0)
    assert versions(archive) == before


def test_causes_come_when_the_trace_can_be_read(
    results: Path, traced: dict[str, bool], tmp_path: Path, capsys: Captured
) -> None:
    """Of one cell it could not be, of another the trace came later."""
    archive = archive_at(tmp_path / "archive")
    traced["readable"] = False
    done = add(archive, find_cells(results))
    assert (done.new, len(done.unexplained)) == (4, 2)
    done = add(archive, find_cells(results))
    assert (done.known, done.completed, len(done.unexplained)) == (4, 0, 2)
    assert archive.table(COMPLETED).version() == 0

    traced["readable"] = True
    (results / "rig1/day0/trace.parquet").touch()
    done = add(archive, find_cells(results))
    assert (done.new, done.known, done.completed, done.unexplained) == (0, 4, 3, [])
    query = "SELECT rig, count(*) AS cells, sum(causes) AS causes FROM cells GROUP BY rig ORDER BY rig"
    assert [row["causes"] for row in asked(archive, query, capsys)] == [4, 2]
    assert asked(archive, "SELECT sum(releases) AS n FROM causes", capsys) == [{"n": 18}]
    assert check(archive) == (4, [])
    assert add(archive, find_cells(results)).completed == 0


def of(causes: int, **more: Any) -> dict[str, CellRows]:
    """A cell with so many causes, and what else its results tell."""
    one = rows(1, [5, 6], deadline_ns=10, outcome="pass", misses=0, late=0, skipped=0, lost=0)
    row = {name: value for name, value in (one.cell | more).items() if name != "causes"} | {"causes": causes}
    why = {"category": "displaced", "relation": "equal", "releases": 3, "lateness_ns": 7}
    return {"x": CellRows(row | {"cell": "x"}, one.binned, {CAUSES: [why] * causes})}


@pytest.fixture
def lacking(tmp_path: Path) -> Archive:
    """An archive of that cell, without causes."""
    archive = archive_at(tmp_path / "archive")
    archive.make()
    (one,) = of(0).values()
    assert add_rows(archive, {"x": CellRows(one.cell | {"causes": None}, one.binned)}) == 1
    return archive


def before_completed(monkeypatch: pytest.MonkeyPatch, do: Callable[[], Any]) -> None:
    """``do`` once, between what a writer read of ``completed`` and its commit."""
    append, once = Archive.append, iter([do])

    def slowly(self: Archive, name: str, rows: Any, to: Any = None) -> None:
        if name == COMPLETED:
            next(once, lambda: None)()
        append(self, name, rows, to)

    monkeypatch.setattr(Archive, "append", slowly)


@pytest.mark.parametrize("also", [{}, {"rmw": "rmw_zenoh_cpp"}])
def test_of_two_that_complete_at_once_the_second_tells_what_is_still_lacking(
    also: dict[str, str], lacking: Archive, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """The other one does not know all that this one does."""
    other: list[int] = []
    before_completed(monkeypatch, lambda: other.append(complete(lacking, of(2), NOW, [])))
    assert complete(lacking, of(2, **also), NOW, []) == len(also) and other == [1]
    told = {"causes": 2, "rmw": also.get("rmw")}
    assert asked(lacking, "SELECT causes, rmw FROM cells", capsys) == [told]
    assert asked(lacking, "SELECT count(*) AS n FROM causes", capsys) == [{"n": 2}]
    assert check(lacking) == (1, [])
    assert complete(lacking, of(2, **also), NOW, []) == 0


def test_a_writer_killed_between_the_tables_leaves_a_whole_archive(
    lacking: Archive, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def killed() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as here:
        before_completed(here, killed)
        with pytest.raises(KeyboardInterrupt):
            complete(lacking, of(2), NOW, [])
    assert lacking.table(CAUSES).to_pyarrow_table().num_rows == 2  # in the files
    assert asked(lacking, "SELECT count(*) AS n FROM causes", capsys) == [{"n": 0}]
    assert check(lacking) == (1, [])
    assert complete(lacking, of(2), NOW, []) == 1
    assert asked(lacking, "SELECT count(*) AS n FROM causes", capsys) == [{"n": 2}]
    assert check(lacking) == (1, [])


def test_no_question_sees_causes_of_a_cell_that_it_does_not_see(
    lacking: Archive, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Another writer adds a cell, and completes it, while the tables are opened one after the other."""
    table, late = Archive.table, iter(["y"])

    def slowly(self: Archive, name: str) -> Any:
        found = table(self, name)
        if name == CELLS and (cell := next(late, None)):
            (one,) = of(2).values()
            row = one.cell | {"cell": cell}
            assert add_rows(lacking, {cell: CellRows(row | {"causes": None}, one.binned)}) == 1
            assert complete(lacking, {cell: CellRows(row, one.binned, one.others)}, NOW, []) == 1
        return found

    query = "SELECT count(*) AS n FROM causes ANTI JOIN cells USING (cell)"
    with monkeypatch.context() as here:
        here.setattr(Archive, "table", slowly)
        with answering(lacking) as backend:
            assert backend.con.execute(query).fetchall() == [(0,)]
    assert asked(lacking, "SELECT sum(causes) AS n FROM cells", capsys) == [{"n": 2}]


def test_columns_of_a_newer_rtmeter_are_seen_where_something_was_completed(
    lacking: Archive, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    newer = [*SCHEMAS[CELLS], pa.field("colour", pa.string())]
    with monkeypatch.context() as then:
        then.setitem(SCHEMAS, CELLS, pa.schema(newer))
        lacking.make()
        (one,) = of(1, colour="red").values()
        assert add_rows(lacking, {"y": CellRows(one.cell | {"cell": "y"}, one.binned, one.others)}) == 1
    assert complete(lacking, of(2), NOW, []) == 1
    told = asked(lacking, "SELECT causes, colour FROM cells ORDER BY cell", capsys)
    assert told == [{"causes": 2, "colour": None}, {"causes": 1, "colour": "red"}]


@pytest.mark.full_only("Spark, which takes half a minute to start")
@pytest.mark.skipif(not SPARK, reason="needs PySpark and Java")
def test_spark_reads_what_was_completed(lacking: Archive) -> None:
    assert complete(lacking, of(2, rmw="rmw_zenoh_cpp", upper=0.5), NOW, []) == 1
    found = []
    for engine in ENGINES:
        with answering(lacking, engine) as backend:
            cells = backend.table(CELLS).select("cell", "outcome", "lost", "causes", "rmw", "upper")
            causes = backend.table(CAUSES).select("cell", "category", "releases")
            told = [rows_found(table).to_pylist() for table in (cells, causes)]
            found.append((*told, plain(merged(backend, GroupsAsked(("rmw",))))))
    assert found[0] == found[1]
    (cell,), causes, _ = found[1]
    assert (cell["causes"], cell["rmw"], cell["upper"], len(causes)) == (2, "rmw_zenoh_cpp", 0.5, 2)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"upper": 0.5}, {"upper": 0.5}),
        ({"upper": 0.5, "outcome": "fail"}, {}),
        ({"upper": 0.5, "deadline_ns": 7}, {}),
        ({"upper": 0.5, "misses": 1, "late": 1}, {}),
        ({"upper": 0.5, "outcome": "fail", "firmware": "B2"}, {"firmware": "B2"}),
        ({"adapter": "other", "labels": [("a", "b")], "max_at_k": 9, "clock": "ahead"}, {}),
    ],
)
def test_what_is_told_stays_and_no_two_verdicts_are_mixed(
    given: dict[str, Any], taken: dict[str, Any], lacking: Archive, capsys: Captured
) -> None:
    first = {"rig": "rig-1", "adapter": "posix"}
    (cell,) = of(0, **first, cell="y").values()
    assert add_rows(lacking, {"y": CellRows(cell.cell | {"cell": "y"}, cell.binned)}) == 1
    query = "SELECT * EXCLUDE (batch) FROM cells WHERE cell = 'y'"
    (before,) = asked(lacking, query, capsys)
    again = {"y": CellRows(cell.cell | {"cell": "y"} | given, cell.binned)}
    assert complete(lacking, again, NOW, []) == bool(taken)
    assert asked(lacking, query, capsys) == [before | taken]
    assert check(lacking)[1] == []


@pytest.mark.parametrize("lacked", ["outcome", "deadline_ns"])
def test_a_verdict_of_a_cell_that_had_none_is_not_taken_over(lacked: str, lacking: Archive) -> None:
    none = {lacked: None, "upper": None}
    (cell,) = of(0).values()
    assert add_rows(lacking, {"y": CellRows(cell.cell | {"cell": "y"} | none, cell.binned)}) == 1
    again = {"y": CellRows(cell.cell | {"cell": "y", "upper": 0.5}, cell.binned)}
    assert complete(lacking, again, NOW, []) == 0


def test_what_is_told_twice_is_seen(lacking: Archive) -> None:
    assert complete(lacking, of(2, rmw="rmw_zenoh_cpp"), NOW, []) == 1
    lacking.append(COMPLETED, lacking.table(COMPLETED).to_pyarrow_table())
    messages = [flaw.message for flaw in check(lacking)[1]]
    assert sum("is told more than once what it lacked" in message for message in messages) == 1


def test_what_other_tables_say_is_not_told_later() -> None:
    """These numbers of a cell must stay those of its distribution, its blocks and its findings."""
    of_others = {name for table in ("distributions", "maxima", "findings") for name in SCHEMAS[table].names}
    assert not set(COMPLETABLE) & (of_others - {"lost"}) and set(VERDICT) <= set(COMPLETABLE)
