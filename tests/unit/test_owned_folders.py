"""Folders that one process has at a time."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rtmeter.host.owned import own_beside

HOLD = """
import sys, time
from pathlib import Path
from rtmeter.host.owned import own_beside
with own_beside(Path(sys.argv[1]), ".rows-[a]-") as folder:
    (folder / "rows").write_text("half")
    print(folder, flush=True)
    time.sleep(600)
"""


def holder(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, parent], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_is_removed_and_what_a_running_one_has_is_not(tmp_path: Path) -> None:
    killed, left = holder(tmp_path)
    running, its = holder(tmp_path)
    try:
        assert left.is_dir() and its.is_dir()
        killed.kill()
        assert killed.wait(60) == -signal.SIGKILL
        (tmp_path / ".rows-b-1").mkdir()
        with own_beside(tmp_path, ".rows-[a]-") as own:
            assert sorted(tmp_path.iterdir()) == sorted([own, its, tmp_path / ".rows-b-1"])
            assert (its / "rows").read_text() == "half"
        assert not own.exists()
    finally:
        for process in (killed, running):
            process.kill()
            process.communicate()


def test_a_link_that_has_such_a_name_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / ".rows-1").symlink_to(tmp_path / "mine")
    with own_beside(tmp_path, ".rows-"), pytest.raises(FileExistsError):
        (tmp_path / "mine").mkdir()
    assert (tmp_path / ".rows-1").is_symlink()
