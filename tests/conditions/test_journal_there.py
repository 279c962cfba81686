"""A journal that lies on the machine whose changes it has: what is done with it there, over a shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rtmeter.conditions import journal
from rtmeter.conditions.resources import File
from rtmeter.errors import RtmeterError
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import Shell
from rtmeter.host.ssh import PROGRAM, Ssh

CHANGE = ("cpufreq", File("/sys/one"), "1", "it's $HOME")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteRoot]:
    """This machine, as one that is reached by ssh; its state folder is not made yet."""
    program = tmp_path / "ssh"
    program.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    program.chmod(0o755)
    monkeypatch.setenv(PROGRAM, str(program))
    monkeypatch.setenv("HOME", str(tmp_path))
    shell = Shell(Ssh("ssh://there", "hosts.component"))
    yield RemoteRoot(shell=shell, keeps_journal=True)
    shell.close()


def test_what_is_written_there_is_read_there(there: RemoteRoot, state_folder: Path) -> None:
    written = journal.Journal(there)
    file = journal.file_of(there)
    assert str(file) == str(state_folder / journal.FILE) and file.exists()
    entries = (written.intend(*CHANGE), written.intend(*CHANGE))
    assert journal.read(file) == journal.Past(entries, ())
    written.close(settled=False)
    assert file.exists()
    with pytest.raises(RtmeterError, match="holds changes of an earlier run") as caught:
        journal.Journal(there)
    assert caught.value.remedy == "run `rtmeter restore --on ssh://there`"
    written.close(settled=True)
    assert not file.exists() and journal.read(file) == journal.Past((), ())


def test_one_that_is_set_aside_has_the_next_free_name(there: RemoteRoot, state_folder: Path) -> None:
    names = [f"{journal.FILE}.aside-{n}" for n in (1, 2)]
    for name in names:
        journal.Journal(there).close(settled=False)
        assert journal.file_of(there).set_aside() == state_folder / name
    assert sorted(path.name for path in state_folder.iterdir()) == names
