"""A run that was ended goes on: which tests passed is kept while it runs, and the next one leaves these out.

``TESTS_PASSED`` names the file, a test's id a line; tools/run_tests.py gives each state of the sources one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

PASSED, BEFORE = "TESTS_PASSED", "TESTS_PASSED_BEFORE"


def begin() -> Path | None:
    """The file, where one is named. All workers see what it held when the session began."""
    named = os.environ.get(PASSED)
    if named is None:
        return None
    path = Path(named)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    before = path.with_suffix(".before")
    before.write_text(path.read_text())
    os.environ[BEFORE] = str(before)
    return path


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what passed before the session began."""
    with suppress(KeyError):
        passed = set(Path(os.environ[BEFORE]).read_text().splitlines())
        left_out = [item for item in items if item.nodeid in passed]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in passed]


class Passed:
    """Of one session: a plugin of pytest that writes down what passed, as soon as it has."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._called: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._called.add(report.nodeid)
        elif report.when == "teardown" and report.passed and report.nodeid in self._called:
            with self._path.open("a") as file:
                file.write(f"{report.nodeid}\n")
