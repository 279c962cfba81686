"""Repeated runs may be pooled when they are shown to be equivalent: two one-sided tests of each difference
(Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987), not the absence of a significant one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rtmeter.statistics.compare import mover
from rtmeter.statistics.quantiles import quantiles
from rtmeter.statistics.quantities import Ints

POOLED = ("50", "99")
"""Percentages whose quantiles have to be equivalent."""


@dataclass(frozen=True, slots=True)
class Pooling:
    """Whether runs are equivalent within ``margin``, a share of the quantile.

    ``equivalent``: every difference lies within it; ``different``: one lies beyond it; else ``not shown``.
    ``furthest``: numbers of the two runs (from 0) that differ most, in which quantile, and the ends of
    their difference's interval as shares of the quantile; None with fewer than two runs.
    """

    outcome: Literal["equivalent", "different", "not shown"]
    margin: float
    furthest: tuple[int, int, str, float, float] | None


def pooling(
    runs: Sequence[Ints], margin: float, confidence: float = 0.95, percents: Sequence[str] = POOLED
) -> Pooling:
    """Compares every two of the runs (ns per release in order, LATER where lost).

    Being equivalent takes all differences, so each is tested at the full ``confidence``.
    """
    known = [quantiles(run, percents, 2 * confidence - 1) for run in runs]
    outcome: Literal["equivalent", "different", "not shown"] = "equivalent"
    furthest: tuple[int, int, str, float, float] | None = None
    for (i, a), (j, b) in itertools.combinations(enumerate(known), 2):
        for percent in percents:
            size = abs(a[percent].value + b[percent].value) / 2
            ends = np.array(mover(a[percent], b[percent]))
            lower, upper = (float(end) for end in (ends / size if size else ends))
            if furthest is None or not max(-lower, upper) <= max(-furthest[3], furthest[4]):
                furthest = (i, j, f"p{percent}", lower, upper)
            if lower > margin or upper < -margin:
                outcome = "different"
            elif outcome == "equivalent" and not (-margin < lower and upper < margin):
                outcome = "not shown"
    return Pooling(outcome, margin, furthest)
