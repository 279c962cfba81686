"""Whatever the front waits for, it ends: some time after the first signal, and at the second."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

WAITING = """
import subprocess, sys, time
from rtmeter.cli import interrupt
from rtmeter.host.ending import STARTED, Killed
interrupt.PATIENCE_S = {patience_s}
with interrupt.stopping([]) as stop:
    stop.keeping = {keeping}
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    STARTED.add(child.pid)
    try:
        print("waits", flush=True)
        time.sleep({waits_s})
    except Killed:
        print("killed", child.wait(60), flush=True)
print("went on", flush=True)
child.kill()
"""


@contextmanager
def waiting(
    patience_s: float, waits_s: float = 600, *, keeping: bool = False
) -> Iterator[subprocess.Popen[str]]:
    code = WAITING.format(patience_s=patience_s, waits_s=waits_s, keeping=keeping)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_ends_by_force_if_it_has_not_ended_in_time(number: signal.Signals) -> None:
    with waiting(patience_s=0.2) as process:
        process.send_signal(number)
        out, err = process.communicate()  # its child holds the pipe, so this would wait for it
    assert (process.returncode, out) == (1, "")
    assert "ending" in err and "rtmeter: killed" in err


@pytest.mark.timeout(120)
def test_the_second_signal_ends_any_wait_and_kills_what_was_started() -> None:
    with waiting(patience_s=600) as process:
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        process.stderr.readline(), process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
    assert (process.returncode, out) == (0, "killed -9\nwent on\n")


@pytest.mark.timeout(120)
def test_what_was_measured_is_stored_however_long_that_takes() -> None:
    with waiting(patience_s=0.1, waits_s=1, keeping=True) as process:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate()
    assert (process.returncode, out) == (0, "went on\n")
    assert "rtmeter: killed" not in err
