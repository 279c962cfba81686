"""Data without the single values: histograms, and maxima of intervals.

A value in a bin is known to lie between two edges. So of a deadline within a bin there are misses that are
sure and misses that are possible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rtmeter.statistics.quantities import Ints

MOST_COUNTED = 2**48
"""Values of a cell, as many as releases of one that is measured here; what counts further is damaged."""

PERIOD_UNKNOWN = 0
"""The period of a histogram that has not the releases its tool passed over, where they cannot be counted."""


@dataclass(frozen=True, slots=True)
class PossibleMisses:
    """Of ``n`` releases ``surely`` missed a deadline and at most ``possibly``. ``lost`` of the sure ones
    never came; ``skipped``: how many of the sure and of the possible ones were passed over."""

    n: int
    surely: int
    possibly: int
    lost: int = 0
    skipped: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of values in bins of ``width_ns``: ``lower_ns`` (ascending) and ``counts``, shape (bins,).

    A value v of a bin has lower <= v < lower + width. ``over`` values lie at ``over_from_ns`` or beyond;
    the largest value of all lies below ``below_ns``, by at most a width (None: not known). ``dropped``:
    the tool left out values beyond its last bin, and how many is not known. ``skips_after_ns``: a period,
    or PERIOD_UNKNOWN, if the tool passes over the releases that a value reaches beyond, and has them in no
    bin.
    """

    lower_ns: Ints
    width_ns: int
    counts: Ints
    over: int = 0
    over_from_ns: int = 0
    below_ns: int | None = None
    dropped: bool = False
    skips_after_ns: int | None = None

    @property
    def n(self) -> int:
        """How many values there are."""
        return int(self.counts.sum()) + self.over

    @property
    def uncounted(self) -> bool:
        """Whether more releases may have missed a deadline than there is any number of."""
        return self.dropped or self.skips_after_ns == PERIOD_UNKNOWN or self.skips_beyond

    @property
    def skips_beyond(self) -> bool:
        """Whether releases were passed over after values of which it is not known how late they were."""
        return bool(self.skips_after_ns and self.over and self.max_ns is None)

    @property
    def max_ns(self) -> int | None:
        """Lower edge of the largest value's bin; None if that is not known, or there are no values."""
        if not self.n:
            return None
        if self.below_ns is not None:
            return self.below_ns - self.width_ns
        return None if self.over or self.dropped else int(self.lower_ns[-1])

    def misses(self, deadline_ns: int) -> PossibleMisses:
        """Values above a deadline, and the releases that were passed over, each of which is a miss."""
        surely = int(self.counts[self.lower_ns > deadline_ns].sum())
        possibly = int(self.counts[self.lower_ns + self.width_ns - 1 > deadline_ns].sum()) + self.over
        surely += self.over if self.over_from_ns > deadline_ns else 0
        if self.below_ns is not None and self.below_ns - 1 <= deadline_ns:
            possibly = surely
        elif self.max_ns is not None and self.max_ns > deadline_ns:
            surely = max(surely, 1)
        fewest, most = self._skipped()
        return PossibleMisses(self.n + most, surely + fewest, possibly + most, skipped=(fewest, most))

    def _skipped(self) -> tuple[int, int]:
        """The fewest and the most releases that were passed over."""
        period = self.skips_after_ns
        if period is None or period == PERIOD_UNKNOWN:
            return 0, 0
        fewest = int((np.maximum(self.lower_ns, 0) // period * self.counts).sum())
        most = int((np.maximum(self.lower_ns + self.width_ns - 1, 0) // period * self.counts).sum())
        if self.over:
            beyond = self.over_from_ns if self.max_ns is None else self.max_ns
            fewest += (self.over - 1) * (self.over_from_ns // period) + beyond // period
            most += self.over * ((beyond + self.width_ns - 1) // period)
        return fewest, most

    def at(self, index: int) -> tuple[int, int | None]:
        """Where the value at an index in ascending order lies: the lower edge of its bin, and the first
        value beyond it (None: not known)."""
        if index == self.n - 1 and (largest := self.max_ns) is not None:
            return largest, largest + self.width_ns
        place = int(np.searchsorted(np.cumsum(self.counts), index, side="right"))
        if place == len(self.counts):
            return self.over_from_ns, self.below_ns
        return int(self.lower_ns[place]), int(self.lower_ns[place]) + self.width_ns

    def largest(self, count: int) -> Ints:
        """The lower edges of the bins of the largest values (those in bins), ascending, at most ``count``."""
        beyond = np.cumsum(self.counts[::-1])[::-1] - self.counts
        taken = np.clip(count - beyond, 0, self.counts)
        return np.repeat(self.lower_ns, taken)


@dataclass(frozen=True, slots=True)
class Intervals:
    """What tools state of each interval of a run: ``received`` and ``lost`` messages, and the latest one
    (ns, of no meaning where none was received), shape (intervals,)."""

    received: Ints
    lost: Ints
    maxima_ns: Ints

    @property
    def n(self) -> int:
        """Messages, lost ones included."""
        return int(self.received.sum() + self.lost.sum())

    @property
    def max_ns(self) -> int | None:
        """The latest message; None if none was received."""
        return int(self.maxima_ns[self.received > 0].max()) if self.received.any() else None

    def misses(self, deadline_ns: int) -> PossibleMisses:
        """An interval whose latest message is late has at least one late message, and at most all."""
        late = (self.maxima_ns > deadline_ns) & (self.received > 0)
        lost = int(self.lost.sum())
        surely, possibly = int(np.count_nonzero(late)) + lost, int(self.received[late].sum()) + lost
        return PossibleMisses(self.n, surely, possibly, lost)


CountedData = Histogram | Intervals
"""What a cell has in the place of samples."""
