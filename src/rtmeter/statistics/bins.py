"""Counting signed nanoseconds in bins: log-linear ones for shares and quantiles, equal ones for steps.

The log-linear bins are the bit pattern of a float64: sign, exponent and the first six bits of the fraction
number them in the order of the values, 64 to an octave, each narrower than 1.6 % of its values. Below 64 ns
a bin holds one value. The share at or above a bin's first value is therefore exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.ranks import quantile_index, share_of

_DROPPED_BITS = 46
_BEFORE_ONE = (1023 << 6) - 1
_MOST = (53 << 6) + 1
"""Bins on either side of zero, up to 2**53 ns (104 days); what lies beyond counts in the last one."""

BINS = 2 * _MOST + 1


def bin_numbers(values_ns: Ints) -> Ints:
    """The bin of each value, 0 to BINS - 1, ascending with the value."""
    numbers: Ints = np.abs(values_ns).astype(np.float64).view(np.int64)
    numbers >>= _DROPPED_BITS  # in place, here and below: half of the time goes to fetching memory
    numbers -= _BEFORE_ONE
    _clip(numbers, 0, _MOST)
    if values_ns.size and values_ns.min() < 0:
        np.negative(numbers, out=numbers, where=values_ns < 0)
    numbers += _MOST
    return numbers


def _clip(values: Ints, least: int, most: int) -> None:
    """In place."""
    np.maximum(values, least, out=values)
    np.minimum(values, most, out=values)


def _first_values() -> Ints:
    codes = np.arange(1, _MOST + 2, dtype=np.int64) + _BEFORE_ONE
    magnitudes = np.ceil((codes << _DROPPED_BITS).view(np.float64)).astype(np.int64)
    return np.concatenate((1 - magnitudes[:0:-1], [0], magnitudes[:-1]))


FIRST_NS = _first_values()
"""The smallest value of each bin, shape (BINS,)."""


def count(values_ns: Ints) -> Ints:
    """How many values each bin holds, shape (BINS,)."""
    return np.bincount(bin_numbers(values_ns), minlength=BINS)


def quantile_range_ns(counts: Ints, percents: tuple[str, str]) -> tuple[int, int]:
    """The first value of the bin that holds the lower quantile, and the last one of that of the upper."""
    beyond = np.cumsum(counts)
    ranks = [quantile_index(int(beyond[-1]), share_of(percent)) + 1 for percent in percents]
    low, high = np.searchsorted(beyond, ranks)
    return int(FIRST_NS[low]), int(FIRST_NS[min(int(high) + 1, BINS - 1)]) - 1


@dataclass(frozen=True, slots=True)
class BinGrid:
    """Equal bins: ``size`` of them, bin i from ``first_ns + i * width_ns`` up to the next one's begin."""

    first_ns: int
    width_ns: int
    size: int

    def count(self, values_ns: Ints) -> Ints:
        """Counts of shape (size + 2,): what lies below the first bin, the bins, what lies above the last."""
        numbers: Ints = values_ns - self.first_ns
        numbers //= self.width_ns
        _clip(numbers, -1, self.size)
        numbers += 1
        return np.bincount(numbers, minlength=self.size + 2)


def grid_over(lowest_ns: int, highest_ns: int, most_bins: int) -> BinGrid:
    """At most ``most_bins`` (≥ 3) bins of 1, 2, 5, 10, … ns with round edges that hold both values."""
    width = 1
    while width * (most_bins - 2) < highest_ns - lowest_ns:
        width = width * 5 // 2 if str(width)[0] == "2" else width * 2
    first = lowest_ns // width * width
    return BinGrid(first, width, (highest_ns - first) // width + 1)
