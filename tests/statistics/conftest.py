"""Simulated rates against the bounds they have to meet; printed as a table at the end.

In the reduced test the seed is fixed. The full test draws one, which is printed, and shares simulations
out among processes; RTMETER_SEED repeats one.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from rates import Rate, Rates
from simulation import Simulation

FULL = os.environ.get("RTMETER_FULL") == "1"
SEED = int(os.environ.get("RTMETER_SEED", "0"))  # the full test has one

RATES = Path("build") / "rates.json"
"""Where the full test leaves its rates for the tables of docs/ (tools/rates_tables.py), below the root."""

table_key = pytest.StashKey[list[Rate]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[table_key] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    table = config.stash[table_key]
    if not table:
        return
    terminalreporter.section(f"simulated rates (RTMETER_SEED={SEED} repeats them)")
    for rate in table:
        terminalreporter.write_line(str(rate))
    if FULL:
        _keep(table, config.rootpath / RATES)


def _keep(table: list[Rate], path: Path) -> None:
    """Beside the rates of other claims that are there."""
    path.parent.mkdir(exist_ok=True)
    known = json.loads(path.read_text()) if path.exists() else []
    for rate in table:
        known = [row for row in known if (row["claim"], row["case"]) != (rate.claim, rate.case)]
        known.append(
            {k: v for k, v in asdict(rate).items() if k != "weak"}
            | {"limit": rate.limit, "holds": rate.holds, "seed": SEED}
        )
    path.write_text(json.dumps(known, indent=1) + "\n")


@pytest.fixture
def generator(request: pytest.FixtureRequest) -> np.random.Generator:
    """For examples: the same in every run of a test."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))


@pytest.fixture(scope="session")
def simulate() -> Iterator[Simulation]:
    """Runs simulations, on all CPUs in the full test."""
    simulation = Simulation(SEED, len(os.sched_getaffinity(0)) if FULL else 0)
    yield simulation
    simulation.close()


@pytest.fixture
def rates(request: pytest.FixtureRequest) -> Rates:
    print(f"RTMETER_SEED={SEED}")
    return Rates(request.config.stash[table_key])
