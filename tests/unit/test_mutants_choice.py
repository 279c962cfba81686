"""`python tools/mutants` says of a choice that is none what there is, before it runs anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "mutants"


@pytest.mark.parametrize(
    ("chosen", "near"),
    [("NOTHING", "src/rtmeter/statistics/*.py"), ("rythm", "name src/rtmeter/statistics/rhythm.py")],
)
def test_a_choice_that_is_part_of_no_file_is_named(chosen: str, near: str) -> None:
    done = subprocess.run(
        [sys.executable, TOOL, "--only", chosen], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f"--only {chosen}: is part of no file that is mutated" in done.stderr and near in done.stderr
