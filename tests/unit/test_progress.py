"""Progress: what is said of a run, and where."""

from __future__ import annotations

import contextlib
import itertools
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rtmeter import cli
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.cli import exit_codes, output
from rtmeter.cli.progress import Progress, progress_for
from rtmeter.cli.rigs_progress import rigs_progress
from rtmeter.errors import RtmeterError
from rtmeter.model import Cell, Requirement, Rig, Verdict
from rtmeter.results.record import Failure
from stored import record
from wakeups import draw, write_wakeups


def cell(name: str, duration: str) -> Cell:
    given = {"measurement": "wakeup", "adapter": "posix", "duration": duration, "warm_up": "1s"}
    return cell_from(settle(given), name, {})


CELLS = [cell("a", "9s"), cell("b", "59s"), cell("c", "1h")]


def event(released: int, **changes: Any) -> dict[str, Any]:
    return {"released": released, "of": 10_000, "max_ns": None, "lost": 0, "skipped": 0} | changes


def test_it_says_what_is_done_and_what_is_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, float, str]] = []
    now = [0.0]
    monkeypatch.setattr(time, "monotonic_ns", lambda: int(now[0] * 1e9))
    progress = Progress(CELLS, lambda *words: said.append(words))
    hear = progress.watch(0, CELLS[0])
    hear(event(100, max_ns=123_456))
    now[0] = 40.0  # four times as slow as planned
    hear(event(5_000, max_ns=5_000_000, lost=2, skipped=1_000))
    progress.ended(0, record("a"))
    progress.kept(1)
    assert said == [
        ("[1/3] a: starts, 1:01:11 left", 0.0, "start"),
        ("[1/3] a: 1%, max 123.5 us, 1:01:10 left", 0.01, "during"),
        ("[1/3] a: 50%, max 5,000.0 us, 2 lost, 1,000 skipped, 1:01:41 left", 0.5, "during"),
        ("[1/3] a: complete", 1.0, "end"),
        ("[2/3] b: done before", 1.0, "end"),
    ]


def test_what_cells_take_to_start_and_end_is_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first took 100 s more than planned: the one after the second takes as much more, too. One that
    failed at once tells nothing."""
    said: list[str] = []
    now = [1.0]
    monkeypatch.setattr(time, "monotonic_ns", lambda: int(now[0] * 1e9))
    progress = Progress(CELLS, lambda words, *_: said.append(words))
    planned_s = [cell.planned_ns // 10**9 for cell in CELLS]
    progress.watch(0, CELLS[0])
    now[0] += planned_s[0] + 100
    progress.ended(0, record("a"))
    failed = {"status": "failed", "valid": False, "error": Failure.of(RtmeterError("it died"))}
    progress.ended(0, record("a", **failed))
    progress.watch(1, CELLS[1])
    left = timedelta(seconds=planned_s[1] + planned_s[2] + 100)
    assert said[-1] == f"[2/3] b: starts, {left} left"


PASSED = Verdict("pass", "none late", Requirement(1_000_000), "latency", 9, 0, 0, 0, 0, 0.0, 0.3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "complete", "valid": False}, "complete, invalid"),
        ({"status": "interrupted"}, "interrupted"),
        (
            {"status": "failed", "valid": False, "error": Failure.of(RtmeterError("it died"))},
            "failed: it died",
        ),
        ({"verdict": PASSED}, "complete: pass: none late"),
    ],
)
def test_it_says_how_a_cell_ended(changes: dict[str, Any], words: str) -> None:
    said: list[str] = []
    Progress(CELLS, lambda text, *_: said.append(text)).ended(0, record("a", **changes))
    assert said == [f"[1/3] a: {words}"]


def test_lines_come_now_and_then_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress_for(CELLS) as progress:
        hear = progress.watch(0, CELLS[0])
        for second in range(25):
            now[0] = 100.0 + second
            hear(event(second * 100))
    said = capsys.readouterr()
    assert said.out == ""
    assert [line.split(",")[0] for line in said.err.splitlines()] == [
        "[1/3] a: starts",
        "[1/3] a: 10%",
        "[1/3] a: 20%",
    ]


@contextlib.contextmanager
def nobody_reads() -> Iterator[list[int]]:
    """Standard error is a pipe whose reader has gone; what was let go is told, and is that pipe."""
    reader, writer = os.pipe()
    os.close(reader)
    told: list[int] = []
    let_go = output.let_go
    with pytest.MonkeyPatch.context() as patched, os.fdopen(writer, "w", buffering=1) as gone:
        patched.setattr(sys, "stderr", gone)
        patched.setattr(output, "let_go", lambda descriptor: (told.append(descriptor), let_go(writer)))
        yield told
        let_go(writer)


def test_who_looks_at_rigs_may_go() -> None:
    cells = [replace(one, rig=Rig(f"rig{number}", "ssh://robot")) for number, one in enumerate(CELLS)]
    with nobody_reads() as told, rigs_progress(cells) as progress:
        for number, one in enumerate(cells):
            watcher = progress.watcher(f"rig{number}")
            watcher.says("waits")
            watcher.watch(number, one)(event(5_000))
            watcher.ended(number, record(one.id))
    assert [row.done for row in progress.rows.values()] == [1, 1, 1]
    assert told == [2]


def test_metrics_that_cannot_be_written_end_nothing_where_nobody_reads_that(tmp_path: Path) -> None:
    progress = Progress(CELLS, lambda *_: None, tmp_path / "gone" / "rtmeter.prom")
    progress.follow("a run", lambda cell: tmp_path / cell.id)
    with nobody_reads() as told:
        progress.watch(0, CELLS[0])(event(5_000))
    assert told == [2]


def test_a_terminal_shows_a_bar_and_the_results_stay_apart(tmp_path: Path, fake_probe: Path) -> None:
    terminal, side = pty.openpty()
    shown = bytearray()

    def read() -> None:
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(terminal, 1 << 16):
                shown.extend(piece)

    reader = threading.Thread(target=read)
    reader.start()
    command = [sys.executable, "-m", "rtmeter", "measure", "wakeup", "--adapter", "fake", "--samples", "97"]
    try:
        done = subprocess.run(
            [*command, "--warm-up", "3ms", "--json", "--out", tmp_path / "cell"],
            env=os.environ
            | {
                "RTMETER_PROBE_PATH": str(fake_probe.parent),
                "TERM": "xterm",
                "COLUMNS": "120",
            },
            stdout=subprocess.PIPE,
            stderr=side,
            timeout=240,
            check=True,
        )
    finally:
        os.close(side)
        reader.join()
        os.close(terminal)
    assert b"[1/1] wakeup-fake" in shown
    assert b"0 of 1 cells done" in shown  # the picture of the cell
    assert b"\x1b[" in shown
    assert done.stdout.startswith(b"{")


def test_reading_for_long_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_wakeups(tmp_path / "day", draw(1, 1000))
    verdict = ["verdict", str(tmp_path / "day"), "--deadline", "10ms"]
    assert cli.invoke(verdict) == exit_codes.PASS
    soon = capsys.readouterr()
    assert soon.err == ""
    now = itertools.count(100.0, 3.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    assert cli.invoke(verdict) == exit_codes.PASS
    late = capsys.readouterr()
    assert late.err == "day: 1,000 releases read, 100%\n"
    assert late.out == soon.out
