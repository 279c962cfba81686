"""Privileges by capabilities: a user without any runs a probe that has two of them, and needs no root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setcap") is None,
    reason="needs root, who may give capabilities, and setcap",
)

USER = 65534
REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference.md"
SETCAP = "setcap cap_sys_nice,cap_ipc_lock+ep"


def run_as_user(folder: Path, probe: Path) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and status lines of a run that asks for FIFO 80 and locked memory, without limits for it."""
    config = {
        "version": 1,
        "log": str(folder / f"{probe.name}.rtlog"),
        "measurement": "wakeup",
        "samples": 20,
    }
    config |= {"warm_up": 0, "period_ns": 1_000_000, "role": "single", "lock_memory": True}
    config |= {"scheduling": {"policy": "fifo", "priority": 80}}
    (folder / "config.json").write_text(json.dumps(config))
    limits = ["prlimit", "--rtprio=0", "--memlock=65536"]
    user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"]
    done = subprocess.run(
        [*limits, *user[:-1], str(probe), "--config", str(folder / "config.json")],
        capture_output=True,
        text=True,
        stdin=None,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]
