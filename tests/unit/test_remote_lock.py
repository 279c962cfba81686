"""The lock of another machine, by the shells that may be there; what others put in its place is left alone.

The lock's folder is one of a mount namespace of its own, where there is none of this machine's.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rtmeter.errors import RtmeterError
from rtmeter.host import lock as machine_lock
from rtmeter.host import remote_lock, state
from rtmeter.host.remote_shell import Shell
from rtmeter.host.ssh import PROGRAM, Ssh

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a namespace of its own")

SHELLS = ["sh", *(["busybox sh"] if shutil.which("busybox") else [])]


@pytest.fixture(params=SHELLS)
def connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """In the place of ssh: a shell to which the folder returned is /run/lock."""
    folder = tmp_path / "lock"
    folder.mkdir()
    folder.chmod(0o1777)
    program = tmp_path / "ssh"
    inner = f'mount --bind {folder} /run/lock; exec {request.param} -c "$1"'
    program.write_text(f"#!/bin/sh\nfor last; do :; done\nexec unshare -m sh -c '{inner}' sh \"$last\"\n")
    program.chmod(0o755)
    monkeypatch.setenv(PROGRAM, str(program))
    monkeypatch.delenv(state.VARIABLE)
    return folder


def shell() -> Shell:
    return Shell(Ssh("ssh://there", "hosts.component"))


def test_one_holds_it_at_a_time_and_says_who_it_is(connect: Path) -> None:
    first, second = shell(), shell()
    try:
        remote_lock.take(first)
        with pytest.raises(RtmeterError, match=f"is measured already.*process {os.getpid()}") as refused:
            remote_lock.take(second)
        assert "ClientAliveInterval" in str(refused.value)  # a link that nobody closed holds it
        first.close()
        remote_lock.take(second)
    finally:
        second.close()
    assert (connect / machine_lock.FILE).stat().st_mode & 0o777 == 0o666


def test_who_waits_says_for_whom_and_has_it_then(connect: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_lock, "_LOOK_EVERY_S", 0.01)
    first, second, third = shell(), shell(), shell()
    said = list[str]()
    try:
        remote_lock.take(first)
        remote_lock.take(second, lambda words: (said.append(words), first.close())[0])
        assert len(said) == 1 and f"process {os.getpid()}" in said[0]
        with pytest.raises(RtmeterError, match="is measured already"):
            remote_lock.take(third)
    finally:
        for one in (first, second, third):
            one.close()


@pytest.mark.parametrize("what", ["fifo", "link", "dangling", "second name", "folder"])
def test_what_others_put_in_its_place_is_told_and_left(connect: Path, what: str) -> None:
    lock, precious = connect / machine_lock.FILE, connect / "precious"
    precious.write_text("precious")
    match what:
        case "fifo":
            os.mkfifo(lock)
        case "link":
            lock.symlink_to("precious")
        case "dangling":
            lock.symlink_to("made")
        case "second name":
            lock.hardlink_to(precious)
        case "folder":
            lock.mkdir()
    there = shell()
    try:
        with pytest.raises(RtmeterError, match=r"has no file of its own at /run/lock/rtmeter\.lock"):
            remote_lock.take(there)
    finally:
        there.close()
    assert precious.read_text() == "precious" and not (connect / "made").exists()


def test_a_file_that_is_held_and_never_ends_is_not_read_to_its_end(
    connect: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lock := connect / machine_lock.FILE).touch()
    there = shell()
    run = Shell.run
    monkeypatch.setattr(Shell, "run", lambda self, script: run(self, script, 5))
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.truncate(lock, 1 << 42)
            with pytest.raises(RtmeterError, match="already, by another process, which does not say who"):
                remote_lock.take(there)
    finally:
        there.close()


def test_a_file_system_without_locks_is_told_from_a_lock_that_is_held(
    connect: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses = tmp_path / "flock"
    refuses.write_text("#!/bin/sh\nexit 71\n")  # as util-linux has it of ENOLCK
    refuses.chmod(0o755)
    monkeypatch.setattr(remote_lock, "_TAKE", remote_lock._TAKE.replace("flock -n", f"{refuses} -n"))
    there = shell()
    try:
        with pytest.raises(remote_lock.NoLockError, match="refuses to lock /run/lock/") as refused:
            remote_lock.take(there)
        assert f"{state.VARIABLE}, set there, names another folder" in str(refused.value)
    finally:
        there.close()


def test_a_file_of_another_user_is_locked_and_not_written_to(connect: Path) -> None:
    lock = connect / machine_lock.FILE
    lock.write_text("theirs")
    os.chown(lock, 65534, 65534)
    lock.chmod(0o666)
    there = shell()
    try:
        remote_lock.take(there)
        assert lock.read_text() == "theirs"
        taken = subprocess.run(["flock", "-n", lock, "true"], check=False)
        assert taken.returncode == 1
    finally:
        there.close()


def test_who_runs_there_in_a_state_folder_of_its_own_is_seen(
    connect: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the journal, which lies there too."""
    monkeypatch.setenv(state.VARIABLE, str(tmp_path / "a state" / "of its own"))
    there = shell()
    try:
        said = f"is measured already, by rtmeter run .*{os.getpid()}"
        with machine_lock.machine_lock("rtmeter run"), pytest.raises(RtmeterError, match=said):
            remote_lock.take(there)
        shutil.rmtree(state.lock_folder())
        remote_lock.take(there)
        with pytest.raises(RtmeterError, match="rtmeter on"), machine_lock.machine_lock("rtmeter run"):
            pass
    finally:
        there.close()
    assert list(connect.iterdir()) == []
