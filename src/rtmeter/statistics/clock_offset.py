"""The offset of one clock to another from messages that went to and fro between them.

A message cannot arrive before it was sent. So what the other clock shows at an arrival there is at least
the offset ahead of ours at the sending, and on the way back at most: every exchange bounds the offset from
both sides, whatever the two ways' delays are (Cristian, Distributed Computing 3, 1989). Two clocks that
nobody steps drift apart steadily: the offset is a line through time, between all bounds.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from rtmeter.model import ABSENT
from rtmeter.statistics.quantities import Floats, Ints

WINDOW_NS = 50_000_000
"""Of each window of a chunk only the tightest bound of either side is looked at."""

MOST_DRIFT = 1e-3
"""Clocks that drift apart faster than this are not believed; crystals do 1e-4 at worst."""

OffsetBound = tuple[int, int]
"""When, and a bound of the offset then, both in nanoseconds."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Their clock less ours: ``offset_ns`` at ``origin_ns`` of our clock, growing by ``drift`` (seconds a
    second), nowhere in the run further than ``error_ns`` from the truth; from ``exchanges`` messages that
    came back."""

    origin_ns: int
    offset_ns: int
    drift: float
    error_ns: float
    exchanges: int

    def to_ours(self, theirs: Ints) -> Ints:
        """Stamps of their clock as ours would have shown them, shape (rows,); ABSENT stays."""
        shifted = theirs - self.offset_ns
        drifted = (shifted - self.origin_ns) * (self.drift / (1 + self.drift))  # it is a share of our time
        ours = shifted - np.rint(drifted).astype(np.int64)
        return np.where(theirs == ABSENT, ABSENT, ours)


class Exchanges:
    """Gathers exchanges in the order of time; keeps the few bounds that no line between all of them needs
    more than."""

    def __init__(self) -> None:
        self.count = 0
        self._reference: int | None = None  # about the offset: floats shall not lose nanoseconds
        self._upper: list[OffsetBound] = []
        self._lower: list[OffsetBound] = []

    def add(self, sent: Ints, server_received: Ints, server_sent: Ints, received: Ints) -> None:
        """Counts in messages by their four stamps, shape (messages,), none of them ABSENT."""
        if not len(sent):
            return
        self.count += len(sent)
        if self._reference is None:
            self._reference = int(server_received[0] - sent[0])
        self._upper = _tightest(self._upper, sent, server_received - sent - self._reference, 1)
        self._lower = _tightest(self._lower, received, server_sent - received - self._reference, -1)

    def offset(self) -> ClockOffset | None:
        """The line between all bounds that keeps furthest away from them; None if there is no such line, or
        no exchange."""
        if self._reference is None:
            return None
        upper, lower = (np.array(points, dtype=np.float64) for points in (self._upper, self._lower))
        origin_ns = float(min(upper[0, 0], lower[0, 0]))
        length_ns = float(max(upper[-1, 0], lower[-1, 0])) - origin_ns
        # offset + slope * t + slack <= upper, offset + slope * t - slack >= lower, t from 0 to 1
        t_upper, t_lower = ((points[:, 0] - origin_ns) / (length_ns or 1) for points in (upper, lower))
        above = np.column_stack((np.ones_like(t_upper), t_upper, np.ones_like(t_upper)))
        below = np.column_stack((-np.ones_like(t_lower), -t_lower, np.ones_like(t_lower)))
        rows, limits = np.vstack((above, below)), np.concatenate((upper[:, 1], -lower[:, 1]))
        most = MOST_DRIFT * length_ns
        line = _solve([0, 0, -1], rows, limits, most)
        if line is None:
            return None
        offset, slope, _ = line
        error = 0.0
        for t in (0.0, 1.0):  # lines between the bounds lie furthest apart at one of the ends
            for sign in (1, -1):
                extreme = _solve([sign, sign * t, 0], rows, limits, most)
                if extreme is not None:
                    error = max(error, abs(extreme[0] + extreme[1] * t - offset - slope * t))
        drift = slope / length_ns if length_ns else 0.0
        return ClockOffset(int(origin_ns), self._reference + round(offset), drift, error + 1, self.count)


def _tightest(kept: list[OffsetBound], at: Ints, bounds: Ints, sign: int) -> list[OffsetBound]:
    """What a line below all the bounds (sign -1: above) is held by: the corners of their convex hull on
    that side, with those that were kept of earlier ones."""
    starts = np.concatenate(([0], np.flatnonzero(np.diff(at // WINDOW_NS)) + 1, [len(at)]))
    hull: list[OffsetBound] = []
    fresh = (first + int(np.argmin(sign * bounds[first:end])) for first, end in itertools.pairwise(starts))
    for point in sorted([*kept, *((int(at[i]), int(bounds[i])) for i in fresh)]):  # replies may overtake
        while len(hull) > 1 and sign * _turn(hull[-2], hull[-1], point) <= 0:
            hull.pop()
        hull.append(point)
    return hull


def _turn(a: OffsetBound, b: OffsetBound, c: OffsetBound) -> int:
    """Above zero where a path from a over b to c turns to the left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _solve(cost: list[float], rows: Floats, limits: Floats, most_slope: float) -> list[float] | None:
    """Offset, slope and slack of least cost within the limits; None if nothing is within them."""
    from scipy.optimize import linprog  # only here: it takes long, and few runs need it

    ranges = [(None, None), (-most_slope, most_slope), (0, None)]
    found = linprog(cost, A_ub=rows, b_ub=limits, bounds=ranges, method="highs")
    return [float(value) for value in found.x] if found.status == 0 else None
