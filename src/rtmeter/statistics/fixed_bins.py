"""Bins that are equal for everyone: sums of their counts are the distribution of all (docs/archive.md).

A value v ≥ 64 ns with e = floor(log2 v) - 6 is in bin 64 (e + 1) + (v >> e) - 64; below, bin v holds v
alone; a negative v is in bin -1 - (that of -v - 1). No bin is wider than 1/64 of its lower edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.ranks import quantile_index, share_of
from rtmeter.statistics.views import LATER

_OCTAVE = 64


def bin_numbers(values_ns: Ints) -> Ints:
    """The bin of each value, ascending with it."""
    values = np.asarray(values_ns, dtype=np.int64)
    sizes = np.where(values < 0, -1 - values, values)
    # A value that a float rounds up to the next power of two has the same bin: 64 (e + 1) + 63 = 64 e + 127.
    exponents = np.frexp(sizes.astype(np.float64))[1].astype(np.int64) - 1
    shifts = np.maximum(exponents - 6, 0)
    numbers = np.where(sizes < _OCTAVE, sizes, _OCTAVE * shifts + (sizes >> shifts))
    return np.where(values < 0, -1 - numbers, numbers)


def edges(number: int) -> tuple[int, int]:
    """The smallest value of the bin, and the smallest one above it."""
    if number < 0:
        low, high = edges(-1 - number)
        return -high, -low
    if number < _OCTAVE:
        return number, number + 1
    shift = number // _OCTAVE - 1
    first = number - _OCTAVE * shift
    return first << shift, (first + 1) << shift


@dataclass(frozen=True, slots=True)
class Binned:
    """A distribution: ``counts`` of ``bins`` (ascending, none empty), and the releases that were lost, which
    count as later than all."""

    bins: Ints
    counts: Ints
    lost: int

    @property
    def n(self) -> int:
        """All releases."""
        return int(self.counts.sum()) + self.lost

    def quantile(self, percent: str) -> tuple[int, int] | Literal["lost"] | None:
        """The edges of the bin of the smallest value with at least that share; None of no release."""
        if not self.n:
            return None
        index = quantile_index(self.n, share_of(percent))
        reached = np.cumsum(self.counts)
        place = int(np.searchsorted(reached, index, side="right"))
        return "lost" if place == len(self.bins) else edges(int(self.bins[place]))

    def above(self, limit_ns: int) -> tuple[int, int]:
        """The fewest and the most releases later than the limit, lost ones among them."""
        numbers = self.bins.tolist()
        surely = sum(c for b, c in zip(numbers, self.counts.tolist(), strict=True) if edges(b)[0] > limit_ns)
        possibly = sum(
            c for b, c in zip(numbers, self.counts.tolist(), strict=True) if edges(b)[1] - 1 > limit_ns
        )
        return surely + self.lost, possibly + self.lost


def binned(values_ns: Ints) -> Binned:
    """The distribution of values, LATER where lost."""
    lost = values_ns == LATER
    bins, counts = np.unique(bin_numbers(values_ns[~lost]), return_counts=True)
    return Binned(bins, counts.astype(np.int64), int(np.count_nonzero(lost)))


def merged(parts: Sequence[Binned]) -> Binned:
    """The distribution of all values of the parts in one heap."""
    if not parts:
        return Binned(np.empty(0, np.int64), np.empty(0, np.int64), 0)
    bins, places = np.unique(np.concatenate([part.bins for part in parts]), return_inverse=True)
    counts = np.zeros(len(bins), dtype=np.int64)
    np.add.at(counts, places, np.concatenate([part.counts for part in parts]))
    return Binned(bins, counts, sum(part.lost for part in parts))
