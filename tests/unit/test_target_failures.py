"""What goes wrong with a target, each by itself: a link cut at any step, and what may lack there."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rigs_here import program, rig, ssh
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.conditions.target import held
from rtmeter.host import lock, remote_lock
from rtmeter.host.ssh import PROGRAM
from rtmeter.measure.cell import run_cell
from rtmeter.measure.probe.supervise import Stop
from rtmeter.results.record import CellRecord

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a namespace of its own")

URL = "ssh://board"


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a target that answers."""
    monkeypatch.setenv(PROGRAM, ssh(tmp_path))
    rig(tmp_path, "board")
    return tmp_path / "board"


def ran(folder: Path, **more: Any) -> CellRecord:
    """A null cell there."""
    given = {
        "measurement": "wakeup",
        "adapter": "null",
        "period": "1ms",
        "samples": 20,
        "warm_up": "0",
        "on": URL,
    }
    cell = cell_from(settle(given | more), "cell", {})
    return run_cell(cell, folder, Stop(), lambda event: None)


def test_a_link_that_is_cut_before_the_log_is_here_fails_the_cell_and_nothing_else(
    board: Path, tmp_path: Path
) -> None:
    logins, cut, command = tmp_path / "logins", tmp_path / "cut", tmp_path / "ssh"
    text = command.read_text()
    count = (
        f'test "$(wc -l <{logins})" != "$(cat {cut})" || {{ echo "ssh: Connection closed" >&2; exit 255; }}\n'
    )
    command.write_text(text.replace("exec unshare", count + "exec unshare"))
    failed, whole = 0, []
    for step in itertools.count(1):
        logins.write_text("")
        cut.write_text(str(step))
        record = ran(tmp_path / f"cell{step}")
        if len(logins.read_text().splitlines()) < step:  # nothing was cut
            break
        if record.status == "complete":  # all is here
            whole += [warning.type for warning in record.warnings]
            continue
        assert record.status == "failed" and record.error is not None, step
        assert record.error.value == URL or URL in record.error.message or "died" in record.error.message, (
            step
        )
        assert record.error.remedy, step
        failed += 1
    assert failed >= 6  # looked at, carried, asked what it is, given its config, started, brought back
    assert whole == ["folder_not_removed"]
    assert record.status == "complete" and record.valid
    assert not (board / "state" / "journal").exists()


def test_why_a_probe_died_is_told_before_why_its_log_is_not_here(board: Path, tmp_path: Path) -> None:
    text, command = (tmp_path / "ssh").read_text(), tmp_path / "ssh"
    refused = '*"--config"* | *"test ! -e"*) echo "ssh: Connection refused" >&2; exit 255;;'
    command.write_text(text.replace("exec unshare", f'case "$last" in {refused} esac\nexec unshare'))
    record = ran(tmp_path / "cell")
    assert record.status == "failed" and record.error is not None
    died, _, its_log = record.error.message.partition(f"; its log on {URL}: ")
    assert died == "died in mid-run (exit code 255)" and "Connection refused" in its_log
    folder = next((board / "tmp").iterdir())
    assert str(record.error.remedy).startswith(f"its log stays there, in {folder}; start sshd there")


def ran_in_vain(board: Path, folder: Path, words: str, remedy: str, **more: Any) -> None:
    """The cell fails, with these words and this remedy, and nothing stays there."""
    record = ran(folder, **more)
    assert record.status == "failed" and record.error is not None
    assert words in str(record.error.as_error), record.error
    assert remedy in str(record.error.remedy), record.error
    assert list((board / "tmp").iterdir()) == []


def test_a_target_of_another_architecture_is_named(board: Path, tmp_path: Path) -> None:
    program(board, "uname", "echo mips")
    ran_in_vain(board, tmp_path / "cell", "another architecture (mips", "built for mips")


def test_a_target_without_stress_ng_says_so(board: Path, tmp_path: Path) -> None:
    for folder in map(Path, ("/bin", "/usr/bin")):
        for one in folder.iterdir():
            if one.name != "stress-ng" and not (board / "bin" / one.name).exists():
                (board / "bin" / one.name).symlink_to(one)
    command = tmp_path / "ssh"
    command.write_text(command.read_text().replace("$1/bin:$PATH", "$1/bin"))
    words = f"needs stress-ng, which is not in the PATH of {URL}"
    ran_in_vain(board, tmp_path / "cell", words, "apt-get install stress-ng", load="cpu=1")


def test_a_target_without_root_says_so(board: Path, tmp_path: Path) -> None:
    program(board, "id", "echo 1000")
    program(board, "dd", "echo 'dd: failed to open: Permission denied' >&2; exit 1")
    ran_in_vain(board, tmp_path / "cell", "rt_throttling", "root", conditions={"rt_throttling": "off"})


def test_a_target_without_room_says_so(board: Path, tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", board / "tmp"], check=True)
    try:
        ran_in_vain(board, tmp_path / "cell", "No space left", "free space in its /tmp")
    finally:
        subprocess.run(["umount", "--lazy", board / "tmp"], check=True)


def test_the_lock_of_a_target_that_is_this_machine_is_not_taken_twice(
    board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []
    monkeypatch.setattr(remote_lock, "take", lambda shell, _: taken.append(shell.ssh.target))
    monkeypatch.setenv("RTMETER_STATE_DIR", str(tmp_path / "state"))
    with lock.machine_lock("a test"), held(URL):
        assert taken == [URL]  # it booted another time, so it is another machine
    own = Path("/proc/sys/kernel/random/boot_id").read_text()
    (board / "boot_id").write_text(own)
    with lock.machine_lock("a test"), held(URL):
        assert taken == [URL]
    with held(URL):
        assert taken == [URL, URL]
