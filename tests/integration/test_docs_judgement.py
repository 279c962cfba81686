"""The commands of docs/judge.md and docs/compare.md work as they stand, where the tests run."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pages import ROOT, run_page


def test_a_requirement_is_planned_and_judged(tmp_path: Path) -> None:
    printed = run_page(ROOT / "docs" / "judge.md", tmp_path, cwd=tmp_path)
    assert "0    2,995,731   49.9 \n" in printed
    assert "1 of 2 cells is too short to pass whatever it measures" in printed
    assert "exit code 3" in printed
    found = json.loads((tmp_path / "verdict.json").read_text())
    assert (found["requirement"]["criticality"], found["n"]) == ("hard", 3000)
    assert "holds for        wake-up of posix" in printed


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("compare")
    return folder, run_page(ROOT / "docs" / "compare.md", folder, cwd=folder)


def test_interleaved_repeats_are_compared_as_pairs(compared: tuple[Path, str]) -> None:
    printed = compared[1]
    assert "timer-posix-clock_nanosleep → timer-posix-timerfd: " in printed
    assert "5 pairs of runs, measured in turn" in printed
    assert "differs: config.options: timer = clock_nanosleep → timer = timerfd" in printed
    assert "= timer-posix-clock_nanosleep + X" in printed


def test_gates_are_test_cases(compared: tuple[Path, str]) -> None:
    cases = ElementTree.parse(compared[0] / "compare.xml").getroot()
    assert [case.get("name") for case in cases] == ["p50<+100%", "p99<+50ms"]
