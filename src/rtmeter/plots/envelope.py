"""Extremes over stretches of releases: a plot of them loses no spike, however many releases there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtmeter.model import LOST, SKIPPED
from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.views import LATER, Block, all_served


@dataclass(frozen=True, slots=True)
class Envelope:
    """A quantity over stretches of consecutive releases, arrays of shape (stretches,).

    ``first_k``: where each begins; ``n``: the values in it, lost ones apart. Where n is 0, ``min_ns``,
    ``max_ns`` and ``mean_ns`` mean nothing. ``late``, ``skipped`` and ``lost``: as verdicts count them,
    without a deadline by what became of each; ``later``: what counts as later than anything, lost or skipped
    and never served; ``missed``: all misses.
    """

    first_k: Ints
    n: Ints
    min_ns: Ints
    max_ns: Ints
    mean_ns: npt.NDArray[np.float64]
    late: Ints
    skipped: Ints
    lost: Ints
    later: Ints
    missed: Ints

    def coarser(self, most: int) -> Envelope:
        """The same in at most ``most`` stretches, neighbours joined."""
        begins = np.arange(0, len(self.n), max(1, -(-len(self.n) // most)))
        empty = self.n == 0
        total = np.add.reduceat(self.mean_ns * self.n, begins)
        counted = (self.n, self.late, self.skipped, self.lost, self.later, self.missed)
        n, late, skipped, lost, later, missed = (np.add.reduceat(counts, begins) for counts in counted)
        return Envelope(
            first_k=self.first_k[begins],
            n=n,
            min_ns=np.minimum.reduceat(np.where(empty, LATER, self.min_ns), begins),
            max_ns=np.maximum.reduceat(np.where(empty, -LATER, self.max_ns), begins),
            mean_ns=total / np.maximum(n, 1),
            late=late,
            skipped=skipped,
            lost=lost,
            later=later,
            missed=missed,
        )


class Stretches:
    """Builds an envelope over releases ``first_k`` to ``last_k`` in stretches of ``length``; releases
    outside, which only a file at odds with itself has, count in the nearest stretch. ``skips_miss``: whether
    what was skipped is a miss by itself; ``skipped_in_time``: how many such misses are within the
    deadline."""

    def __init__(
        self, first_k: int, last_k: int, length: int, deadline_ns: int | None, *, skips_miss: bool
    ) -> None:
        releases = max(last_k - first_k + 1, 1)
        self._first_k, self._deadline_ns, self._length = first_k, deadline_ns, length
        self._skips_miss, self._by_outcome = skips_miss, skips_miss or deadline_ns is None
        self.skipped_in_time = 0
        self._size = -(-releases // self._length)
        counts = np.zeros((6, self._size), dtype=np.int64)
        self._n, self._late, self._skipped, self._lost, self._later, self._missed = counts
        self._sum = np.zeros(self._size)
        self._min, self._max = np.full(self._size, LATER), np.full(self._size, -LATER)

    def see(self, block: Block) -> None:
        """Adds releases, best in the order of k."""
        if not len(block.k):
            return
        stretch: Ints = block.k - self._first_k
        stretch //= self._length
        np.maximum(stretch, 0, out=stretch)
        np.minimum(stretch, self._size - 1, out=stretch)
        if not all_served(block.outcome) and self._by_outcome:
            self._skipped += self._count(stretch[block.outcome == SKIPPED])
            self._lost += self._count(stretch[block.outcome == LOST])
            if self._skips_miss:
                self._missed += self._count(stretch[block.outcome == SKIPPED])
        value, outcome = block.value, block.outcome
        if value.max() == LATER:
            valued = value != LATER
            later = self._count(stretch[~valued])
            self._later += later
            if not self._by_outcome:
                self._lost += later
            stretch, value, outcome = stretch[valued], value[valued], outcome[valued]
        if not len(value):
            return
        if self._deadline_ns is not None:
            beyond = value > self._deadline_ns
            judged = beyond & (outcome != SKIPPED) if self._skips_miss else beyond
            late = self._count(stretch[judged])
            self._late += late
            self._missed += late
            if self._skips_miss:
                self.skipped_in_time += int(np.count_nonzero(~beyond & (outcome == SKIPPED)))
        starts = np.concatenate(([0], np.flatnonzero(np.diff(stretch)) + 1))
        at = stretch[starts]
        np.add.at(self._n, at, np.diff(starts, append=len(stretch)))
        np.minimum.at(self._min, at, np.minimum.reduceat(value, starts))
        np.maximum.at(self._max, at, np.maximum.reduceat(value, starts))
        np.add.at(self._sum, at, np.add.reduceat(value.astype(np.float64), starts))

    def envelope(self) -> Envelope:
        """What was seen so far."""
        first_k = self._first_k + self._length * np.arange(self._size)
        mean = self._sum / np.maximum(self._n, 1)
        misses = self._late, self._skipped, self._lost, self._later, self._missed + self._later
        return Envelope(first_k, self._n, self._min, self._max, mean, *misses)

    def _count(self, stretch: Ints) -> Ints:
        return np.bincount(stretch, minlength=self._size)
