"""`rtmeter archive add`: each cell once, whoever adds it, whatever becomes of the writers."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest
from archives import FIRST, cells_in, made, rows, stamp, write_cells

from rtmeter import cli
from rtmeter.archive.add import add, add_rows
from rtmeter.archive.cells import rows_of
from rtmeter.archive.check import _DOUBTS, check
from rtmeter.archive.tables import Archive, MovedError, archive_at, table_of
from rtmeter.errors import RtmeterError
from rtmeter.explain.causes import Ranked
from rtmeter.explain.segments import Key
from rtmeter.results.cells import StoredCell, find_cells
from synthetic import usual, write_cell
from waiting import until

NONE: dict[str, object] = {"completed": 0, "running": [], "failed": [], "unexplained": []}
NOW = datetime(2026, 11, 22, tzinfo=UTC)
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["rtmeter.archive.add", "deltalake", "pyarrow.dataset", "pyarrow.compute"])


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_cells(folder)
    return folder


def test_adding_again_adds_nothing(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = tmp_path / "archive"
    assert cli.invoke(["archive", "add", str(results / "rig0"), "--to", str(to), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"archive": str(to), "new": 2, "known": 0} | NONE
    assert cli.invoke(["archive", "add", str(results), "--to", str(to), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"archive": str(to), "new": 2, "known": 2} | NONE
    assert cli.invoke(["archive", "add", str(results), "--to", str(to), "--label", "site=north"]) == 0
    said = f"{to}: 0 cells added, 4 were there"
    assert capsys.readouterr().out == f"{said} (their labels stay as they are)\n"
    assert cli.invoke(["archive", "add", str(results), "--to", str(to)]) == 0
    assert capsys.readouterr().out == f"{said}\n"
    found = cells_in(archive_at(to))
    assert len(found) == len(set(found)) == 4
    assert check(archive_at(to)) == (4, [])


def test_an_identity_is_of_what_was_measured_and_not_of_what_is_said_of_it(
    results: Path, tmp_path: Path
) -> None:
    (cell,) = find_cells(results / "rig0/day0")
    own = rows_of(cell, {}, NOW).cell["cell"]
    later = rows_of(cell, {"site": "south"}, FIRST).cell
    judged = type(cell)(cell.folder, cell.record.changed(verdict=None, judged_by=None, rtmeter="9"))
    assert {own, later["cell"], rows_of(judged, {}, NOW).cell["cell"]} == {own}
    other = write_cell(tmp_path / "other", made(0, 0, 1200, usual(999, 50)))  # the same, but for its values
    assert rows_of(find_cells(other)[0], {}, NOW).cell["cell"] != own


def test_a_writer_that_read_an_older_version_is_told_so(tmp_path: Path) -> None:
    archive = archive_at(tmp_path / "archive")
    archive.make()
    seen = archive.table("cells")
    assert add_rows(archive, {"a": rows(1, [5])}) == 1
    with pytest.raises(MovedError):
        archive.append("cells", table_of("cells", [rows(1, [5]).cell | {"batch": "x"}]), seen)
    assert len(cells_in(archive)) == 1


def test_a_conflicting_writer_makes_another_look_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One adds what another just adds too: between its look and its commit."""
    archive = archive_at(tmp_path / "archive")
    archive.make()
    one, both = rows(1, [5]), rows(2, [6, 7])
    append, once = Archive.append, iter([True])

    def slowly(self: Archive, name: str, table: object, to: object = None) -> None:
        if name == "cells" and next(once, False):
            add_rows(archive, {both.cell["cell"]: both})
        append(self, name, table, to)  # type: ignore[arg-type]

    monkeypatch.setattr(Archive, "append", slowly)
    assert add_rows(archive, {r.cell["cell"]: r for r in (one, both)}) == 1
    assert cells_in(archive) == [one.cell["cell"], both.cell["cell"]]
    assert check(archive) == (2, [])


def _write(place: str, numbers: list[int], go: str) -> None:
    archive = archive_at(place)
    until(Path(go).exists)
    archive.make()
    random.Random(os.getpid()).shuffle(numbers)
    for number in numbers:
        one = rows(number, [number, number + 1000])
        add_rows(archive, {one.cell["cell"]: one})


def test_killed_writers_lose_nothing_and_add_nothing_twice(tmp_path: Path, sized: Callable[..., int]) -> None:
    """Eight at once that add the same cells, all killed at some moment, again and again; then one ends it."""
    archive, cells, kills = (
        archive_at(tmp_path / "archive"),
        list(range(6)),
        sized("kills", reduced=8, full=100),
    )
    random_of = random.Random(17)
    done = 0
    writers: list[multiprocessing.process.BaseProcess] = []
    (tmp_path / "go").touch()
    while done < kills:
        while len(writers) < 8 if kills > 8 else len(writers) < 3:
            writer = FORKED.Process(target=_write, args=(archive.url, cells, str(tmp_path / "go")))
            writer.start()
            writers.append(writer)
        victim = random_of.choice(writers)
        victim.join(random_of.uniform(0, 1))
        if victim.is_alive():
            assert victim.pid is not None
            os.kill(victim.pid, signal.SIGKILL)
            done += 1
        elif len(cells) < 400:  # it had added all: more for the next
            cells = [*cells, *range(len(cells), len(cells) + 6)]
        victim.join()
        assert victim.exitcode in (0, -signal.SIGKILL)
        writers.remove(victim)
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    before = cells_in(archive)
    assert len(before) == len(set(before))
    expected = {rows(number, [number]).cell["cell"] for number in cells}
    add_rows(archive, {r.cell["cell"]: r for r in (rows(n, [n, n + 1000]) for n in cells)})
    assert cells_in(archive) == sorted(expected) and set(before) <= expected
    assert check(archive) == (len(cells), [])


def test_clocks_that_cannot_be_right_and_one_machine_id_of_two_rigs(tmp_path: Path) -> None:
    times = {"early": datetime(1970, 1, 2, tzinfo=UTC), "ahead": datetime(2038, 1, 1, tzinfo=UTC)}
    for number, (name, when) in enumerate(times.items()):
        cell = made(number, 0, 200, usual(number, 50), machine_id="ab" * 16)
        cell.changes |= {"started": stamp(when), "ended": stamp(when)}
        write_cell(tmp_path / "results" / name, cell)
    archive = archive_at(tmp_path / "archive")
    added = datetime.now(UTC)
    add(archive, find_cells(tmp_path / "results"))
    rows = (
        archive.table("cells").to_pyarrow_table(columns=["rig", "clock", "started", "measured"]).to_pylist()
    )
    assert {(row["clock"], row["started"]) for row in rows} == {
        ("before 2020", times["early"]),
        ("ahead", times["ahead"]),
    }
    assert all(row["measured"] >= added.replace(microsecond=0) for row in rows)
    assert {row["rig"] for row in rows} == {"rig-0-abababab", "rig-1-abababab"}
    cells, flaws = check(archive)
    assert cells == 2 and [flaw.kind for flaw in flaws] == ["doubt"] * 3
    assert "rigs share one machine id (rig-0-abababab, rig-1-abababab)" in flaws[0].message
    assert "its clock was wrong" in flaws[1].message


@pytest.mark.parametrize(
    ("told", "clock"),
    [
        ("0001-01-01T00:00:00+14:00", "not told"),
        ("0001-01-01T00:00:00Z", "before 2020"),
        ("1677-01-01T00:00:00Z", "before 2020"),
        ("2263-01-01T00:00:00Z", "ahead"),
        ("9999-12-31T23:59:59Z", "ahead"),
        ("9999-12-31T23:59:59-14:00", "not told"),
    ],
)
def test_a_clock_may_be_any_number_of_years_off(tmp_path: Path, told: str, clock: str) -> None:
    """Also beyond what 64 bits of nanoseconds can say."""
    cell = made(1, 0, 200, usual(1, 50))
    cell.changes |= {"started": told, "ended": told}
    write_cell(tmp_path / "results" / "off", cell)
    write_cell(tmp_path / "results" / "right", made(2, 0, 200, usual(2, 50)))
    archive = archive_at(tmp_path / "archive")
    once, again = (add(archive, find_cells(tmp_path / "results")) for _ in range(2))
    assert (once.new, again.new, again.known) == (2, 0, 2)
    clocks = archive.table("cells").to_pyarrow_table(columns=["clock"]).column("clock").to_pylist()
    assert sorted(clocks, key=str) == sorted([None, clock], key=str)
    cells, flaws = check(archive)
    assert cells == 2 and [flaw.kind for flaw in flaws] == ["doubt"]
    said = {"not told": "cells of rig rig-1-00000000 do not tell when they were measured"}
    assert said.get(clock, "its clock was wrong") in flaws[0].message
    assert cli.invoke(["archive", "sql", "SELECT * FROM cells", archive.url, "--json"]) == 0


@pytest.mark.parametrize(
    ("told", "clock"),
    [
        ("2019-12-31T23:59:59Z", "before 2020"),
        ("2020-01-01T00:00:00Z", None),
        (stamp(NOW + timedelta(days=1)), None),
        (stamp(NOW + timedelta(days=1, seconds=1)), "ahead"),
    ],
)
def test_a_clock_is_believed_from_2020_until_a_day_from_now(
    told: str, clock: str | None, results: Path
) -> None:
    (cell,) = find_cells(results / "rig0/day0")
    row = rows_of(StoredCell(cell.folder, cell.record.changed(started=told)), {}, NOW).cell
    assert (row["clock"], row["measured"] == row["started"]) == (clock, clock is None)


def test_what_tells_no_time_is_added_at_once_however_many_there_are(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtmeter.archive.add._BATCH", 1)
    cells = [StoredCell(cell.folder, cell.record.changed(started=None)) for cell in find_cells(results)]
    archive = archive_at(tmp_path / "archive")
    assert add(archive, cells).new == 4
    measured = archive.table("cells").to_pyarrow_table(columns=["measured"]).column("measured")
    assert len(set(measured.to_pylist())) == 1


@pytest.mark.parametrize(("begins_s", "doubted"), [(30, True), (60, False), (-60, False)])
def test_a_machine_that_ran_twice_at_once_is_doubted(tmp_path: Path, begins_s: int, doubted: bool) -> None:
    """Under one name: a clone that has its original's."""
    archive = archive_at(tmp_path / "archive")
    archive.make()
    for number, second in enumerate((100, 100 + begins_s)):
        begin = FIRST + timedelta(seconds=second)
        about = {"hostname": "robot", "machine_id": "ab" * 16, "boot_id": str(number)}
        about |= {"started": begin, "ended": begin + timedelta(seconds=60)}
        add_rows(archive, {str(number): rows(number, [1, 2], **about)})
    assert ["rigs share one machine id" in flaw.message for flaw in check(archive)[1]] == [True] * doubted


@pytest.mark.parametrize(("begins_s", "doubted"), [(30, True), (60, False), (-60, False)])
def test_two_machines_of_one_rigs_name_at_once_are_doubted(
    tmp_path: Path, begins_s: int, doubted: bool
) -> None:
    """One after the other may be one rig with another board."""
    archive = archive_at(tmp_path / "archive")
    archive.make()
    for number, second in enumerate((100, 100 + begins_s)):
        begin = FIRST + timedelta(seconds=second)
        about = {"rig": "north-1", "hostname": f"host{number}", "machine_id": f"{number}" * 32}
        about |= {"started": begin, "ended": begin + timedelta(seconds=60)}
        add_rows(archive, {str(number): rows(number, [1, 2], **about)})
    told = [flaw.message for flaw in check(archive)[1]]
    assert ["at once have one rig's name (north-1)" in message for message in told] == [True] * doubted


@pytest.mark.parametrize(
    ("machine", "labels", "said"), [({}, {}, 1), ({}, {"rig": "a"}, 0), ({"hostname": "unknown"}, {}, 0)]
)
def test_cells_that_name_no_machine_are_doubted_to_be_of_one_rig(
    machine: dict[str, str], labels: dict[str, str], said: int, results: Path, tmp_path: Path
) -> None:
    (cell,) = find_cells(results / "rig0/day0")
    archive = archive_at(tmp_path / "archive")
    add(archive, [StoredCell(cell.folder, cell.record.changed(machine=machine))], labels)
    told = [flaw.message for flaw in check(archive)[1]]
    assert ["name no machine" in message for message in told] == [True] * said


@pytest.mark.parametrize("one", ["machine_id", "rig"])
def test_nothing_is_said_to_have_measured_at_once_by_a_clock_that_was_wrong(tmp_path: Path, one: str) -> None:
    """It counts from 1970 at each start, until it is set: of one machine, or of the rig's next one."""
    archive = archive_at(tmp_path / "archive")
    archive.make()
    for number in range(2):
        begin = datetime(1970, 1, 1, 0, 0, number, tzinfo=UTC)
        about = {"rig": "north-1", "hostname": "host", "machine_id": "0" * 32, "boot_id": f"{number}"}
        about |= {"machine_id": f"{number}" * 32} if one == "rig" else {}
        about |= {"started": begin, "ended": begin + timedelta(seconds=60), "clock": "before 2020"}
        add_rows(archive, {str(number): rows(number, [1, 2], **about)})
    (flaw,) = check(archive)[1]
    assert "its clock was wrong" in flaw.message


def test_no_doubt_is_sought_in_all_pairs_of_cells() -> None:
    """Those of one rig are many."""
    pairs = "SELECT a.rig FROM cells a JOIN cells b ON a.rig = b.rig AND a.started < b.ended"
    columns = [f"{name} VARCHAR" for name in ("rig", "hostname", "machine_id", "boot_id", "clock")]
    columns += ["started TIMESTAMPTZ", "ended TIMESTAMPTZ"]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE cells ({', '.join(columns)})")
        connection.execute("PRAGMA disable_optimizer")  # which knows that there are no cells
        asked = [pairs, *_DOUBTS.values()]
        plans = [str(connection.execute(f"EXPLAIN {query}").fetchall()) for query in asked]
    assert ["Join Type: INNER" in plan for plan in plans] == [True, *[False] * len(_DOUBTS)]


def _with_traces(folder: Path, cells: int) -> None:
    for cell in write_cells(folder, rigs=cells, days=1, samples=200):
        (cell / "trace.parquet").touch()


def test_only_new_cells_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def explained(cell: StoredCell) -> SimpleNamespace:
        asked.append(cell.folder)
        keys = [("displaced", "stress-ng", "equal"), ("blocked", "TIMER", None)]
        keys += [("blocked", "TIMER", None, "server", "softirq")]
        causes = [Ranked(Key(*key), 3, 7) for key in keys]
        return SimpleNamespace(found=SimpleNamespace(causes=causes))

    monkeypatch.setattr("rtmeter.judge.explained.explained", explained)
    archive = archive_at(tmp_path / "archive")
    _with_traces(tmp_path / "a", 1)
    _with_traces(tmp_path / "b", 2)
    for part, new in (("a", 1), ("b", 1), ("b", 0)):  # the first cell of both is one
        assert add(archive, find_cells(tmp_path / part)).new == new
    assert len(asked) == 2
    assert archive.table("cells").to_pyarrow_table().column("causes").to_pylist() == [3, 3]
    found = archive.table("causes").to_pyarrow_table().to_pylist()
    told = {(row["who"], row["ended_by"], row["releases"]) for row in found}
    assert told == {("stress-ng", None, 3), ("TIMER", "thread", 3), ("TIMER of server", "softirq", 3)}
    assert check(archive) == (2, [])


def test_causes_that_cannot_be_read_are_not_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The traces are empty files."""
    _with_traces(tmp_path / "results", 2)
    place = str(tmp_path / "archive")
    assert cli.invoke(["archive", "add", str(tmp_path / "results/rig0"), "--to", place]) == 0
    assert f"without causes: {tmp_path}/results/rig0/day0" in capsys.readouterr().out
    assert cli.invoke(["archive", "add", str(tmp_path / "results"), "--to", place, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["new"], found["known"], found["failed"]) == (1, 1, [])
    named = [Path(one["where"]).relative_to(tmp_path).parts[1] for one in found["unexplained"]]
    assert sorted(named) == ["rig0", "rig1"]  # what could not be read is tried again
    table = archive_at(place).table("cells").to_pyarrow_table()
    assert table.column("causes").to_pylist() == [None, None]
    assert check(archive_at(place)) == (2, [])


def test_a_cell_says_what_it_was_sent_by_and_how_it_was_driven(tmp_path: Path) -> None:
    cell = made(0, 0, 200, usual(1, 50))
    sent = {"rmw": "rmw_fastrtps_cpp", "rmw_library": "libfastdds.so.3.2.2"}
    other = {"hostname": "far", "boot_id": "other", "kernel": "6.12.9", "firmware": "B2"}
    cell.changes |= {"adapter_facts": {"middleware": "ROS 2, rcl", **sent}, "server_machine": other}
    rows_ = rows_of(find_cells(write_cell(tmp_path / "far", cell))[0], {}, NOW).cell
    told = {name: rows_[name] for name in (*sent, "server_kernel", "server_firmware", "quantity")}
    assert told == sent | {"server_kernel": "6.12.9", "server_firmware": "B2", "quantity": "latency"}
    driven = {"drive": "spin", "components": "two_threads"}
    means = {"wakeup": [None, None], "timer": ["spin", None], "cycle": ["spin", "two_threads"]}
    for measurement, expected in means.items():
        mode = "periodic" if measurement == "timer" else None
        folder = write_cell(tmp_path / measurement, replace(cell, measurement=measurement, mode=mode))
        content = json.loads((folder / "cell.json").read_text())
        content["effective"] |= driven
        content["config"]["quantity"] = "wake-up latency"
        content["server_machine"] = content["machine"]
        (folder / "cell.json").write_text(json.dumps(content))
        rows_ = rows_of(find_cells(folder)[0], {}, NOW).cell
        told = {name: rows_.get(name) for name in (*driven, "quantity", "server_kernel")}
        assert list(told.values()) == [*expected, "wake-up latency", None]


def test_a_cell_that_says_no_time_is_added_once(tmp_path: Path) -> None:
    archive = archive_at(tmp_path / "archive")
    archive.make()
    found = {one.cell["cell"]: one for one in (rows(1, [1, 2], started=None), rows(2, [3, 4]))}
    assert [add_rows(archive, found), add_rows(archive, found)] == [2, 0]
    assert check(archive) == (2, [])


def test_a_label_is_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    twice = ["--label", "site=a", "--label", "site=b"]
    assert cli.invoke(["archive", "add", "nowhere", *twice]) == 1
    assert "--label" in (said := capsys.readouterr().err) and "is given twice" in said


@pytest.mark.parametrize("label", ["site", "=x", "a b=c", "site=", "s" * 65 + "=x", "site=" + "x" * 201])
def test_a_label_that_is_none_is_refused(label: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["archive", "add", "nowhere", "--label", label]) == 1
    assert "--label" in capsys.readouterr().err


@pytest.mark.parametrize("payload", ["x", 10**30, -1, True])
def test_a_payload_that_no_table_can_hold_is_refused_by_name(tmp_path: Path, payload: object) -> None:
    """The record does not check it: it is a key of the probe's own."""
    cell = write_cell(tmp_path / "cell", made(1, 1, 1200, usual(1, 5)))
    content = json.loads((cell / "cell.json").read_text())
    content["config"]["payload_bytes"] = payload
    (cell / "cell.json").write_text(json.dumps(content))
    with pytest.raises(RtmeterError, match="no number of bytes") as caught:
        rows_of(find_cells(cell)[0], {}, NOW)
    assert caught.value.field == "config.payload_bytes" and caught.value.where == str(cell / "cell.json")
