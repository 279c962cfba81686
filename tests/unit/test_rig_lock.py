"""A rig whose lock is still held after a cell that failed, as by a link cut silently, is asked again; one
that has none to be held is not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rigs_here import URL, board_at
from rtmeter.conditions.target import FIELD
from rtmeter.host import lock as machine_lock
from rtmeter.host import remote_lock
from rtmeter.host.remote_shell import Shell
from rtmeter.host.ssh import Ssh
from rtmeter.measure import rigs
from rtmeter.measure.probe.supervise import Stop
from rtmeter.model import Rig

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a namespace of its own")


def part(patience_ns: int, says: Callable[[str], None]) -> Any:
    """What one rig has of a run."""
    run: Any = SimpleNamespace(cells=[])
    watcher: Any = SimpleNamespace(says=says)
    return rigs._Part(run, Rig("board", URL, {}, {}, None, patience_ns), Stop(), watcher)


def test_it_is_asked_again_within_its_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rigs, "_ASK_EVERY_S", 0.0)
    failed: Any = SimpleNamespace(status="failed")
    cell: Any = None
    with board_at(tmp_path, monkeypatch):
        other = Shell(Ssh(URL, FIELD))
        try:
            remote_lock.take(other)
            assert part(0, lambda _: None)._refused(cell, None) is None  # it answers, and may be measured
            error = part(0, lambda _: None)._refused(cell, failed)
            assert error is not None and "is measured already" in error.message
            said = list[str]()
            waits = part(600 * 10**9, lambda words: (said.append(words), other.close())[0])
            assert waits._refused(cell, failed) is None
            assert said == ["is not free"]
        finally:
            other.close()


def test_one_that_can_never_be_locked_is_given_up_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: Any = SimpleNamespace(status="failed")
    cell: Any = None
    with board_at(tmp_path, monkeypatch) as board:
        (lock := board / "state").mkdir()
        (lock / machine_lock.FILE).symlink_to("elsewhere")
        error = part(600 * 10**9, pytest.fail)._refused(cell, failed)
        assert error is not None and "board cannot be locked: has no file of its own at" in error.message
        (lock / machine_lock.FILE).unlink()
        monkeypatch.setattr(remote_lock, "_TAKE", remote_lock._TAKE.replace("flock", "flock-of-no-release"))
        error = part(600 * 10**9, pytest.fail)._refused(cell, failed)
        assert error is not None and error.message == "board cannot be locked: lacks the program flock"
        assert (error.field, error.value) == (FIELD, URL)
