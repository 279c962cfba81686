"""A report points from what was late to what the machine had wrong."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from rtmeter import report
from synthetic import Made, write_cell

THROTTLING = {
    "id": "rt_throttling",
    "grade": "high",
    "value": "950000 of <1000000> us",
    "why": "real-time threads wait",
    "source": "sched-rt-group.rst",
    "fix": "sysctl -w kernel.sched_rt_runtime_us=-1",
    "at_worst": "high",
    "items": [],
}
SWAP = THROTTLING | {"id": "swap", "grade": "medium", "value": "/dev/sda2", "fix": ""}


def _each_second(k: int) -> list[int]:
    return [50_000_000 if k % 1000 == 10 else 20_000]


def _page(folder: Path, changes: dict[str, Any], **made: Any) -> str:
    cell = write_cell(folder / "cell", Made(samples=20_000, changes=changes, **made))
    page = report.write(cell, folder / "report.html").read_text(encoding="utf-8")
    return html.unescape(" ".join(re.sub("<[^>]*>", " ", page.partition("<script")[0]).split()))


def test_a_rhythm_of_a_second_points_to_throttling(tmp_path: Path) -> None:
    page = _page(tmp_path, {"findings": [THROTTLING, SWAP]}, delays=_each_second)
    assert "The latest releases come every 1s, the period of real-time throttling" in page
    assert ": see rt_throttling (950000 of <1000000> us)." in page
    assert ": see swap" not in page
    assert "What the machine had wrong" in page
    assert "sysctl -w kernel.sched_rt_runtime_us=-1" in page


def test_faults_point_to_swap(tmp_path: Path) -> None:
    changes = {"findings": [THROTTLING, SWAP], "usage": {"major_faults": 7}}
    page = _page(tmp_path, changes, delays=lambda k: [2_000_000 if k == 15_000 else 20_000])
    assert "The measured thread saw 7 major faults" in page
    assert ": see swap (/dev/sda2)." in page
    assert ": see rt_throttling" not in page


@pytest.mark.parametrize("findings", [None, []])
def test_a_cell_that_was_not_looked_at_says_nothing(tmp_path: Path, findings: list[Any] | None) -> None:
    page = _page(tmp_path, {"findings": findings}, delays=_each_second)
    assert "What the machine had wrong" not in page
    assert "The latest releases come every" not in page


def test_a_pass_suspects_nothing(tmp_path: Path) -> None:
    changes = {"findings": [SWAP], "usage": {"major_faults": 7}}
    page = _page(tmp_path, changes, delays=lambda k: [20_000])
    assert "What the machine had wrong" in page
    assert "major faults :" not in page
    assert ": see swap" not in page
