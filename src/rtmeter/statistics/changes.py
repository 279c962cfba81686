"""Change points: where the distribution of a series of blocks changes.

Kernel change points (Arlot, Celisse and Harchaoui, JMLR 20, 2019): the segments that minimise the kernel
least-squares cost plus a penalty for each change, found exactly by dynamic programming. The series is
replaced by its ranks, so that the penalty means the same whatever the distribution.
"""

from __future__ import annotations

import numpy as np

from rtmeter.statistics.quantities import Floats
from rtmeter.statistics.ranks import mid_ranks

SMALLEST_SEGMENT = 0.05
"""A segment is at least this share of the blocks."""

BANDWIDTH = 0.25
"""Of the Gaussian kernel, in ranks scaled to (0, 1)."""

PENALTY = 5.0
"""Cost of a change, at which a few in a thousand unchanging series of 20 to 200 blocks show one
(tests/statistics/test_changes.py)."""


def change_points(series: Floats) -> list[int]:
    """Indices at which a new segment of the series (shape (blocks,)) begins, ascending; may be empty."""
    blocks = len(series)
    shortest = max(2, round(SMALLEST_SEGMENT * blocks))
    cost = _costs(mid_ranks(series))
    best = np.full(blocks + 1, np.inf)
    best[0] = -PENALTY
    previous = np.zeros(blocks + 1, dtype=np.int64)
    for end in range(shortest, blocks + 1):
        starts = best[: end - shortest + 1] + cost[: end - shortest + 1, end] + PENALTY
        previous[end] = starts.argmin()
        best[end] = starts[previous[end]]
    changes = []
    at = int(previous[blocks])
    while at > 0:
        changes.append(at)
        at = int(previous[at])
    return changes[::-1]


def _costs(ranks: Floats) -> Floats:
    """Cost of the segment [start, end) at [start, end]: its size less the mean of the kernel matrix's
    sum over it, shape (blocks + 1, blocks + 1)."""
    size = len(ranks)
    halves = np.rint(2 * ranks).astype(np.int64)  # ties share a rank that may end in a half
    by_distance = np.exp(-np.square(np.arange(2 * size) / (2 * (size + 1) * BANDWIDTH)) / 2)
    total = np.zeros((size + 1, size + 1))
    kernel = by_distance[np.abs(halves[:, None] - halves)]
    kernel.cumsum(axis=0, out=kernel).cumsum(axis=1, out=total[1:, 1:])
    diagonal = np.diag(total)
    inside = diagonal + diagonal[:, None] - total - total.T
    length = np.arange(size + 1) - np.arange(size + 1)[:, None]
    return np.asarray(length - inside / np.maximum(length, 1))
