"""The effect that has to be seen or ruled out, half or twice as much, and how many repeats show it."""

from __future__ import annotations

import math

import scipy

from rtmeter.statistics.quantiles import Estimate

HALVING = math.log(2)
"""The effect that has to be seen, or ruled out: half, or twice as much."""

MOST_REPEATS = 10_000

RATIO = "miss_ratio"


def repeated_reach(spread: float, runs: int, strata: int, each: float) -> float:
    """Half the width of the interval of an effect over so many matched strata of ``runs`` pairs, whose
    differences have the standard deviation ``spread``."""
    freedom = strata * (runs - 1)
    return float(scipy.special.stdtrit(freedom, (1 + each) / 2)) * spread / math.sqrt(strata * runs)


def repeats_to_show_halving(spread: float, strata: int, each: float) -> int | None:
    """The fewest runs of each cell with which an effect's interval reaches no further than a halving."""
    enough = (n for n in range(2, MOST_REPEATS + 1) if repeated_reach(spread, n, strata, each) <= HALVING)
    return next(enough, None)


def log_odds(ratio: Estimate, n: int) -> tuple[float, float]:
    """The logarithm of the odds of a miss, and its standard error, for the n that dependence leaves."""
    worth = n / ratio.design_effect
    misses = ratio.value * worth + 0.5
    others = worth - ratio.value * worth + 0.5
    return math.log(misses / others), math.sqrt(1 / misses + 1 / others)
