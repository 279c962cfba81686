"""What all tests share: two sizes of a test, a list of what was reduced, and what may run side by side.

``make test`` runs everything at a size that fits two cores; ``RTMETER_FULL=1`` (``make test-full``) runs it
at full size. A test takes its sizes from ``sized``; one that only makes sense in full is marked
``@pytest.mark.full_only("what it does")``. Both are listed at the end of a reduced run.

``make test`` runs most files in several workers (pytest-xdist, ``--dist loadfile``), a file's tests on one,
in their order: the short files of ``unit`` come last, so that no worker ends long before the others. Those of
``ALONE`` (marker ``alone``) follow, one by one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# No test is timed: an example that takes long on a busy machine is no failure.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")

FULL = os.environ.get("RTMETER_FULL") == "1"

reduced_key = pytest.StashKey[list[str]]()

ALONE = {
    "conditions",
    "hosts",
    "kernel",
    "test_campaigns",
    "test_check",
    "test_cyclictest_cells",
    "test_front_settings",
    "test_iceoryx",
    "test_load",
    "test_network_settings",
    "test_selftest",
    "test_settings_real",
    "test_thread_waits",
    "test_traffic",
}
"""Folders and files whose tests change this machine, load it, count what runs on it, or start a daemon of
which it has one."""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[reduced_key] = []
    config.addinivalue_line("markers", "alone: runs beside no other test")
    config.addinivalue_line("markers", "full_only(what): runs in the full test only, and says so otherwise")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if {item.path.parent.name, item.path.stem} & ALONE:
            item.add_marker("alone")
    if FULL:
        return
    for item in items:
        marker = item.get_closest_marker("full_only")
        if marker is not None:
            what = marker.args[0]
            config.stash[reduced_key].append(f"{item.nodeid}: not run ({what})")
            item.add_marker(pytest.mark.skip(reason=f"full test only: {what}"))


@pytest.fixture(autouse=True, scope="session")
def environment_of_processes(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What processes that the tests start have: this rtmeter, no library that it does not need, and a lock
    and journal of the tests, so that they neither wait for a real run nor undo what it set."""
    tests = Path(__file__).parent
    paths = [str(tests.parent / "src"), str(tests / "as_installed"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.environ["RTMETER_STATE_DIR"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture
def sized(request: pytest.FixtureRequest) -> Callable[..., int]:
    """``sized("kills", reduced=5, full=100)``: the size to run at, noting what was reduced."""

    def choose(what: str, *, reduced: int, full: int) -> int:
        if FULL:
            return full
        request.config.stash[reduced_key].append(f"{request.node.nodeid}: {reduced:,} of {full:,} {what}")
        return reduced

    return choose


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of pytest-xdist has ended: what it reduced."""
    reduced = node.config.stash[reduced_key]
    reduced += [line for line in node.workeroutput.get("reduced", []) if line not in reduced]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # in a worker: told to the one who started it
        session.config.workeroutput["reduced"] = session.config.stash[reduced_key]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reduced = sorted(config.stash[reduced_key])
    if reduced:
        terminalreporter.section("reduced (make test-full runs all of it)")
        for line in reduced:
            terminalreporter.write_line(line)
