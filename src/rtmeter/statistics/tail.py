"""The tail and the blocks of a long series without a second copy of it.

Values are int64 nanoseconds in release order, shape (n,); views.LATER stands for a lost release.
"""

from __future__ import annotations

import numpy as np

from rtmeter.statistics.order import pieces
from rtmeter.statistics.quantities import Ints


def largest(values: Ints, count: int) -> Ints:
    """The ``count`` largest values (all, if there are fewer), ascending."""
    kept = np.empty(0, dtype=np.int64)
    for piece in pieces(values):
        if len(kept) == count:
            piece = piece[piece > kept[0]]
        kept = np.concatenate((kept, piece))
        if len(kept) > count:
            kept = np.partition(kept, len(kept) - count)[len(kept) - count :]
        kept.sort()
    return kept


def threshold(values: Ints, exceedances: int) -> int:
    """The value that at most ``exceedances`` of more than so many values are greater than; exactly so
    many without ties."""
    return int(largest(values, exceedances + 1)[0])


def above(values: Ints, limit: int) -> Ints:
    """Indices of the values greater than the limit, ascending."""
    found, start = [np.empty(0, dtype=np.int64)], 0
    for piece in pieces(values):
        found.append(np.flatnonzero(piece > limit) + start)
        start += len(piece)
    return np.concatenate(found)


def block_edges(n: int, blocks: int) -> Ints:
    """Where ``blocks`` blocks of n values begin and end: ascending, shape (blocks + 1,); their sizes
    differ by at most one."""
    return np.arange(blocks + 1, dtype=np.int64) * n // blocks


def block_maxima(values: Ints, edges: Ints) -> Ints:
    """The maximum of each block, shape (blocks,)."""
    return np.maximum.reduceat(values[: edges[-1]], edges[:-1])


def block_counts(at: Ints, edges: Ints) -> Ints:
    """How many of the ascending indices ``at`` fall into each block, shape (blocks,)."""
    return np.diff(np.searchsorted(at, edges))
