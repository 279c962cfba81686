"""Folders beside results while something is measured, and what is left of them after kill -9."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rtmeter import cli
from rtmeter.errors import RtmeterError
from rtmeter.host.scratch import ROWS, TRACE, own_beside, remove_left

HOLD = """
import sys, time
from pathlib import Path
from rtmeter.host.scratch import own_beside
with own_beside(Path(sys.argv[1]), sys.argv[2], print) as folder:
    (folder / "rows").write_text("half")
    print(folder, flush=True)
    time.sleep(600)
"""

Holder = Callable[[Path, str], tuple[subprocess.Popen[str], Path]]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder, of this process and of those that it starts."""
    monkeypatch.setenv("RTMETER_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def hold(state: Path) -> Iterator[Holder]:
    """Starts a process that has a folder in ``parent``; which that is."""
    started: list[subprocess.Popen[str]] = []

    def one(parent: Path, prefix: str) -> tuple[subprocess.Popen[str], Path]:
        parent.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, parent, prefix], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    yield one
    for process in started:
        process.kill()
        process.communicate()


def killed(process: subprocess.Popen[str]) -> None:
    process.kill()
    assert process.wait(60) == -signal.SIGKILL


def test_what_a_killed_process_left_is_removed_and_what_a_running_one_has_is_not(
    tmp_path: Path, hold: Holder
) -> None:
    """Beside, though it is not listed; what is left elsewhere is named, if it is listed."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    (first, left), (second, far) = hold(here, ROWS), hold(elsewhere, TRACE)
    shutil.rmtree(tmp_path / "state")
    (third, listed), (_, its) = hold(elsewhere, ROWS), hold(here, f"{ROWS}[a]-")
    for process in (first, second, third):
        killed(process)
    assert (left.is_dir(), far.is_dir(), listed.is_dir()) == (True, True, True)
    (here / ".rows").mkdir()
    said: list[str] = []
    with own_beside(here, ROWS, said.append) as own:
        assert sorted(here.iterdir()) == sorted([own, its, here / ".rows"])
        assert (its / "rows").read_text() == "half"
    assert said == [
        f"{left}: left by a run that was killed, removed",
        f"{listed}: left by a run that was killed; `rtmeter restore` removes it",
    ]
    assert [one.exists() for one in (own, left, far, listed)] == [False, False, True, True]


def test_restore_removes_what_is_left_wherever_it_lies_and_says_so(
    tmp_path: Path, hold: Holder, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone, left = hold(tmp_path / "results", TRACE)
    _, its = hold(tmp_path / "others", ROWS)
    killed(gone)
    assert cli.invoke(["restore"]) == 0
    assert capsys.readouterr().out == f"{left}: left by a run that was killed, removed\n{NOTHING}"
    assert not left.exists() and its.is_dir()
    assert [one.name for one in (state / "scratch").iterdir()] == [its.name]
    assert cli.invoke(["restore", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["folders"] == []


NOTHING = "nothing was to be put back\n"


def test_who_ends_by_itself_leaves_nothing(tmp_path: Path, state: Path) -> None:
    with own_beside(tmp_path, TRACE, lambda said: pytest.fail(said)) as folder:
        assert [one.resolve() for one in (state / "scratch").iterdir()] == [folder]
    assert not folder.exists() and not any((state / "scratch").iterdir())


def test_a_link_that_has_such_a_name_leads_nowhere(tmp_path: Path, state: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / ".rows-1").symlink_to(tmp_path / "mine")
    (state / "scratch").mkdir(parents=True)
    for name, leads in ((".rows-1", tmp_path / ".rows-1"), ("mine", tmp_path / "mine")):
        (state / "scratch" / name).symlink_to(leads)
    with own_beside(tmp_path, ROWS, lambda said: pytest.fail(said)):
        assert (tmp_path / "mine").is_dir()
    assert [one.partition("; ")[2] for one in remove_left()] == [
        "remove it, unless a run that goes on has it"
    ]
    assert (tmp_path / ".rows-1").is_symlink() and (tmp_path / "mine").is_dir()


def test_what_is_gone_is_listed_no_more_and_what_cannot_be_removed_still_is(
    tmp_path: Path, hold: Holder, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, left), (second, gone) = hold(tmp_path / "a", ROWS), hold(tmp_path / "b", ROWS)
    killed(first)
    killed(second)
    shutil.rmtree(gone)

    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(shutil, "rmtree", refused)
    said = remove_left()
    assert said == [
        f"{left}: cannot be removed: permission denied; remove it, unless a run that goes on has it"
    ]
    assert [one.name for one in (state / "scratch").iterdir()] == [left.name]


@pytest.mark.skipif(os.geteuid() != 0, reason="it is root that heeds no others")
def test_root_heeds_no_list_that_another_could_have_written(tmp_path: Path, state: Path) -> None:
    (tmp_path / "victims" / ".rows-x").mkdir(parents=True)
    (state / "scratch").mkdir(parents=True)
    (state / "scratch" / ".rows-x").symlink_to(tmp_path / "victims" / ".rows-x")
    (state / "scratch").chmod(0o777)
    with pytest.raises(RtmeterError, match="root does not heed"):
        remove_left()
    (tmp_path / "here").mkdir()
    with own_beside(tmp_path / "here", ROWS, lambda said: pytest.fail(said)):
        assert (tmp_path / "victims" / ".rows-x").is_dir()
