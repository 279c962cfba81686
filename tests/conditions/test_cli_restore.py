"""`rtmeter restore`, and the state that it works from."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from rtmeter import cli
from rtmeter.cli.alone import alone
from rtmeter.conditions.journal import FILE, Journal, path_of
from rtmeter.conditions.resources import File
from rtmeter.conditions.restore import Restored, restore, restore_before_a_run
from rtmeter.conditions.target import machine_of
from rtmeter.errors import RtmeterError
from rtmeter.host import state
from rtmeter.host.lock import machine_lock
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import Shell
from rtmeter.host.root import Root
from rtmeter.host.ssh import PROGRAM, Ssh
from rtmeter.model import Cell


@pytest.fixture
def setting(tmp_path: Path) -> Path:
    """A file of this machine that a run had changed from 1 to 0 when it was killed."""
    path = tmp_path / "setting"
    path.write_text("0\n")
    Journal(Root()).intend("timer_migration", File(str(path)), "1", "0")
    return path


def test_it_tells_what_it_put_back(setting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["restore"]) == 0
    assert capsys.readouterr().out == f"{setting}: put back to '1'\n"
    assert setting.read_text() == "1\n"
    assert cli.invoke(["restore"]) == 0
    assert capsys.readouterr().out == "nothing was to be put back\n"


def test_json_has_every_change(setting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setting.write_text("5\n")
    assert cli.invoke(["restore", "--json"]) == 0
    change = {"setting": "timer_migration", "name": str(setting), "ending": "changed_since"}
    change |= {"old": "1", "set": "0", "now": "5", "error": None}
    assert json.loads(capsys.readouterr().out) == {
        "whole": True,
        "changes": [change],
        "unknown": [],
        "journal": None,
        "hosts": {},
        "folders": [],
    }


def test_a_damaged_journal_is_an_error_until_it_is_set_aside(
    setting: Path, state_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = state_folder / FILE
    journal.write_bytes(journal.read_bytes() + b"00000000 {}\n")
    cell = ["measure", "wakeup", "--adapter", "posix", "--duration", "10ms", "--warm-up", "0", "--out"]
    assert cli.invoke([*cell, str(state_folder / "cell")]) == 1
    assert "line 2 is damaged: what it says is not known; run `rtmeter restore`" in capsys.readouterr().err
    assert cli.invoke(["restore"]) == 1
    assert (
        f"line 2 is damaged: what it says is not known\n{setting}: was '1' already\n"
        in capsys.readouterr().out
    )
    assert cli.invoke(["restore", "--set-aside"]) == 1
    assert f"the journal is kept as {journal}.aside-1\n" in capsys.readouterr().out
    assert cli.invoke(["restore"]) == 0


def test_what_root_left_is_roots_to_restore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(state.VARIABLE)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(state, "SYSTEM", tmp_path)
    assert restore_before_a_run(Root()) == ()
    for make in (Path.touch, lambda path: path.symlink_to("nothing")):
        make(tmp_path / FILE)
        with pytest.raises(RtmeterError, match="a run of root was killed; run `sudo rtmeter restore`"):
            restore_before_a_run(Root())
        (tmp_path / FILE).unlink()


def test_what_root_left_is_told_to_who_restores_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(state.VARIABLE)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(state, "SYSTEM", tmp_path)
    monkeypatch.setattr("rtmeter.host.lock.machine_lock", lambda *_, **__: nullcontext())
    own = tmp_path / "setting"
    own.write_text("0\n")
    Journal(Root()).intend("timer_migration", File(str(own)), "1", "0")
    (tmp_path / FILE).write_text("")
    assert cli.invoke(["restore"]) == 1
    said = capsys.readouterr().out
    assert "a run of root was killed; run `sudo rtmeter restore`" in said
    assert f"{own}: put back to '1'\n" in said and not (tmp_path / "home" / "rtmeter" / FILE).exists()
    assert cli.invoke(["restore"]) == 1
    assert "nothing was to be put back" not in capsys.readouterr().out
    (tmp_path / FILE).unlink()
    assert cli.invoke(["restore"]) == 0


def test_what_root_left_of_another_machine_is_told_to_who_restores_and_stops_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(state.VARIABLE)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(state, "SYSTEM", tmp_path)
    (tmp_path / "journal-on-root@given-up.aside-1").touch()
    assert restore(Root()).whole
    (tmp_path / "journal-on-root@board").touch()
    restored = restore(Root())
    (said,) = restored.unknown
    assert not restored.whole
    assert f"{tmp_path}/journal-on-root@board': says that ssh://root@board may not be as it was" in said
    assert said.endswith("a run of root was killed; run `sudo rtmeter restore`")
    assert restore_before_a_run(Root()) == ()
    (ssh := tmp_path / "ssh").write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv(PROGRAM, str(ssh))
    with closing(Shell(Ssh("ssh://other", "on"))) as shell:
        assert restore(RemoteRoot(shell=shell)).whole, "it says nothing of the board"
    own = path_of("ssh://root@board")  # by which that machine is asked, and so is the other journal of it
    own.parent.mkdir(parents=True)
    own.touch()
    assert restore(Root()).whole


@pytest.mark.parametrize(("more", "waits"), [([], False), (["--wait"], True)])
def test_a_target_that_is_measured_is_waited_for_where_that_is_asked(
    monkeypatch: pytest.MonkeyPatch, more: list[str], waits: bool
) -> None:
    asked = list[bool]()

    def restored(url: str, *, set_aside: bool, say: object) -> Restored:
        asked.append(say is not None)
        return Restored((), (), None)

    monkeypatch.setattr("rtmeter.conditions.target.restore_on", restored)
    assert cli.invoke(["restore", "--on", "ssh://board", *more]) == 0
    assert asked == [waits]


@pytest.fixture
def lib() -> Iterator[Path]:
    """A folder that all can reach, as they cannot those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who becomes another user")
def test_a_folder_that_root_made_for_itself_is_one_that_all_may_look_into(
    lib: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the umask that sudo has, where that is a strict one."""
    monkeypatch.delenv(state.VARIABLE)
    monkeypatch.setattr(state, "SYSTEM", lib / "rtmeter")
    monkeypatch.setenv("XDG_STATE_HOME", str(lib / "home"))
    before = os.umask(0o077)
    try:
        Journal(Root()).close(settled=True)
    finally:
        os.umask(before)
    as_nobody(lambda: restore_before_a_run(Root()))
    state.SYSTEM.chmod(0o700)  # as it was made once
    monkeypatch.setattr(Path, "exists", lambda _: False)  # as from Python 3.14 on, where it may not look
    with pytest.raises(RtmeterError, match=r"it may not be looked at.*; run `sudo rtmeter restore`"):
        as_nobody(lambda: restore_before_a_run(Root()))
    restore(Root())
    as_nobody(lambda: restore_before_a_run(Root()))


def as_nobody(act: Callable[[], object]) -> None:
    os.seteuid(65534)
    try:
        act()
    finally:
        os.seteuid(0)


def test_where_the_state_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert state.lock_folder() == state.state_folder()
    monkeypatch.delenv(state.VARIABLE)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert state.state_folder() == Path("/var/lib/rtmeter")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", "/home")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert state.state_folder() == Path("/home/.local/state/rtmeter")
    assert state.lock_folder() in (Path("/run/lock"), Path("/tmp"))


CELL = Cell("wakeup-null", "null", None, {}, {})


def test_what_an_earlier_cell_left_is_put_back_before_the_next(
    setting: Path, state_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with machine_of(CELL):  # of which nothing is real: it does not hold the machine
        assert setting.read_text() == "0\n"
    with machine_lock("a campaign"):
        with machine_of(CELL):
            assert setting.read_text() == "1\n" and not (state_folder / FILE).exists()
        assert capsys.readouterr().err == f"rtmeter: left by an earlier cell: {setting}: put back to '1'\n"
        with machine_of(CELL):
            assert capsys.readouterr().err == ""


def test_who_reads_what_is_put_back_may_go(setting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_text: str) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(sys.stderr, "write", gone)
    with machine_lock("a campaign"), machine_of(CELL):
        assert setting.read_text() == "1\n"


def test_no_cell_is_measured_under_what_cannot_be_put_back(
    setting: Path, tmp_path: Path, state_folder: Path
) -> None:
    taken = File(str(tmp_path), seen=str(setting))  # written to it is a folder
    (state_folder / FILE).unlink()
    Journal(Root()).intend("timer_migration", taken, "1", "0")
    with (
        machine_lock("a campaign"),
        pytest.raises(RtmeterError, match=r"may not be as it was found: .* could not be put back to '1'"),
        machine_of(CELL),
    ):
        pytest.fail("it is measured")


def test_a_pipe_in_the_place_of_the_journal_is_not_waited_for(
    state_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state_folder.mkdir(exist_ok=True)
    os.mkfifo(state_folder / FILE)
    assert cli.invoke(["restore"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "cannot be read: it is no regular file: what it says is not known",
        f"the journal is kept as {state_folder / FILE}",
        "with --set-aside it is kept under another name, and runs go on then",
    ]
    assert cli.invoke(["restore", "--set-aside"]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"the journal is kept as {state_folder / FILE}.aside-1"
    ]


def test_names_that_a_terminal_would_heed_are_told_by_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a\x1b[2Jb"
    monkeypatch.setattr("rtmeter.measure.cell.need_the_machine", lambda _: True)
    path.write_text("5\n")
    Journal(Root()).intend("timer_migration", File(str(path)), "1", "0")
    with alone([CELL], wait=False):
        said = capsys.readouterr().err
    assert said.startswith(f"rtmeter: after a run that was killed: {tmp_path}/a\\x1b[2Jb: is '5' now")
    Journal(Root()).intend("timer_migration", File(str(path)), "1", "0")
    assert cli.invoke(["restore"]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}/a\\x1b[2Jb: is '5' now")
