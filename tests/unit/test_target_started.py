"""A program that is started on a target runs there until it ends, whichever shell is there: also one that
becomes the last command that it is given."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rigs_here import URL, board_at
from rtmeter.conditions.target import reached
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.measure.programs.started_there import StartedThere
from waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a namespace of its own")

SHELLS = [name for name in ("dash", "bash", "busybox") if shutil.which(name)]


@pytest.fixture(params=SHELLS)
def there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[RemoteRoot]:
    """A target whose ``sh`` is that one."""
    with board_at(tmp_path, monkeypatch) as board:
        (board / "bin" / "sh").symlink_to(shutil.which(request.param) or "")
        with reached(URL) as root:
            yield root


def started(there: RemoteRoot, folder: Path, before: str) -> StartedThere:
    """A program that says when it runs, and then waits."""
    script = f"{before}\n: >'{folder}/runs'\nuntil test -e '{folder}/go'; do sleep 0.02; done\nexit 3\n"
    (folder / "program").write_text(script)
    return StartedThere(f"sh {folder}/program", {}, folder, [], there)


def test_it_runs_until_it_ends_and_its_exit_code_is_known(there: RemoteRoot, tmp_path: Path) -> None:
    with started(there, tmp_path, "") as program:
        until((tmp_path / "runs").exists)
        program.check()
        assert program.exit_code is None
        (tmp_path / "go").touch()
        program.wait(300)
        assert program.exit_code == 3


def test_it_hears_what_stands_for_ctrl_c(there: RemoteRoot, tmp_path: Path) -> None:
    with started(there, tmp_path, "trap 'exit 4' INT") as program:
        until((tmp_path / "runs").exists)
        program.interrupt()
        program.wait(300)
        assert program.exit_code == 4
