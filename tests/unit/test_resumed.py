"""A run of tests that was ended goes on where it was; what failed or was broken off is run again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
SOURCES = """
import sys; from pathlib import Path
sys.path.insert(0, sys.argv[1]); import run_tests
run_tests.ROOT = Path.cwd(); print(run_tests.sources())
"""
CONFTEST = """
import pytest, resumed
def pytest_configure(config):
    if passed := (None if hasattr(config, "workerinput") else resumed.begin()):
        config.pluginmanager.register(resumed.Passed(passed))
def pytest_collection_modifyitems(config, items):
    resumed.select(config, items)
@pytest.fixture
def broken():
    yield
    raise OSError("in its end")
"""
MODULE = """
import os, pytest
def noted(name):
    with open("ran", "a") as file: file.write(name + "\\n")
@pytest.mark.parametrize("n", [1, 2])
def test_good(n): noted(f"good {n}")
def test_bad(): noted("bad"); assert "MENDED" in os.environ
def test_ends_badly(broken): noted("ends badly")
def test_skipped(): noted("skipped"); pytest.skip("today")
"""


def ran(folder: Path, *options: str, **environment: str) -> set[str]:
    """The tests that a session ran."""
    (folder / "ran").unlink(missing_ok=True)
    kept = {name: value for name, value in os.environ.items() if name not in ("TESTS_PASSED_BEFORE",)}
    env = {
        **kept,
        "PYTHONPATH": str(TESTS),
        "TESTS_PASSED": str(folder / "kept" / "passed.txt"),
        **environment,
    }
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_some.py"],
        cwd=folder, env=env, check=False, capture_output=True,
    )  # fmt: skip
    return set((folder / "ran").read_text().splitlines())


def test_what_passed_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(MODULE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    again = {"ends badly", "skipped"}
    assert ran(tmp_path) == again | {"good 1", "good 2", "bad"}
    assert ran(tmp_path, "-n", "2", MENDED="1") == again | {"bad"}
    assert ran(tmp_path, "-n", "2") == again


def test_files_that_git_does_not_know_yet_are_sources_too(tmp_path: Path) -> None:
    """What passed before one of them was changed is run again."""

    def sources() -> str:
        command = [sys.executable, "-c", SOURCES, TESTS.parent / "tools"]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("ignored\n")
    seen = [sources()]
    for text in ("1", "2"):
        (tmp_path / "new.py").write_text(text)
        seen.append(sources())
    (tmp_path / "unreadable").symlink_to("/proc/self/mem")  # which is a file, also for root
    seen.append(sources())
    (tmp_path / "ignored").touch()
    assert len(set(seen)) == 4 and sources() == seen[-1]
