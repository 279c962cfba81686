"""Journals of other machines lie here, one for each; what they say is undone there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmeter import cli
from rtmeter.conditions import journal
from rtmeter.host.ssh import PROGRAM

HOSTS = ["ssh://[fe80::1]:22", "ssh://robot", "ssh://user@10.0.0.2:2222"]


def test_each_machine_has_its_own(state_folder: Path) -> None:
    state_folder.mkdir(exist_ok=True)
    paths = [journal.path_of(host) for host in ("local", *HOSTS)]
    assert len({*paths}) == 4
    assert all(path.parent == state_folder for path in paths)
    for path in paths:
        path.touch()
    assert journal.hosts() == HOSTS
    assert journal.set_aside(paths[1]).name == f"{paths[1].name}.aside-1"
    assert journal.hosts() == HOSTS[1:]


def test_a_machine_that_is_gone_may_be_set_aside(
    state_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PROGRAM, "false")
    path = journal.path_of("ssh://robot")
    path.parent.mkdir(exist_ok=True)
    path.touch()
    assert cli.invoke(["restore"]) == 1
    said = capsys.readouterr().out
    assert "ssh://robot: it may not be as it was found: says: exit code 1" in said
    assert f"ssh://robot: the journal is kept as {path}\n" in said
    assert cli.invoke(["restore", "--set-aside"]) == 1
    assert f"the journal is kept as {path}.aside-1\n" in capsys.readouterr().out
    assert cli.invoke(["restore"]) == 0
