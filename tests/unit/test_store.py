"""Results on disk: written whole or not at all, found again in order, queried where they lie."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from rtmeter.errors import RtmeterError
from rtmeter.host import owned
from rtmeter.model import ABSENT, SERVED, WARM_UP_FLAG
from rtmeter.results import store
from rtmeter.results.loops import loop_folders
from stored import cell_json, json_of, record, write_run
from synthetic import Made, write_cell


def test_a_new_cell_takes_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a" / "cell"
    new = store.NewCell(path)
    assert new.folder == tmp_path / "a" / "cell.partial"
    (new.folder / "data").write_text("x")
    assert not path.exists()
    new.finish(record("cell"))
    assert not new.folder.exists()
    assert cell_json(path) == json_of(record("cell"))


def test_an_earlier_cell_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    store.NewCell(tmp_path / "cell").finish(record("first"))
    new = store.NewCell(tmp_path / "cell")
    assert cell_json(tmp_path / "cell")["id"] == "first"
    new.finish(record("second"))
    assert cell_json(tmp_path / "cell")["id"] == "second"


def test_a_cell_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with store.NewCell(tmp_path / "there" / "a" / "b" / "cell"):
        pass
    assert list(tmp_path.iterdir()) == [tmp_path / "there"]
    assert not any((tmp_path / "there").iterdir())


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RtmeterError, match="cannot be written: not a directory") as caught:
        store.NewCell(tmp_path / "file" / "cell")
    assert caught.value.remedy
    with pytest.raises(RtmeterError, match="file name too long; give it a shorter name"):
        store.NewCell(tmp_path / ("x" * 250))


def test_a_place_is_free_unless_something_would_be_lost(tmp_path: Path) -> None:
    store.check_free(tmp_path / "none", "--out")
    (tmp_path / "empty").mkdir()
    store.check_free(tmp_path / "empty", "--out")
    store.NewCell(tmp_path / "failed").finish(record("failed"))
    store.check_free(tmp_path / "failed", "--out")
    store.NewCell(tmp_path / "measured").finish(
        record("measured", summary={"counts": {}, "identity": "", "quantities": {}})
    )
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    (tmp_path / "file").touch()
    for name in ("measured", "other", "file"):
        with pytest.raises(RtmeterError, match="holds something already"):
            store.check_free(tmp_path / name, "--out")
    partial = store.NewCell(tmp_path / "running").folder
    said = "is being measured, or was when rtmeter was killed"
    with pytest.raises(RtmeterError, match=said) as early:
        store.check_free(tmp_path / "running", "--out")
    assert early.value.remedy == f"wait for it; or remove {partial}"
    (partial / store.STAGES).mkdir()
    (partial / store.STAGES / "a.rtlog").write_bytes(b"some")
    (partial / store.STAGES / store.TEAM).write_bytes(b"{}")
    with pytest.raises(RtmeterError, match=said) as together:
        store.check_free(tmp_path / "running", "--out")
    assert together.value.remedy == f"wait for it; or rtmeter recover {partial}, and remove {partial}"
    (partial / store.STAGES / store.TEAM).unlink()
    with pytest.raises(RtmeterError, match=f"keep the logs in {partial / store.STAGES}, and remove"):
        store.check_free(tmp_path / "running", "--out")
    shutil.rmtree(partial / store.STAGES)
    (partial / store.CLIENT_LOG).write_bytes(b"some")
    with pytest.raises(RtmeterError, match=said) as later:
        store.check_free(tmp_path / "running", "--out")
    assert f"rtmeter recover {partial / store.CLIENT_LOG}, and remove {partial}" in str(later.value)


@pytest.mark.parametrize("nameless", [".", "", "./", "/", "..", "new/.."])
def test_a_folder_without_a_name_of_its_own_is_no_place(nameless: str) -> None:
    with pytest.raises(RtmeterError, match=r"--out = '(new/)?[./]+': is no name of a folder; name a folder"):
        store.check_free(Path(nameless), "--out")


def test_cells_are_found_in_the_order_of_their_run(tmp_path: Path) -> None:
    run = tmp_path / "machine" / "campaign" / "run"
    write_run(run, {"cells": ["z", "a", "gone"]}, "text")
    for name in ("a", "z"):
        store.NewCell(run / name).finish(record(name))
    store.NewCell(run / "unfinished")
    (run / "broken.partial").mkdir()
    (run / "broken.partial" / "cell.json").write_text("{}")
    store.NewCell(run / "a" / "probe").finish(record("a"))  # recovered beside its log
    assert store.cell_folders(tmp_path) == [run / "z", run / "a"]
    assert store.cell_folders(run / "a") == [run / "a"]
    assert (run / "campaign.yaml").read_text() == "text"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: no such file"),
        ("{", "is no rtmeter-cell"),
        ("[]", "is no rtmeter-cell"),
        ('{"format": "rtmeter-run", "version": 1}', "is no rtmeter-cell"),
        ('{"format": "rtmeter-cell", "version": 3}', "has version 3, this rtmeter reads versions 1 and 2"),
    ],
)
def test_what_is_no_cell_json(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "cell.json").write_text(content)
    with pytest.raises(RtmeterError, match=message) as caught:
        cell_json(tmp_path)
    assert caught.value.where == str(tmp_path / "cell.json")


def test_a_folder_without_cells_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RtmeterError, match="holds no cell"):
        store.cell_folders(tmp_path)
    with pytest.raises(RtmeterError, match="is not there"):
        store.cell_folders(tmp_path / "none")


def test_the_latest_run_is_the_one_that_started_last(tmp_path: Path) -> None:
    assert store.latest_run(tmp_path, "c") is None
    first = store.new_run_folder(tmp_path, "c")
    write_run(first, {"started": "2026-01-02"}, "")
    second = store.new_run_folder(tmp_path, "c")
    assert second != first
    write_run(second, {"started": "2026-01-01"}, "")
    assert store.latest_run(tmp_path, "c") == first


def test_a_run_has_its_folder_for_itself(tmp_path: Path) -> None:
    """Two that start in the same second, as runs that need no machine may."""
    with store.own_run_folder(tmp_path / "results", "c") as first:
        with store.own_run_folder(tmp_path / "results", "c") as second:
            assert first.is_dir() and second.is_dir() and first != second
            (second / "kept").touch()
        assert second.is_dir()
    assert not first.exists()
    (second / "kept").unlink()
    with store.own_run_folder(tmp_path / "elsewhere", "c") as third:
        pass
    assert not third.exists() and not (tmp_path / "elsewhere").exists()


def test_a_run_that_loses_the_race_for_a_folder_takes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_for = iter([tmp_path / "taken", tmp_path / "free"])
    (tmp_path / "taken").mkdir()
    monkeypatch.setattr(store, "new_run_folder", lambda *_: next(looked_for))
    with store.own_run_folder(tmp_path, "c") as folder:
        assert folder == tmp_path / "free"


@pytest.mark.parametrize("way", ["results", "results/machine", "results/machine/c"])
@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_a_run_below_what_is_no_folder_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, kind: str
) -> None:
    """As a link to a disk that is not mounted; it is no race that another attempt would win."""
    tried = iter([tmp_path / "results" / "machine" / "c" / "run"])
    monkeypatch.setattr(store, "new_run_folder", lambda *_: next(tried))
    what = tmp_path / way
    what.parent.mkdir(parents=True, exist_ok=True)
    what.touch() if kind == "file" else what.symlink_to(tmp_path / "disk" / "results")
    with pytest.raises(RtmeterError, match="cannot be written: "), store.own_run_folder(tmp_path, "c"):
        pass
    assert what.is_symlink() or what.is_file()


@pytest.mark.parametrize(
    "begin", [lambda out: store.own_run_folder(out, "c").__enter__(), lambda out: store.NewCell(out / "cell")]
)
def test_what_is_measured_goes_into_folders_whose_names_are_text(
    tmp_path: Path, begin: Callable[[Path], object]
) -> None:
    """As a probe's config has them, and Parquet's library."""
    out = tmp_path / os.fsdecode(b"x\xff")
    said = r"^results = '.*x\\udcff.*': is no UTF-8; write it, and name files, in UTF-8"
    with pytest.raises(RtmeterError, match=said):
        begin(out)
    assert not out.exists()


def test_a_cell_is_written_by_one_process_at_a_time(tmp_path: Path) -> None:
    with store.NewCell(tmp_path / "cell") as first:
        (first.folder / "half").touch()
        with pytest.raises(RtmeterError, match="is being measured by another process"):
            store.NewCell(tmp_path / "cell")
        assert (first.folder / "half").exists()
    again = store.NewCell(tmp_path / "cell")
    (again.folder / "half").touch()
    again._release()  # as if it was killed
    with store.NewCell(tmp_path / "cell") as anew:
        assert list(anew.folder.iterdir()) == []


def test_who_begins_when_a_cell_has_just_been_finished_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older cell has the name of the one being written, until it is gone."""
    path, remove, refused = tmp_path / "cell", shutil.rmtree, []
    store.NewCell(path).finish(record("first"))

    def meanwhile(folder: Path) -> None:
        with pytest.raises(RtmeterError, match="is being measured by another process"):
            store.NewCell(path)
        refused.append(folder)
        remove(folder)

    with store.NewCell(path) as second:
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", meanwhile)
            second.finish(record("second"))
        assert refused == [second.folder]
        third = store.NewCell(path)
        (third.folder / "half").touch()
    assert (third.folder / "half").exists()
    third.finish(record("third"))
    assert cell_json(path)["id"] == "third"


def test_who_stands_still_with_the_older_cell_holds_up_no_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cell"
    store.NewCell(path).finish(record("first"))
    monkeypatch.setattr(store, "_PATIENCE_S", 0.1)
    with owned.kept(path), store.NewCell(path) as second:
        second.finish(record("second"))
    assert cell_json(path)["id"] == "second" and not second.folder.exists()


def test_an_older_cell_that_cannot_be_removed_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a file of it is held open over NFS."""
    path, remove = tmp_path / "cell", shutil.rmtree
    store.NewCell(path).finish(record("first"))

    def refused(folder: Path, *, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), ".nfs0001")
        (Path(folder) / store.CELL).unlink()

    monkeypatch.setattr(shutil, "rmtree", refused)
    with store.NewCell(path) as second:
        second.finish(record("second"))
    monkeypatch.setattr(shutil, "rmtree", remove)
    assert cell_json(path)["id"] == "second"
    assert [one.name.partition("-")[0] for one in sorted(tmp_path.iterdir())] == ["cell", "cell.replaced"]
    assert store.cell_folders(tmp_path) == [path]
    with store.NewCell(path) as third:
        third.finish(record("third"))


def test_an_older_cell_of_somebody_else_is_told_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cell"
    store.NewCell(path).finish(record("first"))
    monkeypatch.setattr(os, "access", lambda one, _mode: Path(one) != path)  # root may write anywhere
    with pytest.raises(RtmeterError) as told:
        store.NewCell(path)
    assert str(told.value) == (
        f"results = '{path}': cannot be written: permission denied; choose a folder you may write to"
    )
    assert [one.name for one in tmp_path.iterdir()] == ["cell"]


def test_a_folder_that_cannot_be_emptied_is_told_and_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partial = tmp_path / "cell.partial"
    (partial / "stages").mkdir(parents=True)
    remove = shutil.rmtree

    def refused(folder: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "probe.rtlog")

    monkeypatch.setattr(shutil, "rmtree", refused)
    with pytest.raises(RtmeterError, match="cannot be written: permission denied") as told:
        store.NewCell(tmp_path / "cell")
    assert told.value.value == str(partial)
    monkeypatch.setattr(shutil, "rmtree", remove)
    store.NewCell(tmp_path / "cell").discard()  # nobody holds it


def test_chunks_are_the_samples_as_the_statistics_take_them(tmp_path: Path) -> None:
    folder = write_cell(tmp_path / "cell", Made(samples=50, warm_up=5))
    stream = store.chunks(folder)
    for _ in range(2):  # it starts anew
        (chunk,) = list(stream())
        table = pq.read_table(folder / store.SAMPLES)
        assert chunk["k"].tolist() == list(range(55))
        assert chunk["wake_ns"].tolist() == table["wake_ns"].to_pylist()
        assert (chunk["free_ns"] == ABSENT).all()
        assert chunk["status"].tolist() == [SERVED | WARM_UP_FLAG] * 5 + [SERVED] * 50
        assert all(column.dtype == np.int64 for column in chunk.values())


def test_cell_json_is_plain_json(tmp_path: Path) -> None:
    store.NewCell(tmp_path / "cell").finish(record(instrument={"a": None, "b": [1, 2.5, "x", math.inf]}))
    instrument = json.loads((tmp_path / "cell" / "cell.json").read_text())["instrument"]
    assert instrument == {"a": None, "b": [1, 2.5, "x", None]}


def test_a_link_to_itself_and_a_folder_of_others_hold_no_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is beside them is found. Root may go everywhere: here nobody may into theirs."""
    (tmp_path / "self").symlink_to("self")
    for whose in ("ours", "theirs"):
        (tmp_path / whose / "cell.loop").mkdir(parents=True)
    listed = os.scandir

    def refused(path: str) -> object:
        if Path(path).name == "theirs":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert loop_folders(tmp_path) == [tmp_path / "ours" / "cell.loop"]


def test_loops_are_found_three_folders_down_and_no_cell_is_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops = [tmp_path / name for name in ("a.loop", "run/b.loop", "robot/run/c.loop")]
    for folder in (*loops, tmp_path / "robot/run/far/d.loop", tmp_path / "run/cell"):
        folder.mkdir(parents=True)
    (tmp_path / "run/cell/cell.json").write_text("{}")
    entered: list[str] = []
    listed = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (entered.append(str(path)), listed(path))[1])
    assert store.LOOP == ".loop" and loop_folders(tmp_path) == sorted(loops)
    assert sorted(entered) == sorted(str(tmp_path / name) for name in ("", "run", "robot", "robot/run"))
    assert loop_folders(loops[0]) == [loops[0]] == loop_folders(tmp_path / "a")


def test_a_folder_below_that_is_no_utf_8_is_told(tmp_path: Path) -> None:
    for name in ("good", "bad"):
        write_cell(tmp_path / name / "c", Made())
    (tmp_path / "bad").rename(tmp_path / os.fsdecode(b"x\xff"))
    with pytest.raises(RtmeterError, match="is no UTF-8"):
        store.cell_folders(tmp_path)
    told: list[RtmeterError] = []
    assert store.cell_folders(tmp_path, told.append) == [tmp_path / "good" / "c"]
    assert [error.field for error in told] == ["path"]
