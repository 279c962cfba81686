"""What a session of tests leaves behind is named, with the file that did."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import leftovers
from leftovers import KINDS, SEGMENTS, Leftovers
from waiting import until


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In place of /dev/shm."""
    folder = tmp_path / "dev" / "shm"
    folder.mkdir(parents=True)
    monkeypatch.setattr(leftovers, "SHARED", folder)
    monkeypatch.setattr(leftovers, "KINDS", {**KINDS, "shared memory": (str(folder), SEGMENTS)})
    yield folder


def session(**ran: tuple[float, float]) -> Leftovers:
    found = Leftovers()
    found.ran |= {f"{name}.py": times for name, times in ran.items()}
    return found


def lines_of(found: Leftovers, name: str) -> list[str]:
    return [line for line in found.told() if name in line]


def test_a_segment_that_nobody_uses_is_told_with_who_ran_when_it_came(shared: Path) -> None:
    now = time.time()
    (shared / "fastdds_before").touch()
    found = session(early=(now - 100, now - 50), beside=(now - 5, now + 500), late=(now + 400, now + 500))
    (shared / "fastdds_left").touch()
    assert lines_of(found, "fastdds") == [f"shared memory {shared}/fastdds_left: by beside.py"]


def test_a_segment_in_use_is_not_left(shared: Path) -> None:
    found = session()
    used = shared / "fastdds_used"
    with used.open("w"):
        (shared / "fastdds_use").touch()  # not the same
        assert lines_of(found, "fastdds") == [f"shared memory {shared}/fastdds_use: by none that ran then"]
        (shared / "fastdds_use").unlink()
    assert len(lines_of(found, "fastdds")) == 1


def test_a_namespace_that_a_process_is_in_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "KINDS", {"network namespace": (str(tmp_path), ("rtm*",))})
    found = session()
    (tmp_path / "rtm-ours").symlink_to("/proc/self/ns/net")
    assert lines_of(found, "namespace") == []
    (tmp_path / "rtm-none").touch()
    assert lines_of(found, "namespace") == [f"network namespace {tmp_path}/rtm-none: by none that ran then"]


def test_a_process_is_told_with_the_file_whose_tests_started_it() -> None:
    ended = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", ended], stdin=subprocess.PIPE) as process:
        told = [line for line in session().told() if line.startswith(f"process {process.pid} ")]
        assert told == [
            f"process {process.pid} ({Path(sys.executable).name}): by tests/unit/test_leftovers.py"
        ]
    until(lambda: f"process {process.pid} " not in "\n".join(session().told()))


def test_only_segments_whose_participant_is_gone_are_removed(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fastdds_gone", "fastdds_lives", "fastdds_begins", "fastdds_port7000"):
        for path in (shared / name, shared / f"{name}_el", shared / f"sem.{name}_mutex"):
            path.touch()
    (shared / "another").touch()
    for name in ("fastdds_port1", "sem.fastdds_port1_mutex", "fastdds_port2"):  # without a lock
        (shared / name).touch()
    monkeypatch.setattr(leftovers, "YOUNG_S", -1)
    begins = (shared / "fastdds_begins_el").open()  # and is about to lock it
    with begins, (shared / "fastdds_port2").open(), (shared / "fastdds_lives_el").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        leftovers.remove_segments()
    left = {path.name for path in shared.iterdir()}
    lives = {f"fastdds_{name}" for name in ("lives", "lives_el", "begins", "begins_el", "port2")}
    assert left == lives | {"sem.fastdds_lives_mutex", "sem.fastdds_begins_mutex", "another"}
