"""Simulated rates against the bounds they have to meet; printed as a table at the end."""

from __future__ import annotations

import os
import secrets
import zlib

import numpy as np
import pytest
from rates import Rates

FULL = os.environ.get("RTMETER_FULL") == "1"

table_key = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[table_key] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if FULL:
        for item in items:
            item.add_marker(pytest.mark.timeout(4 * 3600))  # thousands of runs


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash[table_key]:
        terminalreporter.section("simulated rates")
        for line in config.stash[table_key]:
            terminalreporter.write_line(line)


@pytest.fixture
def generator(request: pytest.FixtureRequest) -> np.random.Generator:
    """A fixed seed of its own for each reduced test; a fresh one, printed, in the full test."""
    seed = secrets.randbits(32) if FULL else zlib.crc32(request.node.name.encode())
    print(f"seed {seed}")
    return np.random.default_rng(seed)


@pytest.fixture
def rates(request: pytest.FixtureRequest) -> Rates:
    return Rates(request.config.stash[table_key])
