"""What the few largest peaks alone say of a level: there a rare cause is seen, or nowhere.

Of 400 peaks a second, larger cause may have ten. A model of all peaks hardly notices, yet far out that cause
is alone. So the level is also taken from the largest 3, 6, 12, … peaks, each number by itself: some of them
lie where that cause rules. So few do not tell a shape: it may be exponential, that of all peaks, or as heavy
as HEAVY_ENOUGH. The sum of the k largest excesses over the next smaller value is then gamma distributed about
its scale (Renyi, Acta Math. Hung. 4, 1953; exactly so for an exponential tail).
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from rtmeter.statistics.models import reduced, usable
from rtmeter.statistics.quantities import Floats

FEWEST = 3
"""Peaks that a level is taken from, at the least."""

HEAVY_ENOUGH = 0.2
"""The shape that a rare cause may have though all peaks show a lighter tail."""

DOUBT = 0.5
"""Share of the doubt that an interval may have, which each number of peaks is given: none of them lies quite
where the rare cause begins (tests/statistics/test_rare_causes.py)."""


def furthest_levels(peaks: Floats, factor: float, shape: float, confidence: float) -> tuple[float, float]:
    """The lowest and the highest end of the intervals of the level that is passed once in ``factor`` times
    the run, over FEWEST, twice as many and so on of the largest ``peaks`` (ascending, shape (peaks,)), of
    which all have that ``shape``; (inf, -inf) if they are too few, or the level lies among those few.
    """
    doubt = DOUBT * (1 - confidence) / 2
    heavy = usable(np.array(max(shape, HEAVY_ENOUGH)))
    lowest, highest = math.inf, -math.inf
    count = FEWEST
    while count < len(peaks):
        if count * factor > 1:
            start = float(peaks[-count - 1])
            total = float((peaks[-count:] - start).sum())
            low, high = total / scipy.special.gammaincinv(count, (1 - doubt, doubt))
            lowest = min(lowest, start + low * math.log(count * factor))
            highest = max(highest, start + high * float(reduced(count * factor, heavy)))
        count *= 2
    return lowest, highest
