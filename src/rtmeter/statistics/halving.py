"""The effect that has to be seen or ruled out, half or twice as much, and how many repeats show it."""

from __future__ import annotations

import math
from bisect import bisect_left

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


def repeats_to_show(spread: float, strata: int, each: float, size: float = HALVING) -> int | None:
    """The fewest runs of each cell with which an effect's interval reaches no further than ``size``, a
    halving; it reaches the less far the more there are."""
    runs = range(2, MOST_REPEATS + 1)
    at = bisect_left(runs, True, key=lambda count: repeated_reach(spread, count, strata, each) <= size)
    return runs[at] if at < len(runs) else None


def log_odds(ratio: Estimate, n: int) -> tuple[float, float]:
    """The logarithm of the odds of a miss in n releases, and its standard error.

    The odds are those of the counts, half a miss added to each side. Their error is that of the counts that
    dependence leaves; two of it reach to the odds that these alone would have, half a miss added to them: of
    a run without a miss nothing else says how far it may be off.
    """
    worth = n / ratio.design_effect
    (misses, others), (worth_misses, worth_others) = (
        (ratio.value * count + 0.5, (1 - ratio.value) * count + 0.5) for count in (n, worth)
    )
    odds = math.log(misses / others)
    apart = abs(math.log(worth_misses / worth_others) - odds)
    return odds, max(math.sqrt(1 / worth_misses + 1 / worth_others), apart / 2)
