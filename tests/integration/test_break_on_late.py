"""`--break-on-late`, and the same of a program's own loop: over a trace that is only files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from front import Done

MINE = """
import sys, time
from rtmeter.loop import Loop
late = []
with Loop("arm", "1ms", folder=sys.argv[1], warm_up=1, trace_marker=True, break_trace=True,
          on_late=lambda k, release_ns, stamp_ns: late.append(k)) as loop:
    t0 = time.monotonic_ns() - 10**9
    for k in range(10):
        loop.wake(t0 + k * 10**6)  # long past: all are late
        loop.done()
print(late)
"""


@pytest.fixture
def tracefs(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("needs root: mounts in a namespace of its own")
    folder = tmp_path / "tracing"
    folder.mkdir()
    (folder / "trace_marker").write_text("")
    (folder / "tracing_on").write_text("1")
    return folder


def over(tracefs: Path | None, *command: object) -> Done:
    """The command where the kernel's trace is these files, or is not there."""
    mount = (
        f"mount --bind {tracefs} /sys/kernel/tracing"
        if tracefs
        else "mount -t tmpfs none /sys/kernel/tracing"
    )
    also = "mount -t tmpfs none /sys/kernel/debug 2>/dev/null; true"
    inside: Sequence[object] = ("unshare", "-m", "sh", "-c", f'{mount} && {{ {also}; }} && exec "$@"', "sh")
    words = [str(word) for word in (*inside, *command)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def measured(tracefs: Path | None, tmp_path: Path, *more: object, deadline: str = "1ms") -> Done:
    script = tmp_path / "script.csv"
    script.write_text(
        "wake_delay_ns\n" + "".join(f"{5_000_000 if k == 30 else 10_000}\n" for k in range(2000))
    )
    front = (sys.executable, "-m", "rtmeter", "measure", "wakeup", "--adapter", "null")
    cell = ("--script", script, "--samples", 1000, "--warm-up", 0, "--deadline", deadline, "--json")
    return over(tracefs, *front, *cell, "--out", tmp_path / "cell", *more)


def test_the_first_late_release_stops_the_trace_and_the_run(tracefs: Path, tmp_path: Path) -> None:
    done = measured(tracefs, tmp_path, "--break-on-late")
    cell = json.loads((tmp_path / "cell" / "cell.json").read_text())
    assert (tracefs / "tracing_on").read_text() == "0"
    marker = (tracefs / "trace_marker").read_text()
    assert marker == "rtmeter: probe: release 30 is late by 5000000 ns\n", done.err
    [doubt] = [one for one in cell["warnings"] if one["type"] == "broke_on_late"]
    assert doubt["message"].startswith("release 30 missed the deadline: the kernel's trace was stopped")


def test_a_round_trips_skipped_release_counts_to_the_answer_that_serves_it(
    tracefs: Path, tmp_path: Path
) -> None:
    """Answers after 1.3 and 4.9 ms make the next releases wait, the first of them not for too long."""
    delays = {10: 1_300_000, 30: 4_900_000, 35: 3_000_000}
    script = tmp_path / "script.csv"
    script.write_text("reply_delay_ns\n" + "".join(f"{delays.get(k, 100_000)}\n" for k in range(2000)))
    front = (sys.executable, "-m", "rtmeter", "measure", "roundtrip", "--adapter", "null", "--period", "1ms")
    cell = ("--script", script, "--samples", 1000, "--warm-up", 0, "--deadline", "5ms", "--break-on-late")
    done = over(tracefs, *front, *cell, "--out", tmp_path / "cell")
    marker = (tracefs / "trace_marker").read_text()
    assert marker == "rtmeter: probe: release 31 is late by 7000000 ns\n", done.err


@pytest.mark.parametrize(
    ("measurement", "column", "delay_ns", "marked"),
    [("roundtrip", "reply_delay_ns", 10**9, "30"), ("wakeup", "wake_delay_ns", 1_500_000, "31")],
)
def test_a_lost_or_a_skipped_release_is_late_by_the_deadline_at_least(
    tracefs: Path, tmp_path: Path, measurement: str, column: str, delay_ns: int, marked: str
) -> None:
    script = tmp_path / "script.csv"
    script.write_text(f"{column}\n" + "".join(f"{delay_ns if k == 30 else 10_000}\n" for k in range(2000)))
    front = (sys.executable, "-m", "rtmeter", "measure", measurement, "--adapter", "null", "--period", "1ms")
    cell = ("--script", script, "--samples", 1000, "--warm-up", 0, "--deadline", "2ms", "--break-on-late")
    done = over(tracefs, *front, *cell, "--overrun", "skip", "--out", tmp_path / "cell")
    marker = (tracefs / "trace_marker").read_text()
    assert marker == f"rtmeter: probe: release {marked} is late by 2000000 ns\n", done.err


def test_a_marker_that_cannot_be_written_keeps_no_trace_from_being_stopped(
    tracefs: Path, tmp_path: Path
) -> None:
    (tracefs / "trace_marker").unlink()
    (tracefs / "trace_marker").symlink_to("/dev/full")
    measured(tracefs, tmp_path, "--break-on-late")
    assert (tracefs / "tracing_on").read_text() == "0"


def test_without_a_late_release_nothing_is_touched(tracefs: Path, tmp_path: Path) -> None:
    done = measured(tracefs, tmp_path, "--break-on-late", deadline="10ms")
    assert done.code == 0, done.err
    assert ((tracefs / "tracing_on").read_text(), (tracefs / "trace_marker").read_text()) == ("1", "")
    assert json.loads((tmp_path / "cell" / "cell.json").read_text())["status"] == "complete"


def test_a_trace_that_is_not_there_is_an_error(tmp_path: Path, tracefs: Path) -> None:
    done = measured(None, tmp_path, "--break-on-late")
    assert done.code == 1
    assert "--break-on-late" in done.err
    assert "mount tracefs" in done.out + done.err


def test_an_own_loop_marks_and_stops_it_once(tracefs: Path, tmp_path: Path) -> None:
    done = over(tracefs, sys.executable, "-c", MINE, tmp_path / "results")
    assert done.code == 0, done.err
    late = json.loads(done.out)
    assert late[0] == 1, "the warm-up's is not told"
    assert (tracefs / "tracing_on").read_text() == "0"
    [line] = (tracefs / "trace_marker").read_text().splitlines()
    assert line.startswith(f"rtmeter: arm: release {late[0]} is late by ")
