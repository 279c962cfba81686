"""Simulated rates against the bounds they have to meet; printed as a table at the end."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import beta

FULL = os.environ.get("RTMETER_FULL") == "1"

table_key = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[table_key] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash[table_key]:
        terminalreporter.section("simulated rates")
        for line in config.stash[table_key]:
            terminalreporter.write_line(line)


@pytest.fixture
def generator(request: pytest.FixtureRequest) -> np.random.Generator:
    """Fixed seed in the reduced test; a fresh one, printed, in the full test."""
    seed = secrets.randbits(32) if FULL else 20261121
    print(f"seed {seed}")
    return np.random.default_rng(seed)


class Rates:
    """Asserts that a simulated rate does not contradict its bound: the one-sided 99 % Clopper-Pearson
    limit of the rate, on the bound's side, lies on the right side of it."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._table = request.config.stash[table_key]

    def at_least(self, bound: float, hits: int, runs: int, what: str) -> None:
        limit = float(beta.ppf(0.99, hits + 1, runs - hits)) if hits < runs else 1.0
        self._note(f"{what}: {hits / runs:.4f} of {runs:,} (at least {bound})")
        assert limit >= bound, f"{what}: {hits} of {runs} is below {bound}"

    def at_most(self, bound: float, hits: int, runs: int, what: str) -> None:
        limit = float(beta.ppf(0.01, hits, runs - hits + 1)) if hits else 0.0
        self._note(f"{what}: {hits / runs:.4f} of {runs:,} (at most {bound})")
        assert limit <= bound, f"{what}: {hits} of {runs} is above {bound}"

    def _note(self, line: str) -> None:
        self._table.append(line)


@pytest.fixture
def rates(request: pytest.FixtureRequest) -> Rates:
    return Rates(request)


Sized = Callable[..., int]
