"""One rtmeter a machine: the second refuses, or waits; the lock dies with its holder."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rtmeter.errors import RtmeterError
from rtmeter.machine_lock import machine_lock

HOLD = """
import sys, time
from rtmeter.machine_lock import machine_lock
with machine_lock("rtmeter run long.yaml"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(state_folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_second_refuses_and_says_who_holds_it(holder: subprocess.Popen[str]) -> None:
    try:
        with pytest.raises(RtmeterError) as caught, machine_lock("another"):
            pass
    finally:
        holder.kill()
        holder.communicate()
    assert (
        f"rtmeter run long.yaml of {pwd.getpwuid(os.getuid()).pw_name}, process {holder.pid}"
        in caught.value.message
    )
    assert "--wait" in str(caught.value.remedy)


def test_the_lock_dies_with_its_holder_and_who_waits_gets_it(holder: subprocess.Popen[str]) -> None:
    told: list[str] = []
    killer = threading.Timer(0.5, holder.send_signal, [signal.SIGKILL])
    killer.start()
    with machine_lock("another", wait=True, on_wait=told.append):
        assert holder.wait() == -signal.SIGKILL
    assert len(told) == 1 and "long.yaml" in told[0]
    holder.communicate()


def test_it_is_free_again_and_not_inherited(state_folder: Path) -> None:
    with machine_lock("first"):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with machine_lock("second"):
            pass
    finally:
        child.kill()
        child.wait()


def test_a_file_of_another_user_can_be_locked(state_folder: Path) -> None:
    """As one who may only read it: the lock needs no more."""
    state_folder.mkdir()
    path = state_folder / "rtmeter.lock"
    path.write_text("no JSON")
    path.chmod(0o444)
    with (
        machine_lock("first"),
        pytest.raises(RtmeterError, match="one measures here already"),
        machine_lock("x"),
    ):
        pass


def test_without_a_place_for_it_says_so(state_folder: Path) -> None:
    state_folder.write_text("")
    with pytest.raises(RtmeterError, match="RTMETER_STATE_DIR"), machine_lock("first"):
        pass
