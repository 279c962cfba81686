"""Repeated runs may be pooled when they are shown to be equivalent: two one-sided tests of each difference
(Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987), not the absence of a significant one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rtmeter.statistics.compare import mover
from rtmeter.statistics.quantiles import Estimate, quantiles
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
            lower, upper = _apart(a[percent], b[percent])
            if furthest is None or not max(-lower, upper) <= max(-furthest[3], furthest[4]):
                furthest = (i, j, f"p{percent}", lower, upper)
            if lower > margin or upper < -margin:
                outcome = "different"
            elif outcome == "equivalent" and not (-margin < lower and upper < margin):
                outcome = "not shown"
    return Pooling(outcome, margin, furthest)


def _apart(a: Estimate, b: Estimate) -> tuple[float, float]:
    """The ends of the interval of b - a, as shares of their mean; infinite where one of them is lost."""
    if math.isinf(a.value) or math.isinf(b.value):
        return (0.0, 0.0) if a.value == b.value else (b.value - a.value,) * 2
    size = abs(a.value + b.value) / 2
    lower, upper = mover(a, b)
    return (lower / size, upper / size) if size else (lower, upper)
