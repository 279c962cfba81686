"""cyclictest on a target: run there, its file read here, and nothing of it stays."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rigs_here import URL, board_at, program
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.measure.cell import run_cell
from rtmeter.measure.probe.supervise import Stop
from rtmeter.results.record import CellRecord
from waiting import until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("cyclictest") is None, reason="needs root and rt-tests"
)


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with board_at(tmp_path, monkeypatch) as board:
        yield board


def ran(folder: Path, stop: Stop | None = None, **more: Any) -> CellRecord:
    given = {"measurement": "wakeup", "adapter": "cyclictest", "samples": 100, "on": URL, "monitor": "1h"}
    cell = cell_from(settle(given | more), "cell", {})
    return run_cell(cell, folder, stop or Stop(), lambda event: None)


def measures(runs: Path) -> bool:
    """Whether a thread of it has slept some times; the first one only waits for the others."""
    if not runs.exists() or not (pid := runs.read_text().strip()):
        return False
    statuses = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/status")]
    lines = [line for status in statuses[1:] for line in status.splitlines()]
    return max((int(line.split()[1]) for line in lines if line.startswith("voluntary")), default=0) > 5


def test_its_values_come_from_there(board: Path, tmp_path: Path) -> None:
    program(board, "cyclictest", f'echo "$@" >{tmp_path}/asked; exec {shutil.which("cyclictest")} "$@"')
    record = ran(tmp_path / "cell", deadline="1s")
    assert record.status == "complete" and record.valid, record.error
    assert record.summary is not None and record.summary.counts["released"] == 100
    assert record.hosts == {"target": URL}
    assert f"--json={board}/tmp/rtmeter-" in (tmp_path / "asked").read_text()
    assert (tmp_path / "cell" / "cyclictest.json").is_file()


def test_one_that_is_interrupted_keeps_what_it_has(board: Path, tmp_path: Path) -> None:
    program(board, "cyclictest", f'echo $$ >{tmp_path}/runs; exec {shutil.which("cyclictest")} "$@"')
    stop = Stop()
    asking = threading.Thread(target=lambda: (until(lambda: measures(tmp_path / "runs")), stop.ask()))
    asking.start()
    record = ran(tmp_path / "cell", stop, samples=1_000_000, period="2ms")
    asking.join()
    assert record.status == "interrupted", record.error
    assert record.summary is None or record.summary.counts["released"] < 1_000_000


def test_where_it_is_missing_or_fails_it_is_said(board: Path, tmp_path: Path) -> None:
    program(board, "cyclictest", "echo no such policy here >&2; exit 7")
    record = ran(tmp_path / "failed")
    assert record.status == "failed" and record.error is not None
    assert record.error.message == "ended with exit code 7: no such policy here"
    command = tmp_path / "ssh"
    command.write_text(command.read_text().replace("$1/bin:$PATH", "$1/bin"))
    (board / "bin" / "cyclictest").unlink()
    for folder in map(Path, ("/bin", "/usr/bin")):
        for one in folder.iterdir():
            if one.name != "cyclictest" and not (board / "bin" / one.name).exists():
                (board / "bin" / one.name).symlink_to(one)
    record = ran(tmp_path / "missing")
    assert record.status == "skipped" and record.error is not None
    assert record.error.message == f"is not installed on {URL}"
    assert "rt-tests" in (record.error.remedy or "")
