"""The second Ctrl-C while a target is asked something: what was set of it is put back all the same, or its
journal stays."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pretended_ssh import no_ssh

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions.change import Change
from rtmeter.conditions.journal import file_of
from rtmeter.conditions.resources import File
from rtmeter.conditions.settings import Settings
from rtmeter.host import state
from rtmeter.host.ending import Killed
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import ConnectionLostError, Shell
from rtmeter.host.ssh import PROGRAM, Ssh
from waiting import until

SHELLS = ["sh", *(name for name in ("bash", "busybox sh") if shutil.which(name.split()[0]))]


def kill(*_: object) -> None:
    """As rtmeter.cli.interrupt.asking() does."""
    raise Killed


@pytest.fixture(params=SHELLS)
def there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[RemoteRoot]:
    monkeypatch.setenv(state.VARIABLE, str(tmp_path / "state"))
    monkeypatch.setenv(PROGRAM, no_ssh(tmp_path, f'exec {request.param} -c "$last"'))
    before = signal.signal(signal.SIGUSR1, kill)
    shell = Shell(Ssh("ssh://there", "on"))
    yield RemoteRoot(shell=shell, keeps_journal=True)
    shell.close()
    signal.signal(signal.SIGUSR1, before)


def interrupted(there: RemoteRoot, folder: Path) -> None:
    """A question that is killed once its answer is waited for, and ends after that."""
    asker, go_on = threading.get_ident(), folder / "go on"

    def waits() -> bool:
        return sys._current_frames()[asker].f_code is Shell._answer.__code__

    asking = threading.Thread(target=lambda: (until(waits), os.kill(os.getpid(), signal.SIGUSR1)))
    asking.start()
    try:
        there.shell.run(f"until test -e '{go_on}'; do sleep 0.02; done; echo 42")
    finally:
        asking.join()
        go_on.touch()


def test_settings_are_put_back_by_their_own_answers(there: RemoteRoot, tmp_path: Path) -> None:
    file = tmp_path / "setting"
    file.write_text("950000\n")
    more = [Change("rt_throttling", File(str(file)), "-1", "")]
    with pytest.raises(Killed), Settings(SystemSettings(), there, more=more) as settings:
        assert file.read_text().strip() == "-1"
        interrupted(there, tmp_path)
    assert file.read_text().strip() == "950000"
    assert [undone.ending for undone in settings._undone] == ["restored"]
    assert not file_of(there).exists()


def test_half_a_question_is_the_last_one(there: RemoteRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    def half(descriptor: int, asked: bytes) -> int:
        written.append(write(descriptor, asked[: len(asked) // 2]))
        signal.raise_signal(signal.SIGUSR1)
        return written[-1]

    write = os.write
    monkeypatch.setattr(os, "write", half)
    with pytest.raises(Killed):
        there.run(["echo", "one"])
    with pytest.raises(ConnectionLostError):
        there.run(["echo", "two"])
    assert len(written) == 1
