"""What property tests draw: the same in each reduced run; in a full one by a seed that is told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
DRAWS = """
from pathlib import Path
from hypothesis import given, strategies

@given(strategies.integers())
def test_draws(number):
    with Path("drawn").open("a") as file:
        print(number, file=file)
"""


def drawn(folder: Path, **seeds: str) -> tuple[str, list[str]]:
    """What is drawn, and the seeds that the run told."""
    (folder / "drawn").unlink(missing_ok=True)
    (folder / "test_drawn.py").write_text(DRAWS)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("RTMETER_", "PY"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", folder, "-p", "conftest", "."],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(TESTS)} | seeds,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "drawn").read_text(), re.findall(r"RTMETER_SEED=(\d+)", done.stdout)


def test_a_reduced_run_draws_the_same_each_time(tmp_path: Path) -> None:
    first = drawn(tmp_path)
    assert drawn(tmp_path) == first
    assert first[1] == []


def test_a_full_run_draws_anew_and_its_seed_repeats_it(tmp_path: Path) -> None:
    first, seeds = drawn(tmp_path, RTMETER_FULL="1")
    again, others = drawn(tmp_path, RTMETER_FULL="1")
    assert (first != again, seeds != others) == (True, True)
    assert len(set(seeds)) == 1
    assert drawn(tmp_path, RTMETER_FULL="1", RTMETER_SEED=seeds[0]) == (first, seeds)
