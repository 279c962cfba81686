"""On a machine with cgroup version 1: in namespaces of its own, where only version 2 is mounted.

The kernel gives a controller to one version, so there version 2 has none that version 1 uses; with cpusets of
version 2 the kernel guests test (`make test-kernel`).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from front import rtmeter
from rtmeter.host import cgroups
from rtmeter.host.root import Root
from stored import cell_json

ONLY_V2 = 'umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"'
INSIDE = ["unshare", "--mount", "--cgroup", "sh", "-ec", ONLY_V2, "sh"]
MEASURE = ["measure", "wakeup", "--adapter", "posix", "--samples", "20", "--warm-up", "0s"]


@pytest.fixture(autouse=True)
def _version_1_is_here() -> None:
    found = cgroups.find("cpuset", Root())
    if os.geteuid() != 0 or found is None or found.version != 1:
        pytest.skip("needs root, and cpusets of cgroup version 1")
    done = subprocess.run([*INSIDE, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"version 2 cannot be mounted here: {done.stderr.strip()}")


def test_a_run_with_real_time_priority(tmp_path: Path) -> None:
    done = rtmeter(*MEASURE, "--scheduling", "fifo:10", "--out", tmp_path / "cell", inside=INSIDE)
    assert done.code == 0, done.err
    cell = cell_json(tmp_path / "cell")
    assert (cell["status"], cell["effective"]["scheduling"]["policy"]) == ("complete", "fifo")


def test_cpusets_that_version_1_keeps_are_told(tmp_path: Path) -> None:
    done = rtmeter(*MEASURE, "--condition", "isolate=0", "--out", tmp_path / "cell", inside=INSIDE)
    assert done.code == 1
    assert "--condition isolate = '0': there are no cpusets here; mount the cpuset controller" in done.err
    assert not (tmp_path / "cell").exists()


def test_what_cannot_be_checked_is_unknown() -> None:
    found = {finding["id"]: finding for finding in rtmeter("check", "--json", inside=INSIDE).json["findings"]}
    assert (found["cpuset_overlap"]["grade"], found["cpuset_overlap"]["value"]) == (
        "unknown",
        "no cgroups with cpusets are mounted",
    )
