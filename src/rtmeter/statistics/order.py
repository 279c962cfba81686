"""Exact order statistics, mean and standard deviation of up to 10^8 values in one int64 array."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.ranks import fewest, quantile_index, share_of
from rtmeter.statistics.views import LATER

QUANTILES = tuple(
    (f"p{percent.replace('.', '_')}_ns", share_of(percent))
    for percent in ("50", "90", "99", "99.9", "99.99", "99.999")
)
"""Name and share of each quantile that a summary states."""

_PIECE = 1 << 20

NARROW = (1 << 30) - 1
"""Nanoseconds, a second, within which values are held in 32 bits: sums and differences of two fit as well."""


def shown(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """A view's statistics as people are shown them: without the quantiles that its n is too small for."""
    n = statistics.get("n") or 0
    too_rare = {name: None for name, share in QUANTILES if name in statistics and n < fewest(share)}
    return {**statistics, **too_rare}


class Values:
    """A growing array of int64 that enlarges in place, so that no second copy ever exists; it need not grow
    up to ``expected`` values. ``narrow``: int32 as long as none is further than NARROW from 0, which takes
    half the memory and half the time."""

    def __init__(self, expected: int = 1024, *, narrow: bool = False) -> None:
        self._type: type[np.signedinteger[Any]] = np.int32 if narrow else np.int64
        self._bytes = np.empty(max(1, expected) * self._type().itemsize, dtype=np.uint8)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, values: Ints) -> None:
        """Adds values at the end. Arrays got from ``array`` must be gone by then."""
        if self._type is np.int32 and len(values) and (values.min() < -NARROW or values.max() > NARROW):
            self._widen()
        size = self._size + len(values)
        if size * self._type().itemsize > len(self._bytes):
            self._room_for(max(size, self._size * 9 // 8))
        self._bytes.view(self._type)[self._size : size] = values
        self._size = size

    @property
    def array(self) -> Ints:
        """The values, shape (len,), as a view."""
        return self._bytes.view(self._type)[: self._size]

    def finish(self) -> Ints:
        """The values, after which there are no more: what was held for them is given back."""
        self._room_for(self._size)
        return self.array

    def _room_for(self, values: int) -> None:
        self._bytes.resize(values * self._type().itemsize, refcheck=False)

    def _widen(self) -> None:
        """From the last value on, so that none is written over before it is read."""
        narrow = self._type
        self._type = np.int64
        self._room_for(max(self._size, len(self._bytes) // narrow().itemsize))
        before, after = self._bytes.view(narrow), self._bytes.view(np.int64)
        for end in range(self._size, 0, -_PIECE):
            part = slice(max(0, end - _PIECE), end)
            after[part] = before[part].copy()


class Maximum:
    """The largest value of a stream in the order of k, and the first k that has it."""

    def __init__(self) -> None:
        self.value: int | None = None
        self.k: int | None = None

    def see(self, k: Ints, value: Ints) -> None:
        """Looks at the next values of the stream."""
        if len(value):
            at = int(value.argmax())
            if self.value is None or value[at] > self.value:
                self.value, self.k = int(value[at]), int(k[at])


def describe(values: Ints, max_at_k: int | None) -> dict[str, Any]:
    """Count, extremes, mean, standard deviation and quantiles of one view, nanoseconds.

    ``values`` (shape (n,); LATER is a lost release) are reordered in place. What falls on a lost
    release reads ``"lost"``; the mean and the deviation are then None, as is all but n when n = 0.
    """
    n = len(values)
    if not n:
        return statistics(0, None, None, None, {}, None, max_at_k)
    places = {name: quantile_index(n, share) for name, share in QUANTILES}
    partition(values, sorted({*places.values(), n - 1}))
    mean, stddev = moments(values) if values[-1] != LATER else (None, None)
    quantiles = {name: values[place] for name, place in places.items()}
    return statistics(
        n, values[: min(places.values()) + 1].min(), mean, stddev, quantiles, values[-1], max_at_k
    )


def partition(values: Ints, places: Sequence[int]) -> None:
    """Puts the order statistics of these places (ascending) there, what is smaller before each: each looks
    only at what the one before left behind it, where numpy's with several places looks at all for each."""
    start = 0
    for place in places:
        values[start:].partition(place - start)
        start = place + 1


def statistics(
    n: int,
    minimum: Any,
    mean: float | None,
    stddev: float | None,
    quantiles: dict[str, Any],
    maximum: Any,
    max_at_k: int | None,
) -> dict[str, Any]:
    """One view as the summary states it; times are ints in nanoseconds, ``"lost"`` or None."""
    return {
        "n": n,
        "min_ns": _time(minimum),
        "mean_ns": mean,
        "stddev_ns": stddev,
        **{name: _time(quantiles.get(name)) for name, _ in QUANTILES},
        "max_ns": _time(maximum),
        "max_at_k": max_at_k,
    }


def shifted(view: dict[str, Any], by_ns: int) -> dict[str, Any]:
    """The view of the same values (none lost) with a constant added to each."""
    moved = {name for name, _ in QUANTILES} | {"min_ns", "mean_ns", "max_ns"}
    return {name: value + by_ns if name in moved else value for name, value in view.items()}


def moments(values: Ints) -> tuple[float, float | None]:
    """Mean and standard deviation (n - 1; None for n = 1) of at least one value.

    The sum is exact in integers, so the mean is correctly rounded. The deviation is taken in a second
    pass over differences from the nearest integer to the mean: exact integers whose squares are summed
    in double precision, with a relative error of some 1e-13.
    """
    n = len(values)
    total = exact_sum(values)
    if n == 1:
        return float(total), None
    centre = total // n
    squares = math.fsum(sum_of_squares(piece - centre) for piece in pieces(values))
    rest = total - n * centre
    return total / n, math.sqrt(max(squares - rest * rest / n, 0.0) / (n - 1))


def exact_sum(values: Ints) -> int:
    """The sum as an integer of any size: no overflow whatever the values."""
    high = low = 0
    for piece in pieces(values):
        if piece.dtype == np.int32:
            low += int(piece.sum(dtype=np.int64))
            continue
        high += int((piece >> 32).sum())
        low += int((piece & 0xFFFFFFFF).sum())
    return (high << 32) + low


def sum_of_squares(differences: Ints) -> float:
    """Sum of squares in double precision."""
    real = differences.astype(np.float64)
    return float(np.dot(real, real))


def count_above(values: Ints, limit: int) -> int:
    """How many of the values are greater than the limit."""
    return sum(int(np.count_nonzero(piece > limit)) for piece in pieces(values))


def pieces(values: Ints) -> Iterator[Ints]:
    """Views of consecutive values, so that what is computed from each stays small."""
    for start in range(0, len(values), _PIECE):
        yield values[start : start + _PIECE]


def _time(value: Any) -> int | str | None:
    if value is None:
        return None
    return "lost" if value == LATER else int(value)
