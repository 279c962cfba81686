"""Privileges by capabilities: a user without any runs a probe that has two of them, and needs no root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtmeter.measure.probe.probes import find_probes
from rtmeter.samples import LogReader

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setcap") is None,
    reason="needs root, who may give capabilities, and setcap",
)

USER = 65534
REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference.md"
SETCAP = "setcap cap_sys_nice,cap_ipc_lock+ep"


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that the user can reach and write to."""
    with tempfile.TemporaryDirectory() as made:
        os.chown(made, USER, USER)
        yield Path(made)


def run_as_user(folder: Path, probe: Path) -> subprocess.CompletedProcess[str]:
    """A run that asks for FIFO 80 and locked memory, where no limit allows either."""
    config = {"version": 1, "log": str(folder / "run.rtlog"), "measurement": "wakeup", "samples": 20}
    config |= {"period_ns": 1_000_000, "lock_memory": True}
    config |= {"scheduling": {"policy": "fifo", "priority": 80}}
    (folder / "config.json").write_text(json.dumps(config))
    limits = ["prlimit", "--rtprio=0", "--memlock=65536"]
    user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--bounding-set=-sys_admin"]
    command = [*limits, *user, str(probe), "--config", str(folder / "config.json")]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_two_capabilities_do_for_real_time_priority_and_locked_memory(folder: Path) -> None:
    probe = folder / "rtmeter-probe-posix"
    shutil.copy(find_probes()["posix"], probe)
    without = run_as_user(folder, probe)
    assert without.returncode != 0 and "CAP_" in without.stdout
    (folder / "run.rtlog").unlink(missing_ok=True)
    assert f"`sudo {SETCAP} PROBE`" in REFERENCE.read_text()
    subprocess.run([*SETCAP.split(), probe], check=True)
    done = run_as_user(folder, probe)
    assert done.returncode == 0, done.stdout + done.stderr
    effective = LogReader(folder / "run.rtlog").meta["effective"]
    assert effective["scheduling"] == {"policy": "fifo", "priority": 80}
    assert effective["memory_locked"] is True
