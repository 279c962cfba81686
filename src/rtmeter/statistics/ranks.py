"""Ranks: that of a quantile, and those of a series, by which a test does not depend on the distribution."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Numbers = TypeVar("Numbers", int, Ints)


def share_of(percent: str) -> Fraction:
    """The exact share that a percentage stands for: ``99.9`` is 999/1000, which no float is."""
    return Fraction(percent) / 100


def quantile_index(n: int, share: Fraction) -> int:
    """Index in ascending order of the smallest of n values whose cumulative share reaches ``share``
    (type 1 of Hyndman and Fan, 1996), in integers: its rank is ceil(n share), its index one less."""
    return max(_rank(n, share) - 1, 0)


def quantile_indices(n: Ints, share: Fraction) -> Ints:
    """The same of many n, shape (numbers,), each below 2**63 / the share's numerator."""
    return np.maximum(_rank(n, share) - 1, 0)


def _rank(n: Numbers, share: Fraction) -> Numbers:
    return -(-n * share.numerator // share.denominator)


@cache
def fewest(share: Fraction) -> int:
    """From so many values on the quantile is another than the largest one: 100 for p99, 100,000 for p99.999.
    With fewer it says nothing that the maximum does not, and is not shown."""
    rest = 1 - share
    return -(-rest.denominator // rest.numerator)


def mid_ranks(series: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """From 1 for the smallest, shape (values,); equal ones share the mean of theirs (Kendall, Biometrika 33,
    1945). What scipy.stats.rankdata gives, whose package takes long to import."""
    _, place, times = np.unique(series, return_inverse=True, return_counts=True)
    shared = np.cumsum(times) - (times - 1) / 2
    return np.asarray(shared[place])
