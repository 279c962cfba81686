"""What a run's releases are worth: the one model of dependence of verdicts, comparisons and plots.

Exceedances of a limit hang together in three ways: they come in clusters; they crowd into parts of the run
beyond that; and parts of the run resemble their neighbours. Each raises the variance of their number, and n
counts as n / (what all three raise it by); however alike the releases are, they count as one at least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rtmeter.model import GateFinding
from rtmeter.statistics import gates
from rtmeter.statistics.blocks import FEWEST_BLOCKS, MOST_BLOCKS, SMALLEST_BLOCK, Blocks
from rtmeter.statistics.clusters import MOST_EXCEEDANCES, Dependence, dependence
from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.serial import correlation_time
from rtmeter.statistics.tail import above, block_counts, block_edges
from rtmeter.statistics.trend import inflation

RARE = 0.02
"""A share of exceedances small enough to come in clusters; of more only their number a block is looked at."""

OVERDISPERSED = 1.3
"""Variance of a block's exceedances over that of independent ones that chance does not explain."""

CORRELATED = 13
"""Of n independent releases, too few for blocks, those above a limit have a correlation time of more than
1 + 13 / sqrt(n) in one run of a hundred (tests/statistics/test_worth.py)."""


@dataclass(frozen=True, slots=True)
class Worth:
    """How exceedances of a limit hang together: in clusters, and by how much all three ways raise the
    variance of their number, at least 1; ``findings`` of what clusters do not explain. ``near``: the
    releases that stand for the misses, or these themselves."""

    near: Ints
    dependence: Dependence
    design_effect: float
    findings: tuple[GateFinding, ...]


def worth(values: Ints, misses: Ints, limit_ns: int, blocks: Blocks | None) -> Worth:
    """Of a run's releases (ns, in order, shape (n,)) for the ratio of ``misses``, their indices: those above
    the limit and those that miss anyhow. Where they are few the largest values stand for them."""
    n = len(values)
    near, threshold_ns = _near(values, misses, blocks, limit_ns)
    found = dependence(misses, near, threshold_ns, n)
    factor, crowded = 1.0, list[GateFinding]()
    if blocks is not None:
        factor, crowded = gates.dependence_between_blocks(
            blocks.with_misses(values, misses), found.design_effect
        )
    effect = min(found.design_effect * factor, float(n))
    return Worth(near, found, effect, tuple(crowded))


def design_effect(values: Ints, limit_ns: int, blocks: Blocks | None) -> float:
    """By how much dependence raises the variance of the number of values above the limit, at least 1."""
    n = len(values)
    count = min(MOST_BLOCKS, n // SMALLEST_BLOCK)
    if count < FEWEST_BLOCKS:
        time = correlation_time((values > limit_ns).astype(np.float64))
        return time if time > 1 + CORRELATED / math.sqrt(max(n, 1)) else 1.0
    exceedances = above(values, limit_ns)
    counts = block_counts(exceedances, block_edges(n, count)).astype(np.float64)
    share = float(counts.sum()) / n
    if share < RARE:
        return worth(values, exceedances, limit_ns, blocks).design_effect
    if share == 1.0:
        return 1.0
    dispersion = float(counts.var(ddof=1)) / (float(counts.mean()) * (1 - share))
    noise = OVERDISPERSED * math.sqrt(MOST_BLOCKS / count)
    return min((dispersion if dispersion > noise else 1.0) * inflation(counts), float(n))


def _near(values: Ints, misses: Ints, blocks: Blocks | None, limit_ns: int) -> tuple[Ints, int]:
    """The exceedances whose dependence stands for that of the misses, and their threshold."""
    if len(misses) >= MOST_EXCEEDANCES or blocks is None:
        return misses, limit_ns
    if len(blocks.at) <= MOST_EXCEEDANCES:
        return blocks.at, blocks.threshold_ns
    exceeding = values[blocks.at]
    threshold = int(np.partition(exceeding, -MOST_EXCEEDANCES)[-MOST_EXCEEDANCES])
    return blocks.at[exceeding >= threshold], threshold - 1
