"""One minute at 1 kHz of a stationary process: what gates, drift and return levels make of it.

The claims about them share these runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from processes import Process, RareCause

from rtmeter.statistics.drift import Growth
from rtmeter.statistics.evidence import examine
from rtmeter.statistics.extremes import Extremes, extremes

MS = 1_000_000
MINUTE = 60_000
"""Releases of a minute at 1 kHz."""

HOURS = MINUTE * MS / 3.6e12
"""Its length."""

FAR = 10**12
"""A deadline that nothing misses."""

FACTORS = (1, 10)
"""Return levels that are asked for: passed once in so many times the run."""

RUNS = {"reduced": 9, "full": 2000}

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Stationary:
    """Whether gates refused the run, the growth that was seen, and for each factor the interval of the
    return level in ns, None if it was refused, and the types of the findings that refused it."""

    refused: bool
    growth: Growth
    levels: dict[int, Interval | None]
    refusals: dict[int, tuple[str, ...]]


def stationary(generator: np.random.Generator, process: Process | RareCause) -> Stationary:
    """Simulates and judges one run."""
    values = process.draw(generator, MINUTE)
    evidence = examine(values, MS, FAR)
    found = {factor: extremes(values, MS, factor * HOURS, evidence) for factor in FACTORS}
    return Stationary(
        refused=bool(evidence.refusals),
        growth=evidence.drift.growth,
        levels={factor: _level(one) for factor, one in found.items()},
        refusals={factor: tuple(f.type for f in one.refusals) for factor, one in found.items()},
    )


def _level(found: Extremes) -> Interval | None:
    return None if found.best is None or found.refusals else found.best.level_interval_ns
