"""What can be said of data without the single values: histograms, and maxima of intervals.

A value in a bin is known to lie between two edges. So of a deadline within a bin there are misses that are
sure and misses that are possible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rtmeter.statistics.quantities import Ints


@dataclass(frozen=True, slots=True)
class Counted:
    """Of ``n`` releases ``surely`` missed a deadline and at most ``possibly``; ``lost`` of the sure ones
    never came."""

    n: int
    surely: int
    possibly: int
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of values in bins of ``width_ns``: ``lower_ns`` (ascending) and ``counts``, shape (bins,).

    A value v of a bin has lower <= v < lower + width. ``over`` values lie at ``over_from_ns`` or beyond;
    the largest value of all lies below ``below_ns`` (None: not known).
    """

    lower_ns: Ints
    width_ns: int
    counts: Ints
    over: int = 0
    over_from_ns: int = 0
    below_ns: int | None = None

    @property
    def n(self) -> int:
        """How many values there are."""
        return int(self.counts.sum()) + self.over

    def misses(self, deadline_ns: int) -> Counted:
        """Values above a deadline."""
        surely = int(self.counts[self.lower_ns > deadline_ns].sum())
        possibly = int(self.counts[self.lower_ns + self.width_ns - 1 > deadline_ns].sum())
        in_time = self.below_ns is not None and self.below_ns - 1 <= deadline_ns
        surely += self.over if self.over_from_ns > deadline_ns else 0
        possibly += 0 if in_time else self.over
        return Counted(self.n, surely, possibly if not in_time else surely)

    def quantile(self, share: float) -> tuple[int, int | None]:
        """The bin of the smallest value whose cumulative share reaches ``share``: its lower edge, and the
        first value beyond it (None: not known)."""
        rank = max(1, int(np.ceil(self.n * share - 1e-9)))
        cumulative = np.cumsum(self.counts)
        at = int(np.searchsorted(cumulative, rank))
        if at == len(cumulative):
            return self.over_from_ns, self.below_ns
        return int(self.lower_ns[at]), int(self.lower_ns[at]) + self.width_ns

    def middles(self) -> Ints:
        """A value for each release, the middle of its bin, ascending, shape (n - over,)."""
        return np.repeat(self.lower_ns + self.width_ns // 2, self.counts)


@dataclass(frozen=True, slots=True)
class Intervals:
    """What tools state of each interval of a run: ``received`` and ``lost`` messages, and the latest one
    (ns), shape (intervals,)."""

    received: Ints
    lost: Ints
    maxima_ns: Ints

    @property
    def n(self) -> int:
        """Messages, lost ones included."""
        return int(self.received.sum() + self.lost.sum())

    def misses(self, deadline_ns: int) -> Counted:
        """An interval whose latest message is late has at least one late message, and at most all."""
        late = self.maxima_ns > deadline_ns
        lost = int(self.lost.sum())
        surely, possibly = int(np.count_nonzero(late)) + lost, int(self.received[late].sum()) + lost
        return Counted(self.n, surely, possibly, lost)
