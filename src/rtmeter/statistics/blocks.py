"""A run cut into blocks: what the gates look at instead of single releases.

The number of blocks and of exceedances in them stays the same however long the run: a test on them sees
what is large enough to matter and not what ten million releases make significant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rtmeter.statistics.clusters import Indices
from rtmeter.statistics.order import count_above
from rtmeter.statistics.quantities import Floats, Ints
from rtmeter.statistics.tail import above, block_counts, block_edges, block_maxima, largest

MOST_BLOCKS = 200
FEWEST_BLOCKS = 20
SMALLEST_BLOCK = 50
A_BLOCK = 20

BlockEffect = Callable[[Floats, list[int]], float]
"""Of a series and the blocks at which segments of it begin (the first one at 0): how many times as likely
exceedances are in one segment as in another, at least 1."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of a run, in release order.

    ``edges``: where they begin and end, shape (blocks + 1,); ``maxima`` (ns): the maximum of each;
    ``counts`` and ``rare_counts``: exceedances in each of a threshold that A_BLOCK a block exceed, and of
    one that A_BLOCK / 10 do, all of shape (blocks,). ``at``: the releases of the former exceedances, of
    ``threshold_ns``, ``rare_ns`` being that of the rarer ones; ``scale_ns``: that much above, one is 1/e
    as likely (by the median excess). ``others``: numbers in each, of shape (blocks,), of what the exceedances
    leave out: values that equal a threshold, where these are too many (lost releases, steps of a coarse
    clock), and misses that are no exceedances.
    """

    edges: Ints
    maxima: Floats
    counts: Floats
    rare_counts: Floats
    at: Indices
    threshold_ns: int
    rare_ns: int
    scale_ns: float
    others: tuple[Floats, ...] = ()

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.maxima)

    def with_misses(self, values: Ints, misses: Ints) -> Blocks:
        """The same of a run's values, shape (n,), with its misses (indices, ascending) in each, where some of
        them are no exceedances: there are too many of them, or they missed however late they were."""
        if np.count_nonzero(values[misses] <= self.threshold_ns) < A_BLOCK:
            return self
        return replace(self, others=(*self.others, block_counts(misses, self.edges).astype(np.float64)))

    def series(self) -> tuple[tuple[Floats, BlockEffect], ...]:
        """What gates look at: series of blocks, and how large a change between segments of each is."""
        others = ((one, _ratio) for one in self.others)
        return (self.maxima, self._shift), (self.counts, _ratio), (self.rare_counts, _ratio), *others

    def raised(self, values: Ints, by_ns: float) -> float:
        """How many times as likely exceedances of either threshold are if all values of the run, shape
        (n,), are so much later."""
        later = (
            (count_above(values, limit - round(by_ns)), count_above(values, limit))
            for limit in (self.threshold_ns, self.rare_ns)
        )
        return max(then / max(now, 1) for then, now in later)

    def _shift(self, maxima: Floats, starts: list[int]) -> float:
        """The factor in the rate of exceedances that the shift of the maxima's median comes to."""
        medians = [float(np.median(part)) for part in np.split(maxima, starts)]
        shift = max(medians) - min(medians)
        if self.scale_ns <= 0:
            return math.inf if shift else 1.0
        return math.exp(min(shift / self.scale_ns, 700.0))


def _ratio(counts: Floats, starts: list[int]) -> float:
    """The factor between the rates of two segments; half an exceedance is added to each."""
    rates = [(float(part.sum()) + 0.5) / len(part) for part in np.split(counts, starts)]
    return max(rates) / min(rates)


def blocks_of(values: Ints) -> Blocks | None:
    """The blocks of a run (values in ns, shape (n,)); None if it is too short for them."""
    n = len(values)
    count = min(MOST_BLOCKS, n // SMALLEST_BLOCK)
    if count < FEWEST_BLOCKS:
        return None
    edges = block_edges(n, count)
    top = largest(values, A_BLOCK * count + 1)
    rare = top[-(A_BLOCK * count // 10) - 1 :]
    at, tail = above(values, int(top[0])), top.astype(np.float64)
    return Blocks(
        edges=edges,
        maxima=block_maxima(values, edges).astype(np.float64),
        counts=block_counts(at, edges).astype(np.float64),
        rare_counts=block_counts(at[values[at] > rare[0]], edges).astype(np.float64),
        at=at,
        threshold_ns=int(top[0]),
        rare_ns=int(rare[0]),
        scale_ns=float(np.median(tail[1:] - tail[0])) / math.log(2),
        others=tuple(
            _counts_above(values, limit_ns - 1, edges)
            for limit_ns in sorted({int(part[0]) for part in (top, rare) if _hidden(values, part)})
        ),
    )


def _hidden(values: Ints, top: Ints) -> bool:
    """Whether so many values equal the first of the largest ones, ``top`` (ascending), that those that exceed
    it are further from their number than with these; not of values that are the least of all."""
    limit, many = int(top[0]), len(top) - 1
    greater = len(top) - int(np.searchsorted(top, limit, side="right"))
    if greater == many:
        return False
    with_equals = count_above(values, limit - 1)
    return greater * with_equals < many * many and with_equals < len(values)


def _counts_above(values: Ints, limit_ns: int, edges: Ints) -> Floats:
    """How many values of each block are greater, shape (blocks,)."""
    blocks = itertools.pairwise(edges)
    return np.array([np.count_nonzero(values[a:b] > limit_ns) for a, b in blocks], dtype=np.float64)
