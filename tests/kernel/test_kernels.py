"""Debian's PREEMPT_RT kernel and its ordinary one, booted in an emulated machine (tools/kernel-guest.sh).

Slow, and meaningless for timing: what is asserted is that things are there, set, read back and undone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rtmeter import cli
from rtmeter.results import store
from stored import cell_json

ROOT = Path(__file__).resolve().parent.parent.parent
KERNELS = ("rt", "ordinary")
LIMIT_S = 1500
CHECKS = ["-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider", "-o", "timeout=0", "-rA"]
CHECKS += ["-o", "pythonpath=src bench tests"]  # the last of these comes by a conftest elsewhere

pytestmark = [
    pytest.mark.full_only("boots two kernels in an emulated machine; make test-kernel runs it"),
    pytest.mark.timeout(2 * LIMIT_S + 60),
]


@pytest.fixture(scope="module")
def guests(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, tuple[Path, subprocess.CompletedProcess[str]]]:
    """What each kernel left in its folder, and what its checks said; both run at the same time."""

    def run(kernel: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
        out = tmp_path_factory.mktemp(kernel)
        command = [ROOT / "tools" / "kernel-guest.sh", kernel, out, sys.executable, *CHECKS]
        command += [ROOT / "tests" / "kernel" / name for name in ("guest_checks.py", "guest_settings.py")]
        limit = os.environ | {"LIMIT_S": str(LIMIT_S)}
        return out, subprocess.run(command, env=limit, capture_output=True, text=True, check=False)

    with ThreadPoolExecutor() as threads:
        return dict(zip(KERNELS, threads.map(run, KERNELS), strict=True))


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_each_kernel_has(kernel: str, guests: dict[str, Any]) -> None:
    _, done = guests[kernel]
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_check_tells_the_kernels_apart(guests: dict[str, Any]) -> None:
    found = {kernel: json.loads((out / "findings.json").read_text()) for kernel, (out, _) in guests.items()}
    assert "kernel_not_preempt_rt" in found["ordinary"].keys() - found["rt"].keys()


def test_the_results_of_both_are_one_report(
    guests: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    merged = tmp_path / "merged"
    merged.mkdir()
    for kernel, (out, _) in guests.items():
        (out / "results").rename(merged / kernel)
    cells = [cell_json(folder) for folder in store.cell_folders(merged)]
    kernels = [cell["machine"]["kernel"] for cell in cells]
    assert sorted({kernel.endswith("-rt-amd64") for kernel in kernels}) == [False, True]
    assert len(cells) == 6
    for cell in cells:
        counts = cell["summary"]["counts"]
        assert (cell["status"], cell["valid"], counts["released"]) == ("complete", True, 100)
        assert cell["machine"]["virtual_machine"] == "qemu-tcg"
    assert cli.invoke(["report", str(merged), "-o", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "its timing means nothing" in page
    assert all(kernel in page for kernel in set(kernels))
