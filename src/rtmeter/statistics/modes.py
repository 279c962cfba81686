"""A second mode in the tail, and the resolution of the values.

Beyond the last mode of a distribution its density falls. So among the values above a threshold, the
distribution function lies near its least concave majorant, whose slope is Grenander's estimate of a
falling density (Grenander, Skandinavisk Aktuarietidskrift 39, 1956); the largest distance between the two
is the share of the tail that sits in modes of its own. (The idea to look at the tail alone: TailID, ECRTS
2025.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rtmeter.statistics.quantities import Floats, Ints

FEWEST = 32
"""Values of a tail that is looked at."""

POINTS = 512
"""Order statistics of a tail that are looked at."""

SMALLEST_SHARE = 0.05
"""Share of a tail below which a mode does not matter."""

NOISE = 2.2
"""The distance for k values of a constant density, the worst case, exceeds 2.2 / sqrt(k) at any of the tails
looked at in two cases of a thousand (tests/statistics/test_modes.py)."""


@dataclass(frozen=True, slots=True)
class Mode:
    """The tail above ``threshold_ns`` has a share of its ``values`` in modes of their own, the highest
    of them at about ``at_ns``."""

    threshold_ns: int
    values: int
    share: float
    at_ns: int


def second_mode(top: Ints, quantum_ns: int, design_effect: float = 1.0) -> Mode | None:
    """The tail, of several, with the largest share in modes of its own, or None.

    ``top``: the largest values, ascending, ns. Tails of FEWEST, twice as many and so on are looked at.
    ``design_effect``: what dependence makes of their number.
    """
    found: Mode | None = None
    count = FEWEST
    while count < len(top):
        mode = _mode(top[-count - 1 :], quantum_ns)
        sure = max(SMALLEST_SHARE, NOISE * math.sqrt(design_effect / count))
        if mode.share > sure and (found is None or mode.share > found.share):
            found = mode
        count *= 2
    return found


def _mode(tail: Ints, quantum_ns: int) -> Mode:
    """The distance for the values after the first, which is the threshold."""
    ranks = np.unique(np.linspace(0, len(tail) - 1, min(POINTS, len(tail))).astype(np.int64))
    values = tail[ranks].astype(np.float64)
    at, first = np.unique(values, return_index=True)
    share = np.append(ranks[first[1:]] - 1, len(tail) - 1) / (len(tail) - 1)
    share = np.maximum.accumulate(np.maximum(share, 0))
    # The values of a clock tick are spread over it; between the ticks there is nothing.
    edges = np.concatenate(
        (at[:1], np.column_stack((np.maximum(at[1:] - quantum_ns, at[:-1]), at[1:])).ravel())
    )
    reached = np.concatenate(([share[0]], np.column_stack((share[:-1], share[1:])).ravel()))
    apart = np.append(True, np.diff(edges) > 0)
    edges, reached = edges[apart], reached[apart]
    distance = _least_concave_majorant(edges, reached) - reached
    worst = int(distance.argmax())
    beyond = edges[min(worst + 1, len(edges) - 1)]
    return Mode(int(tail[0]), len(tail) - 1, float(distance[worst]), int(beyond))


def _least_concave_majorant(x: Floats, y: Floats) -> Floats:
    """At each x, shape (n,), ascending without ties: the upper hull of the points, by Andrew's monotone chain
    (Information Processing Letters 9, 1979)."""
    hull: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(hull) > 1 and not _bends_down(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    majorant: Floats = np.interp(x, *np.transpose(hull))
    return majorant


def _bends_down(left: tuple[float, float], middle: tuple[float, float], right: tuple[float, float]) -> bool:
    """Whether the point in the middle lies above the line between the two others."""
    rise, run = right[1] - left[1], right[0] - left[0]
    return (middle[1] - left[1]) * run > rise * (middle[0] - left[0])


def quantum(top: Ints) -> int:
    """The resolution of values in ns, shape (k,) ascending: the greatest common divisor of their
    differences; 0 if they are all equal."""
    return int(np.gcd.reduce(np.diff(top))) if len(top) > 1 else 0
