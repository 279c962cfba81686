"""Debian's PREEMPT_RT kernel and its ordinary one, booted in an emulated machine (tools/kernel-guest.sh).

Slow, and meaningless for timing: what is asserted is that things are there, set, read back and undone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from stopping import KERNEL, STOPS, stop_often

from rtmeter import cli
from rtmeter.explain.causes import Explained
from rtmeter.explain.segments import Key
from rtmeter.judge.explained import explained
from rtmeter.results import store
from rtmeter.results.cells import find_cells
from stored import cell_json

ROOT = Path(__file__).resolve().parent.parent.parent
KERNELS = ("rt", "ordinary")
Booted = subprocess.CompletedProcess[str]
Guests = dict[str, tuple[Path, Booted]]
LIMIT_S = 1500
CHECKS = ["-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider", "-o", "timeout=0", "-rA"]
CHECKS += ["-o", "pythonpath=src bench tests"]  # the last of these comes by a conftest elsewhere

pytestmark = [
    pytest.mark.full_only("boots two kernels in an emulated machine; make test-kernel runs it"),
    pytest.mark.timeout(2 * LIMIT_S + 60),
]


def boot(kernel: str, out: Path, *inside: str, append: str = "") -> Booted:
    """Runs some of this folder's guest_*.py in the kernel."""
    command: list[str | Path] = [ROOT / "tools" / "kernel-guest.sh", kernel, out]
    command += ["env", f"STOPS={STOPS}", sys.executable, *CHECKS]
    command += [ROOT / "tests" / "kernel" / f"guest_{name}.py" for name in inside]
    env = os.environ | {"LIMIT_S": str(LIMIT_S), "APPEND": append}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def in_each(factory: pytest.TempPathFactory, run: Callable[[str, Path], Booted]) -> Guests:
    """What each kernel left in its folder, and what its checks said; both run at the same time."""
    with ThreadPoolExecutor(max_workers=len(KERNELS)) as threads:
        outs = [factory.mktemp(kernel) for kernel in KERNELS]
        return dict(zip(KERNELS, zip(outs, threads.map(run, KERNELS, outs), strict=True), strict=True))


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Guests:
    return in_each(tmp_path_factory, lambda kernel, out: boot(kernel, out, "checks", "settings"))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Guests:
    def run(kernel: str, out: Path) -> Booted:
        ended = Event()
        with ThreadPoolExecutor(max_workers=1) as threads:
            stops = threads.submit(stop_often, out, ended)
            try:
                done = boot(kernel, out, "stopped", append=KERNEL)
            finally:
                ended.set()
            stops.result()
        return done

    return in_each(tmp_path_factory, run)


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


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_stop_of_the_whole_machine_is_named_first(kernel: str, stopped: Guests) -> None:
    """User code is nearly always on the CPU that fires the timers; what a stop meets within the kernel
    cannot be told from the kernel."""
    out, done = stopped[kernel]
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = find_cells(out / "stopped")
    stops: list[Explained] = []
    for each in explained(cell).found.releases:
        if each.release.late and not (stops and each.release.release_ns < stops[-1].release.stamp_ns):
            stops.append(each)  # the first of the releases of a stop, whose lateness is the most
    named = Counter(str(each.cause.key) for each in stops if each.cause)
    print(f"{kernel}: {len(stops)} stops", named)
    assert len(stops) > STOPS / 2
    assert named[str(Key("outside"))] > 0.9 * len(stops)
