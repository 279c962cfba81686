"""What all tests share: two sizes of a test, what they draw, a list of what was reduced, and their order.

``make test`` runs everything at a size that fits two cores; ``RTMETER_FULL=1`` (``make test-full``) runs it
at full size. A test takes its sizes from ``sized``; one that only makes sense in full is marked
``@pytest.mark.full_only("what it does")``. Both are listed at the end of a reduced run.

What Hypothesis and the simulations draw is the same in every reduced run. A full run draws a seed, which it
tells: ``RTMETER_SEED=N`` repeats its draws.

``make test`` runs most files in several workers (pytest-xdist, ``--dist loadfile``), a file's tests on one,
in their order: the short files of ``unit`` come last, so that no worker ends long before the others. order.py
says which files share a worker, and which run beside no others (marker ``alone``), after them, one by one.
"""

from __future__ import annotations

import gc
import os
import secrets
import signal
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.core
import pytest

import leftovers
import resumed
import tracefs
from order import arrange, is_alone, scheduler

FULL = os.environ.get("RTMETER_FULL") == "1"
SEED = "RTMETER_SEED"
if FULL:
    os.environ.setdefault(SEED, str(secrets.randbits(32)))  # workers have it from here

# No test is timed: an example that takes long on a busy machine is no failure. Examples that failed before
# are not kept, so that nothing but the seed says what is drawn.
hypothesis.settings.register_profile(
    "rtmeter",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=SEED not in os.environ,
    database=None,
)
hypothesis.settings.load_profile("rtmeter")

reduced_key = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background; processes inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    config.stash[reduced_key] = []
    if leftovers.begin():
        config.pluginmanager.register(leftovers.Leftovers())
        if tracefs.mount():
            config.add_cleanup(tracefs.unmount)
        if passed := resumed.begin():
            config.pluginmanager.register(resumed.Passed(passed))
    if SEED in os.environ:
        hypothesis.core.global_force_seed = int(os.environ[SEED])
    config.addinivalue_line("markers", "alone: runs beside no other test")
    config.addinivalue_line("markers", "full_only(what): runs in the full test only, and says so otherwise")


def pytest_report_header() -> list[str]:
    return [f"{SEED}={os.environ[SEED]} repeats what this run draws"] if SEED in os.environ else []


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return scheduler(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: nobody need look at it again and again for garbage."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    arrange(items)
    resumed.select(config, items)
    for item in items:
        if is_alone(item.path):
            item.add_marker("alone")
        if FULL and "sized" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(7200))  # thousands of runs, or a day's releases
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


@pytest.fixture(autouse=True, scope="module")
def file_of_processes(request: pytest.FixtureRequest) -> None:
    """What processes that the tests start say of where they come from."""
    leftovers.name_file(request.node.nodeid)


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
    reduced += [line for line in getattr(node, "workeroutput", {}).get("reduced", []) if line not in reduced]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # in a worker: told to the one who started it
        session.config.workeroutput["reduced"] = session.config.stash[reduced_key]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in pytest_report_header():  # beside what failed
        terminalreporter.write_line(line)
    reduced = sorted(config.stash[reduced_key])
    if reduced:
        terminalreporter.section("reduced (make test-full runs all of it)")
        for line in reduced:
            terminalreporter.write_line(line)
