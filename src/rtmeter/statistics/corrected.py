"""HdrHistogram's correction for coordinated omission, on exact values.

Each value v longer than the expected interval T stands for further ones, v - T, v - 2T, … ≥ T, that a
closed loop could not send (HdrHistogram, recordValueWithExpectedInterval). They are counted, never
made: a stall may stand for more values than memory holds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rtmeter.statistics.order import QUANTILES, pieces, statistics
from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.ranks import quantile_index


def describe_corrected(values: Ints, interval_ns: int, max_at_k: int | None) -> dict[str, Any]:
    """The corrected view of measured values (shape (n,), no lost ones), which are sorted in place."""
    if not len(values):
        return statistics(0, None, None, None, {}, None, None)
    values.sort()
    long = values[np.searchsorted(values, 2 * interval_ns) :]  # those that stand for others
    n = len(values) + sum(int((piece // interval_ns - 1).sum()) for piece in pieces(long))
    mean, stddev = _moments(values, long, interval_ns, n)
    quantiles = {
        name: _smallest(values, long, interval_ns, quantile_index(n, share) + 1) for name, share in QUANTILES
    }
    least = _smallest(values, long, interval_ns, 1)
    return statistics(n, least, mean, stddev, quantiles, values[-1], max_at_k)


def _smallest(values: Ints, long: Ints, interval_ns: int, rank: int) -> int:
    """The rank-th smallest value of the corrected multiset, rank from 1: bisection on the value."""
    low, high = min(int(values[0]), interval_ns), int(values[-1])
    while low < high:
        middle = (low + high) // 2
        if _count_up_to(values, long, interval_ns, middle) >= rank:
            high = middle
        else:
            low = middle + 1
    return low


def _count_up_to(values: Ints, long: Ints, interval_ns: int, limit: int) -> int:
    count = int(np.searchsorted(values, limit, side="right"))
    if limit < interval_ns:
        return count
    for piece in pieces(long):
        added = piece // interval_ns - 1  # v - jT for j = 1 … added
        first = np.maximum(-((limit - piece) // interval_ns), 1)  # smallest j with v - jT ≤ limit
        count += int(np.maximum(added - first + 1, 0).sum())
    return count


def _moments(values: Ints, long: Ints, interval_ns: int, n: int) -> tuple[float, float | None]:
    """Mean and standard deviation, by closed forms of the sums over j, in double precision."""
    mean = _power_sums(values, long, interval_ns, 0)[0] / n
    if n == 1:
        return mean, None
    first, second = _power_sums(values, long, interval_ns, int(mean))
    return mean, math.sqrt(max(second - first * first / n, 0.0) / (n - 1))


def _power_sums(values: Ints, long: Ints, interval_ns: int, centre: int) -> tuple[float, float]:
    """Sums of (x - centre) and of its square over the corrected multiset."""
    first, second = [], []
    for piece in pieces(values):
        x = (piece - centre).astype(np.float64)
        first.append(float(x.sum()))
        second.append(float(np.dot(x, x)))
    for piece in pieces(long):
        x = (piece - centre).astype(np.float64)
        m = (piece // interval_ns - 1).astype(np.float64)  # (x - T), (x - 2T) … (x - mT)
        ones = m * (m + 1) / 2 * interval_ns
        squares = m * (m + 1) * (2 * m + 1) / 6 * float(interval_ns) ** 2
        first.append(float((m * x - ones).sum()))
        second.append(float((m * x * x - 2 * ones * x + squares).sum()))
    return math.fsum(first), math.fsum(second)
