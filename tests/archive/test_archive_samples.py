"""`rtmeter archive add --with-samples`: what is taken along, what stays for good, and what is let go."""

from __future__ import annotations

import importlib.util
import inspect
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from archives import MACHINE, made

from rtmeter import cli
from rtmeter.archive.add import add
from rtmeter.archive.check import check, sampled
from rtmeter.archive.engine import Engine, answering, rows
from rtmeter.archive.prune import KEPT_HOURS, SAMPLES_DAYS, prune
from rtmeter.archive.samples import SURROUNDINGS, near
from rtmeter.archive.schema import OF_SAMPLES, STAMPS
from rtmeter.archive.tables import Archive, archive_at
from rtmeter.cli.commands.archive import prune_
from rtmeter.judge.verdict import misses
from rtmeter.results.cells import find_cells
from rtmeter.statistics.judged import judged_run
from rtmeter.statistics.quantities import _QUANTITIES
from rtmeter.statistics.views import missed
from synthetic import COLUMNS, Made, columns_of, meta_of, rows_of, write_cell

LATE = (101, 420, 421, 620)
"""Releases of the first rig that wake 2.5 ms late, so that those after them are passed over."""

SAMPLES, WARM_UP = 900, 100
SPARK = importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None
ENGINES: tuple[Engine, ...] = ("duckdb", "spark")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cells: one with misses, that passes over releases, one without."""
    folder = tmp_path_factory.mktemp("results")
    late = made(0, 0, SAMPLES, lambda k: [2_500_000 if k in LATE else 50_000 + k])
    late.skip = True
    write_cell(folder / "rig0/late", late)
    write_cell(folder / "rig1/calm", made(1, 0, SAMPLES, lambda k: [40_000 + k]))
    return folder


@pytest.fixture(scope="module")
def template(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("archive") / "whole"
    assert add(archive_at(place), find_cells(results), with_samples=True).sampled == 2
    return place


@pytest.fixture
def place(template: Path, tmp_path: Path) -> str:
    """An archive of the two cells with their samples, that may be changed."""
    return str(shutil.copytree(template, tmp_path / "archive"))


def asked(place: str, query: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert cli.invoke(["archive", "sql", query, place, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    return found


def kept_k(place: str, rig: int) -> list[int]:
    """The releases of a rig whose samples are there, as often as they are."""
    archive = archive_at(place)
    table = archive.table("samples").to_pyarrow_table(filters=[("rig", "=", f"rig-{rig}-00000000")])
    return sorted(table.column("k").to_pylist())


def test_every_sample_comes_as_it_is(place: str, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = pq.read_table(results / "rig0/late/samples.parquet").to_pylist()
    names = ", ".join(there[0])
    found = asked(place, f"SELECT {names} FROM samples WHERE rig LIKE 'rig-0%' ORDER BY k", capsys)
    assert found == there and {row["status"] for row in found} == {"served", "skipped"}
    (verdict,) = {cell.record.verdict for cell in find_cells(results / "rig0")}
    query = "SELECT count(*) FILTER (WHERE late) AS late, max(callback_ns) AS none FROM samples"
    assert verdict is not None and verdict.skipped
    assert asked(place, query, capsys) == [{"late": verdict.misses, "none": None}]
    assert check(archive_at(place)) == (2, []) and sampled(archive_at(place)) == (2, 2 * (SAMPLES + WARM_UP))


def test_cells_that_were_there_without_get_theirs_once(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = str(tmp_path / "archive")
    command = ["archive", "add", str(results / "rig0"), "--to", to]
    assert cli.invoke(["archive", "add", str(results), "--to", to]) == 0
    assert cli.invoke([*command, "--with-samples", "--json"]) == 0
    said = capsys.readouterr().out.split("\n", 1)[1]
    assert json.loads(said) == {
        "archive": to,
        "new": 0,
        "known": 1,
        "completed": 0,
        "sampled": 1,
        "failed": [],
        "unexplained": [],
        "running": [],
    }
    assert cli.invoke(["archive", "add", str(results), "--to", to, "--with-samples"]) == 0
    assert capsys.readouterr().out == f"{to}: 0 cells added, 2 were there; samples of 1 taken along\n"
    assert cli.invoke(["archive", "check", to]) == 0
    assert "; 2,000 samples of 2 of them" in capsys.readouterr().out


def test_late_releases_and_their_surroundings_stay_when_the_others_go(
    place: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, every = archive_at(place), list(range(SAMPLES + WARM_UP))
    soon = datetime.now(UTC) + timedelta(days=SAMPLES_DAYS - 1)
    assert prune(archive, now=soon).samples == 0 and kept_k(place, 0) == every
    query = "SELECT k FROM samples WHERE late ORDER BY k"
    late = [row["k"] for row in asked(place, query, capsys)]
    assert set(LATE) < set(late)
    stay = [k for k in every if min(abs(k - one) for one in late) <= 64]
    assert 0 < len(stay) < len(every) and min(stay) < WARM_UP

    done = prune(archive, now=soon + timedelta(days=2))
    assert done.samples == 2 * len(every) - len(stay)
    assert (kept_k(place, 0), kept_k(place, 1)) == (stay, [])
    assert check(archive) == (2, [])
    again = add(archive, find_cells(results), with_samples=True)
    assert (again.new, again.sampled) == (0, 0) and kept_k(place, 0) == stay
    assert prune(archive, now=soon + timedelta(days=999)).samples == 0


def test_the_command_says_what_was_let_go(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect.signature(prune_).parameters["samples_days"].default == SAMPLES_DAYS == 30
    assert cli.invoke(["archive", "prune", place]) == 0
    assert "let go" not in capsys.readouterr().out
    assert cli.invoke(["archive", "prune", place, "--samples-days", "0"]) == 0
    assert " samples let go; " in capsys.readouterr().out
    assert sampled(archive_at(place))[0] == 1


def add_and_be_killed(archive: Archive, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds the samples too; the end comes before it has said so."""
    append = Archive.append

    def killed(self: Archive, name: str, rows: Any, to: Any = None) -> None:
        if name == "sampled":
            raise KeyboardInterrupt
        append(self, name, rows, to)

    with monkeypatch.context() as here:
        here.setattr(Archive, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            add(archive, find_cells(results), with_samples=True)


def test_a_writer_killed_before_it_said_so_has_taken_nothing(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = archive_at(tmp_path / "archive")
    add_and_be_killed(archive, results / "rig0", monkeypatch)
    assert len(kept_k(archive.url, 0)) == SAMPLES + WARM_UP  # in the files
    assert sampled(archive) == (0, 0) and check(archive) == (1, [])
    assert add(archive, find_cells(results / "rig0"), with_samples=True).sampled == 1
    assert sampled(archive) == (1, SAMPLES + WARM_UP) and check(archive) == (1, [])


def test_samples_of_a_killed_writer_are_told_after_a_week_and_pruned(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of late releases too, which would stay for good; one cell of the batch another had added."""
    archive = archive_at(tmp_path / "archive")
    add_and_be_killed(archive, results, monkeypatch)
    assert add(archive, find_cells(results / "rig0"), with_samples=True).sampled == 1
    week = datetime.now(UTC) + timedelta(hours=KEPT_HOURS)
    assert check(archive, week - timedelta(hours=1)) == (2, [])
    counted, (flaw,) = check(archive, week)
    assert (counted, flaw.kind) == (2, "doubt") and "samples of 2 cells count for nothing" in flaw.message
    assert prune(archive, now=week - timedelta(hours=1)).abandoned == 0
    assert prune(archive, now=week).abandoned == 2 * (SAMPLES + WARM_UP)
    assert (kept_k(archive.url, 0), kept_k(archive.url, 1)) == (list(range(SAMPLES + WARM_UP)), [])
    assert sampled(archive) == (1, SAMPLES + WARM_UP) and check(archive, week) == (2, [])
    assert add(archive, find_cells(results), with_samples=True).sampled == 1


def test_two_who_take_the_same_along_at_once_have_it_once(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, append, once = archive_at(tmp_path / "archive"), Archive.append, iter([True])
    cells = find_cells(results / "rig0")

    def slowly(self: Archive, name: str, rows: Any, to: Any = None) -> None:
        if name == "sampled" and next(once, False):
            assert add(archive, cells, with_samples=True).sampled == 1
        append(self, name, rows, to)

    monkeypatch.setattr(Archive, "append", slowly)
    assert add(archive, cells, with_samples=True).sampled == 0
    assert sampled(archive) == (1, SAMPLES + WARM_UP) and check(archive) == (1, [])


def test_of_a_batch_only_what_another_had_added_meanwhile_counts_for_nothing(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, append, once = archive_at(tmp_path / "archive"), Archive.append, iter([True])

    def slowly(self: Archive, name: str, rows: Any, to: Any = None) -> None:
        if name == "sampled" and next(once, False):
            assert add(archive, find_cells(results / "rig0"), with_samples=True).sampled == 1
        append(self, name, rows, to)

    monkeypatch.setattr(Archive, "append", slowly)
    assert add(archive, find_cells(results), with_samples=True).sampled == 1
    week = datetime.now(UTC) + timedelta(hours=KEPT_HOURS)
    assert prune(archive, now=week).abandoned == SAMPLES + WARM_UP
    assert kept_k(archive.url, 0) == kept_k(archive.url, 1) == list(range(SAMPLES + WARM_UP))


BROKEN: dict[str, Callable[[Any], Any]] = {
    "has another number of samples": lambda table: table.delete("k = 500"),
    "has another number of samples than": lambda table: table.update(updates={"late": "k = 105"}),
    "has another number of samples than it": lambda table: table.update(updates={"k": "7"}),
}


@pytest.mark.parametrize("flaw", BROKEN)
def test_samples_that_do_not_agree_are_seen(place: str, flaw: str) -> None:
    archive = archive_at(place)
    BROKEN[flaw](archive.table("samples"))
    found = check(archive)[1]
    assert len(found) == 2 and all(flaw in one.message and one.kind == "damage" for one in found)


def test_misses_that_are_not_among_the_samples_are_seen(place: str) -> None:
    archive = archive_at(place)
    archive.table("cells").update(updates={"misses": "misses + 1"})
    found = [flaw.message.split(" has ")[1] for flaw in check(archive)[1]]
    assert found.count("another number of late samples than of misses") == 2


def test_an_archive_from_before_has_none_and_one_table_alone_is_damage(
    place: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(Path(place) / "sampled")
    assert cli.invoke(["archive", "check", place]) == 1
    assert "its table sampled is not there" in capsys.readouterr().err
    shutil.rmtree(Path(place) / "samples")
    assert check(archive_at(place)) == (2, [])
    assert asked(place, "SELECT count(*) AS n FROM samples JOIN sampled USING (cell)", capsys) == [{"n": 0}]
    assert prune(archive_at(place)).samples == 0
    assert not any((Path(place) / name).exists() for name in OF_SAMPLES)
    assert add(archive_at(place), find_cells(results), with_samples=True).sampled == 2
    assert sampled(archive_at(place))[0] == 2


def own_loop(folder: Path, **more: Any) -> Path:
    """Of 300 releases the last 200 are whole; late.parquet has the first 150."""
    write_cell(folder, Made(**{"samples": 300, "warm_up": 0, "changes": {"machine": MACHINE}} | more))
    samples = pq.read_table(folder / "samples.parquet")
    pq.write_table(samples.slice(0, 150), folder / "late.parquet")
    pq.write_table(samples.slice(100), folder / "samples.parquet")
    record = json.loads((folder / "cell.json").read_text())
    record["config"]["first_k"] = 100
    warm_up = max(more.get("warm_up", 0) - 100, 0)
    counted = {"warm_up": warm_up, "released": 200 - warm_up, "served": 200 - warm_up}
    record["summary"]["counts"] |= counted
    (folder / "cell.json").write_text(json.dumps(record))
    return folder


def test_late_releases_of_both_files_of_an_own_loop_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = own_loop(tmp_path / "loop", delays=lambda k: [5_000_000 if k in (50, 200) else 50_000])
    archive = archive_at(tmp_path / "archive")
    assert add(archive, find_cells(folder), with_samples=True).sampled == 1
    parts = "count(*) FILTER (WHERE late AND k < 100) AS older, count(*) FILTER (WHERE late) AS late"
    (seen,) = asked(archive.url, f"SELECT {parts} FROM samples", capsys)
    assert 0 < seen["older"] < seen["late"]
    assert asked(archive.url, "SELECT late FROM sampled", capsys) == [{"late": seen["late"]}]


@pytest.mark.parametrize("warm_up", [0, 120])
def test_the_maxima_of_an_own_loop_are_at_the_releases_that_its_samples_have(
    warm_up: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its rows begin with the last hours; ``k`` counts from the program's start."""
    of = {"samples": 300 - warm_up, "warm_up": warm_up}
    folder = own_loop(tmp_path / "loop", delays=lambda k: [5_000_000 if k == 200 else 50_000], **of)
    archive = archive_at(tmp_path / "archive")
    assert add(archive, find_cells(folder), with_samples=True).sampled == 1
    same = "k, wake_ns - release_ns = max_ns AS same"
    query = f"SELECT {same} FROM maxima JOIN samples USING (cell) WHERE k = max_at_k"
    assert asked(archive.url, query, capsys) == [{"k": 200, "same": True}]


def test_late_releases_of_an_own_loop_from_before_its_last_hours_come_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = own_loop(tmp_path / "loop")
    archive = archive_at(tmp_path / "archive")
    assert add(archive, find_cells(folder), with_samples=True).sampled == 1
    query = (
        "SELECT count(*) AS n, count(DISTINCT k) AS k, max(k) FILTER (WHERE for_good) AS last FROM samples"
    )
    assert asked(archive.url, query, capsys) == [{"n": 300, "k": 300, "last": 99}]

    (folder / "late.parquet").write_bytes(b"PAR1")
    command = ["archive", "add", str(folder), "--to", str(tmp_path / "another"), "--with-samples"]
    assert cli.invoke(command) == 1
    assert f"rtmeter: {folder}/late.parquet: the samples cannot be read" in capsys.readouterr().err


def test_surroundings_end_after_so_many_releases_on_either_side() -> None:
    k = np.array([0, 35, 36, 100, 164, 165, 1000, 1064, 1065])
    assert SURROUNDINGS == 64
    assert k[near(k, np.array([100, 1000]))].tolist() == [36, 100, 164, 1000, 1064]
    assert not near(k, np.empty(0, np.int64)).any()


def test_late_is_what_the_verdict_calls_a_miss() -> None:
    """In round trips a skipped release is none by itself."""
    kinds = ("wakeup", "timer/periodic", "timer/one_shot", "roundtrip", "request", "cycle")
    for measurement, _, mode in (kind.partition("/") for kind in kinds):
        steps = 0 if measurement in ("wakeup", "timer") else 50_000
        lost = [None, None, None] if mode == "one_shot" else [9_000, None, steps]
        odd = {60: [3_400_000] * 3, 90: lost}
        one = Made(
            measurement=measurement, mode=mode or None, samples=100, warm_up=10, skip=mode != "one_shot"
        )
        one.delays = lambda k, odd=odd, steps=steps: odd.get(k, [50_000, steps, steps])
        columns, meta = columns_of(one, rows_of(one)), meta_of(one)
        run = judged_run(meta, lambda columns=columns: [columns])
        for deadline_ns in (1_000_000, 20_000_000):
            found = missed(meta, [columns], deadline_ns)
            expected = misses(run, deadline_ns)
            assert len(found) == expected.total and (60 in found) == (deadline_ns == 1_000_000)
        without = missed(meta, [columns], None)
        assert len(without) == expected.skipped + expected.lost > 0


@pytest.mark.full_only("Spark, which takes half a minute to start")
@pytest.mark.skipif(not SPARK, reason="needs PySpark and Java")
def test_spark_has_the_same_samples(place: str) -> None:
    found = []
    for engine in ENGINES:
        with answering(archive_at(place), engine) as backend:
            samples = backend.table("samples")
            of = samples.group_by(["rig", "status", "late", "for_good"])
            k, wake = samples.k.sum().cast("int64"), samples.wake_ns.max()
            sums = of.aggregate(n=samples.count(), k=k, wake=wake)
            found.append(sorted(map(repr, rows(sums).to_pylist())))
    assert found[0] == found[1] and len(found[0]) > 4


def test_the_archive_has_a_column_for_every_stamp() -> None:
    known = {column for of in _QUANTITIES.values() for one in of for column in one.columns}
    assert known | {name for names in COLUMNS.values() for name in names} <= set(STAMPS)
