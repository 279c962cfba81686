"""The CPUs of a target are those of what is started there, also while its shell keeps off some."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtmeter.conditions.component import keep_off
from rtmeter.conditions.load import Load
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import Shell
from rtmeter.host.ssh import PROGRAM, Ssh

OWN = sorted(os.sched_getaffinity(0))


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteRoot]:
    """A shell of this machine, with a program in the place of ssh."""
    program = tmp_path / "ssh"
    program.write_text('#!/bin/sh\nfor last; do :; done\neval "$last"\n')
    program.chmod(0o755)
    monkeypatch.setenv(PROGRAM, str(program))
    shell = Shell(Ssh("ssh://board", "on"))
    yield RemoteRoot(shell=shell)
    shell.close()


@pytest.mark.skipif(len(OWN) < 2, reason="needs two CPUs")
def test_a_load_of_every_core_is_one_of_the_measured_cores_too(target: RemoteRoot, tmp_path: Path) -> None:
    keep_off(target, OWN[:1])
    assert f"Cpus_allowed_list:\t{OWN[0]}" not in (target.read("/proc/self/status") or "")
    assert target.cpus() == OWN
    load = Load({"cpu": 0, "cpu_percent": 80}, tmp_path, target)
    assert (load.effective()["workers"], load.effective()["cpus"], load.level) == (
        {"cpu": len(OWN)},
        OWN,
        0.8,
    )
