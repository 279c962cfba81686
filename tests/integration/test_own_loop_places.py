"""A program's own loop where it is uncomfortable: in a time namespace, on a disk that is full."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rtmeter
from rtmeter.samples.segments import SegmentedLog

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and mounts of its own")

SLEEPS = """
import sys
from rtmeter.loop import Loop
with Loop("arm", "1ms", folder=sys.argv[1], warm_up="5ms", miss_ratio=0.9) as loop:
    for _ in range(100):
        loop.sleep()
        loop.done()
"""

FILLS = """
import sys
import time
from rtmeter.errors import RtmeterError
from rtmeter.loop import Loop
loop = Loop("arm", 1000, folder=sys.argv[1], warm_up=1, miss_ratio=0.9, deadline="1s")
begin = time.monotonic_ns()
for k in range(400_000):  # 600 KiB or more; the disk takes 64
    loop.wake(begin + k * 1000)
    loop.done()
try:
    loop.close()
except RtmeterError as error:
    print(error)
"""


def inside(*command: object) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def test_in_a_time_namespace_its_clock_is_the_namespaces_and_said(tmp_path: Path) -> None:
    shifted = ("unshare", "--fork", "--time", "--monotonic", 5_000_000, "--")
    done = inside(*shifted, sys.executable, "-c", SLEEPS, tmp_path)
    if "unshare failed" in done.stderr:
        pytest.skip("the kernel has no time namespaces")
    assert done.returncode == 0, done.stderr
    [folder] = tmp_path.glob("arm/*.loop")
    clock = SegmentedLog(folder).header["clock"]
    assert clock["time_namespace"]["monotonic_ns"] == 5_000_000 * 10**9
    [cell] = rtmeter.read(tmp_path)._cells.values()
    assert cell.record.valid
    completion = rtmeter.read(tmp_path).summary()[0]["quantities"]["completion"]["per_release"]
    assert 0 <= completion["min_ns"] < 60 * 10**9, "release and stamps are of one clock"


def test_on_a_full_disk_the_program_goes_on_and_its_end_says_why(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    kept = tmp_path / "kept"
    command = f'mount -t tmpfs -o size=64k none {disk} && "$@"; cp -r {disk} {kept}'
    done = inside("unshare", "-m", "sh", "-c", command, "sh", sys.executable, "-c", FILLS, disk)
    assert "No space left on device" in done.stdout, done.stdout + done.stderr
    assert "make room there" in done.stdout
    [cell] = rtmeter.read(kept)._cells.values()
    assert cell.record.summary is not None, "what was written before is there"
