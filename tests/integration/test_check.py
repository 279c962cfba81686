"""rtmeter check on the machine that runs the tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pages import ROOT, run_page

from rtmeter.host import cgroups
from rtmeter.host.root import Root
from rtmeter.machine import Finding, Intent, findings

CPU = max(os.sched_getaffinity(0))


def test_the_commands_of_its_page_work(tmp_path: Path) -> None:
    printed = run_page(ROOT / "docs" / "check.md", tmp_path, cwd=tmp_path)
    assert "cyclic workload at fifo:80 on any CPU:" in printed
    assert '"workload": "roundtrip"' in printed
    assert "exit code 1" not in printed
    assert not list(tmp_path.glob("results"))


def test_a_cpuset_that_overlaps_is_named() -> None:
    hierarchy = cgroups.find("cpuset", Root())
    if hierarchy is None:
        pytest.skip("no cgroups with cpusets are mounted")
    folder = Path(hierarchy.mount, f"rtmeter-test-{os.getpid()}")
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made: {error.strerror}")
    try:
        if not (folder / "cpuset.cpus").exists():
            pytest.skip("the top group gives its groups no cpusets")
        assert str(folder) not in _overlap()
        (folder / "cpuset.cpus").write_text(str(CPU))
        assert f"{folder} (CPU {CPU}, 0 processes)" in _overlap()
    finally:
        folder.rmdir()
    assert str(folder) not in _overlap()


def _overlap() -> str:
    found: dict[str, Finding] = {finding.id: finding for finding in findings(Root(), Intent(cpus=(CPU,)))}
    return found["cpuset_overlap"].value if "cpuset_overlap" in found else ""
