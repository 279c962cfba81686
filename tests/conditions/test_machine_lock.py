"""One rtmeter a machine: the second refuses, or waits; the lock dies with its holder."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rtmeter.errors import RtmeterError
from rtmeter.host import lock as module
from rtmeter.host import state
from rtmeter.host.lock import machine_lock
from waiting import until

HOLD = """
import sys, time
from rtmeter.host.lock import machine_lock
with machine_lock("rtmeter run long.yaml"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(state_folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_second_refuses_and_says_who_holds_it(holder: subprocess.Popen[str]) -> None:
    try:
        with pytest.raises(RtmeterError) as caught, machine_lock("another"):
            pass
    finally:
        holder.kill()
        holder.communicate()
    assert (
        f"rtmeter run long.yaml of {pwd.getpwuid(os.getuid()).pw_name}, process {holder.pid}"
        in caught.value.message
    )
    assert "--wait" in str(caught.value.remedy)


def test_the_lock_dies_with_its_holder_and_who_waits_gets_it(holder: subprocess.Popen[str]) -> None:
    said: list[str] = []

    def killing(words: str) -> None:
        said.append(words)
        holder.kill()

    with machine_lock("another", wait=True, say=killing):
        assert holder.wait() == -signal.SIGKILL
    assert len(said) == 1 and "long.yaml" in said[0]
    holder.communicate()


def test_it_is_free_again_and_not_inherited(state_folder: Path) -> None:
    with machine_lock("first"):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with machine_lock("second"):
            pass
    finally:
        child.kill()
        child.wait()


def test_a_file_of_another_user_can_be_locked(state_folder: Path) -> None:
    """As one who may only read it: the lock needs no more."""
    state_folder.mkdir()
    path = state_folder / "rtmeter.lock"
    path.write_text("no JSON")
    path.chmod(0o444)
    with (
        machine_lock("first"),
        pytest.raises(RtmeterError, match="one measures here already"),
        machine_lock("x"),
    ):
        pass


def test_without_a_place_for_it_says_so(state_folder: Path) -> None:
    state_folder.write_text("")
    with pytest.raises(RtmeterError, match="RTMETER_STATE_DIR"), machine_lock("first"):
        pass


OTHER = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who is not to be held up by others")


@contextmanager
def held_by_another_user(path: Path, words: str) -> Iterator[int]:
    """The file as another user made it, locked by a process of that one, which is yielded."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(words)
    os.chown(path, OTHER, OTHER)
    with path.open("rb") as file:
        child = os.fork()
        if child == 0:
            os.setuid(OTHER)
            os.set_inheritable(file.fileno(), True)
            fcntl.flock(file, fcntl.LOCK_EX)
            os.execlp("sleep", "sleep", "600")
    try:
        with path.open("rb") as seen:
            until(lambda: module._process_that_locked(seen.fileno()) == child)
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@root_only
def test_another_user_is_named_by_the_kernel_whatever_he_writes(state_folder: Path) -> None:
    lies = json.dumps({"pid": 1, "user": "root", "what": "\x1b[2Jrtmeter run", "since": "now"})
    with held_by_another_user(state_folder / module.FILE, lies) as process:
        with pytest.raises(RtmeterError) as caught, machine_lock("root's"):
            pass
        assert f"process {process} of nobody, which is not what the file says" in caught.value.message


@root_only
def test_another_user_holds_root_up_for_a_time_only(
    state_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROOT_WAITS_S", 0.1)
    said: list[str] = []
    with (
        held_by_another_user(state_folder / module.FILE, "") as process,
        machine_lock("root's", wait=True, say=said.append),
    ):
        assert [sentence.split(" process")[0] for sentence in said] == ["waiting for", "going on beside"]
        assert all(f"process {process} of nobody" in sentence for sentence in said)
        with pytest.raises(RtmeterError, match="one measures here already, root's of root"):
            module._hold(ExitStack(), state_folder / module.ROOTS_FILE, 0o600, "", False, said.append)


def a_fifo(path: Path, precious: Path) -> None:
    os.mkfifo(path)


def a_second_name(path: Path, precious: Path) -> None:
    path.hardlink_to(precious)


def a_link(path: Path, precious: Path) -> None:
    path.symlink_to(precious)


def a_dangling_link(path: Path, precious: Path) -> None:
    path.symlink_to(precious.with_name("made"))


def a_folder(path: Path, precious: Path) -> None:
    path.mkdir()


PLANTED = [a_fifo, a_second_name, a_link, a_dangling_link, a_folder]


@root_only
@pytest.mark.parametrize("plant", PLANTED)
def test_what_another_user_puts_there_neither_stops_root_nor_is_written_to(
    state_folder: Path, plant: Callable[[Path, Path], None]
) -> None:
    precious = state_folder / "precious"
    state_folder.mkdir()
    precious.write_text("precious")
    precious.chmod(0o600)
    plant(state_folder / module.FILE, precious)
    said: list[str] = []
    with (
        machine_lock("root's", say=said.append),
        pytest.raises(RtmeterError, match="here already"),
        machine_lock("another of root's"),
    ):
        pass
    assert len(said) == 1 and said[0].startswith("going on without everybody's lock: ")
    assert precious.read_text() == "precious" and precious.stat().st_mode & 0o777 == 0o600
    assert not (state_folder / "made").exists()


@root_only
def test_roots_own_lock_is_open_to_nobody_else(state_folder: Path) -> None:
    with machine_lock("root's"):
        assert (state_folder / module.ROOTS_FILE).stat().st_mode & 0o777 == 0o600
        assert (state_folder / module.FILE).stat().st_mode & 0o777 == 0o666
    os.chown(state_folder, OTHER, 0)
    with pytest.raises(RtmeterError, match="root does not lock anything in"), machine_lock("root's"):
        pass


def test_without_a_folder_given_roots_lock_is_where_root_alone_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(state.VARIABLE)
    folder = state.roots_lock_folder()
    assert not folder.stat().st_mode & 0o022 and folder.stat().st_uid == 0
