"""Run inside the kernel guests (test_kernels.py starts them): measures while the whole guest is stopped from
outside, and leaves the cell in /out. Until then it leaves /out alone: what serves that interrupts.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from stopping import DEADLINE_MS, PERIOD_MS, RELEASES

from rtmeter.results import store
from waiting import until

OUT = Path("/out")
BUSY = "import os\nos.sched_setaffinity(0, {1})\nwhile True: pass"
"""User code that is on the CPU whenever a timer is due."""
MEASURE = [
    "measure",
    "wakeup",
    "--adapter",
    "posix",
    "--scheduling",
    "fifo:80",
    "--cpus",
    "1",
    "--period",
    f"{PERIOD_MS}ms",
]
MEASURE += ["--samples", str(RELEASES), "--deadline", f"{DEADLINE_MS}ms", "--explain", "--out", "stopped"]


def test_it_is_measured_while_it_is_stopped(tmp_path: Path) -> None:
    Path("/proc/sys/kernel/timer_migration").write_text("0")  # the CPU that user code keeps busy fires them
    busy = subprocess.Popen([sys.executable, "-c", BUSY])
    rtmeter = subprocess.Popen([sys.executable, "-m", "rtmeter", *MEASURE], cwd=tmp_path)
    try:
        log = tmp_path / "stopped.partial" / store.CLIENT_LOG
        until(lambda: log.is_file() and log.stat().st_size > 3000, limit_s=900, of=rtmeter)
        (OUT / "measures").touch()
        rtmeter.wait()
    finally:
        rtmeter.kill()
        busy.kill()
        busy.wait()
    shutil.copytree(tmp_path / "stopped", OUT / "stopped")
