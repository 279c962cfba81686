"""What probes say without end or sense, and a front that nobody hears any more, shown on the fake probe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_supervise import rows, run

from rtmeter.measure.probe import probe_process
from rtmeter.results import store
from stored import cell_json
from waiting import until

pytestmark = pytest.mark.usefixtures("fake_probe")


def test_status_lines_that_no_parser_and_no_number_holds_are_doubts(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    record = run(tmp_path, "bracketed", watch=seen.append)
    assert seen == []
    assert [w["message"].partition(" status")[0] for w in record["warnings"]] == ["4"]


def test_an_error_without_words_is_still_one(tmp_path: Path) -> None:
    record = run(tmp_path, "inarticulate")
    assert (record["status"], record["error"]["message"]) == ("failed", "died in mid-run (exit code 1)")
    assert "malformed_status" in [w["type"] for w in record["warnings"]]


def test_whoever_talks_much_is_quoted_all_the_same(tmp_path: Path) -> None:
    assert run(tmp_path, "talkative")["error"]["message"] == "CPU 9 does not exist"


@pytest.mark.timeout(240)
def test_what_a_probe_prints_fills_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_process, "MOST_PRINTED_BYTES", 10_000)
    monkeypatch.setattr(probe_process, "FIRST_PRINTED_BYTES", 6)
    record = run(tmp_path, "printing")
    assert (record["status"], record["valid"]) == ("complete", True)
    assert [w["type"] for w in record["warnings"]] == ["printed_too_much"]
    assert (tmp_path / "cell" / store.STDERR).read_text() == "first\nlast\n"


@pytest.mark.timeout(300)
def test_a_run_whose_terminal_hangs_up_is_kept(tmp_path: Path, fake_probe: Path) -> None:
    ours, theirs = os.openpty()
    command = ["measure", "wakeup", "--adapter", "fake", "--samples", "100000", "--warm-up", "3ms"]
    command += ["--option", "behave=slow", "--out", "cell"]
    process = subprocess.Popen(
        [sys.executable, "-m", "rtmeter", *command],
        cwd=tmp_path,
        env=os.environ | {"RTMETER_PROBE_PATH": str(fake_probe.parent)},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    log = tmp_path / "cell.partial" / store.CLIENT_LOG
    until(lambda: log.is_file() and log.stat().st_size > 3000, of=process)
    os.close(ours)
    process.send_signal(signal.SIGHUP)
    assert process.wait() == 1
    record = cell_json(tmp_path / "cell")
    assert (record["status"], record["valid"]) == ("interrupted", True)
    assert rows(tmp_path / "cell") == record["summary"]["counts"]["released"] + 3


SHOWS = """
from rtmeter.cli.progress import showing
with showing() as show:
    show("begins", 0.0, "start")
    show("ends", 1.0, "end")
"""


def test_progress_that_nobody_reads_ends_nothing() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    assert subprocess.run([sys.executable, "-c", SHOWS], stderr=theirs).returncode == 0
    os.close(theirs)
