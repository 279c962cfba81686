"""What all tests share: two sizes of a test, and a list of what was reduced.

``make test`` runs everything at a size that fits two cores; ``RTMETER_FULL=1`` (``make test-full``) runs it
at full size. A test takes its sizes from ``sized``; one that only makes sense in full is marked
``@pytest.mark.full_only("what it does")``. Both are listed at the end of a reduced run.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import hypothesis
import pytest

# No test is timed: an example that takes long on a busy machine is no failure.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")

FULL = os.environ.get("RTMETER_FULL") == "1"

reduced_key = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[reduced_key] = []
    config.addinivalue_line("markers", "full_only(what): runs in the full test only, and says so otherwise")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if FULL:
        return
    for item in items:
        marker = item.get_closest_marker("full_only")
        if marker is not None:
            what = marker.args[0]
            config.stash[reduced_key].append(f"{item.nodeid}: not run ({what})")
            item.add_marker(pytest.mark.skip(reason=f"full test only: {what}"))


@pytest.fixture(autouse=True, scope="session")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Lock and journal of the tests, so that they neither wait for a real run nor undo what it set."""
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reduced = config.stash[reduced_key]
    if reduced:
        terminalreporter.section("reduced (make test-full runs all of it)")
        for line in reduced:
            terminalreporter.write_line(line)
