"""stress-ng on another machine ends with what started it, also where nobody closes the connection."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtmeter.conditions import companion_there
from rtmeter.conditions.processes import children, members
from rtmeter.conditions.stress_ng import StressNg
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import Shell
from rtmeter.host.root import Root
from rtmeter.host.ssh import PROGRAM, Ssh
from waiting import until

pytestmark = pytest.mark.skipif(shutil.which("stress-ng") is None, reason="stress-ng is not installed")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteRoot]:
    """A shell of this machine in the place of ssh; what is made there lies in ``there``."""
    (tmp_path / "there").mkdir()
    program = tmp_path / "ssh"
    program.write_text(
        f'#!/bin/sh\nfor last; do :; done\nexport TMPDIR={tmp_path}/there\nexec sh -c "$last"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv(PROGRAM, str(program))
    shell = Shell(Ssh("ssh://there", "hosts.component"))
    yield RemoteRoot(shell=shell)
    shell.close()


def started(there: RemoteRoot, folder: Path, one: list[int] | None = None) -> tuple[StressNg, int]:
    """With two workers, which run; and its process."""
    load = StressNg(["--cpu", "2", "--cpu-load", "5"], folder / "not here", one, there)
    until(lambda: load.workers() == 2)
    pid = load._pid
    assert pid is not None
    return load, pid


def test_it_reports_what_it_did_and_leaves_nothing(there: RemoteRoot, tmp_path: Path) -> None:
    one = max(os.sched_getaffinity(0))
    load, pid = started(there, tmp_path, [one])
    assert os.sched_getaffinity(pid) == {one}
    assert load.workers() == children(pid, Root()) == 2
    until(lambda: load.processor_s() > 0)
    assert "stressor: cpu" in load.end()
    assert members(pid, Root()) == []
    assert list((tmp_path / "there").iterdir()) == []
    assert not (tmp_path / "not here").exists()


@pytest.fixture
def waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What timeout(1) was told to wait for, a line each; once ``silent`` is there, it waits 0.1 s."""
    folder = tmp_path / "bin"
    folder.mkdir()
    lines = (
        "#!/bin/sh",
        f'echo "$@" >>{folder}/waits',
        f'test -e {folder}/silent && shift && set -- 0.1 "$@"',
        f'exec {shutil.which("timeout")} "$@"',
    )
    (folder / "timeout").write_text("\n".join((*lines, "")))
    (folder / "timeout").chmod(0o755)
    (folder / "waits").touch()
    (folder / ".profile").write_text(f"PATH={folder}:$PATH\n")  # read by the login shell there
    monkeypatch.setenv("HOME", str(folder))
    return folder / "waits"


def test_it_ends_where_nothing_is_heard_any_more(
    there: RemoteRoot, waits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(companion_there, "_BEAT_S", 0.1)
    load, pid = started(there, tmp_path)
    until(lambda: load.death is not None or len(waits.read_text().splitlines()) > 10)
    assert load.death is None  # each beat is heard, and the next one waited for
    assert set(waits.read_text().splitlines()) == {f"{companion_there._SILENCE_S} head -c 1"}
    assert isinstance(load._process, companion_there.CompanionThere)
    load._process._done.set()
    load._process._beating.join()
    waits.with_name("silent").touch()
    load._process.beat()  # the last that is heard
    until(lambda: members(pid, Root()) == [])
    until(lambda: load.death is not None)
    until(lambda: list((tmp_path / "there").iterdir()) == [])
    load.end()


def test_workers_end_with_the_one_that_started_them(there: RemoteRoot, tmp_path: Path) -> None:
    load, pid = started(there, tmp_path)
    os.kill(pid, 9)
    until(lambda: load.death is not None)
    until(lambda: members(pid, Root()) == [])  # they are killed, and die in their time
    assert load.workers() == 0
    load.end()
    assert list((tmp_path / "there").iterdir()) == []
