"""What a comparison needs of a run: its quantiles and its miss ratio, each with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rtmeter.statistics.drift import Bools
from rtmeter.statistics.halving import RATIO
from rtmeter.statistics.quantiles import COMPARED, Estimate, miss_ratio, quantiles
from rtmeter.statistics.quantities import Ints


@dataclass(frozen=True, slots=True)
class Estimates:
    """n, and by name (``p99.9``, ``miss_ratio``) each quantity's value and interval, widened so that the
    differences of all hold together at ``confidence``."""

    n: int
    confidence: float
    quantities: dict[str, Estimate]


def estimates(
    values: Ints,
    deadline_ns: int | None,
    confidence: float = 0.95,
    percents: Sequence[str] = COMPARED,
    missed: Bools | None = None,
) -> Estimates:
    """The estimates of a run (ns per release in order, shape (n,), LATER where lost); with a deadline
    also that of the miss ratio, where ``missed`` releases miss whatever their value."""
    shared = each_of(confidence, len(percents) + (deadline_ns is not None))
    found = {f"p{percent}": one for percent, one in quantiles(values, percents, shared).items()}
    if deadline_ns is not None:
        found[RATIO] = miss_ratio(values, deadline_ns, shared, missed)
    return Estimates(len(values), confidence, found)


def each_of(confidence: float, count: int) -> float:
    """The confidence each of ``count`` intervals needs for all to hold at ``confidence``."""
    return 1 - (1 - confidence) / count
