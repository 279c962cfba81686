"""The bounds of the miss ratio against decimal arithmetic of 60 digits, up to n = 10¹⁰.

The upper bound u solves P(X ≤ x | n, u) = 1 - c, the lower one l solves P(X ≥ x | n, l) = 1 - c, for binomial
X. Both probabilities are summed term by term, and must lie on either side of 1 - c a hundred-millionth of the
bound below and above it.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext

import pytest

from rtmeter.statistics.bounds import miss_ratio_bounds

GOOD_TO = Decimal("1e-8")
MISSES = (0, 1, 2, 7, 30, 300, 998, 999, 1000, 1001)


def at_most(x: int, n: int, p: Decimal) -> Decimal:
    """P(X ≤ x) of a binomial X."""
    term = (1 - p) ** n
    total, odds = term, p / (1 - p)
    for i in range(x):
        term *= odds * (n - i) / (i + 1)
        total += term
    return total


def crosses(probability: Callable[[Decimal], Decimal], bound: float, level: Decimal) -> bool:
    """Whether the probability passes the level between just below and just above the bound."""
    below, above = (probability(Decimal(bound) * (1 + side * GOOD_TO)) for side in (-1, 1))
    return (below - level) * (above - level) < 0


@pytest.mark.parametrize("n", [10**4, 10**6, 10**8, 10**10])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99, 0.9999999])
def test_both_bounds_are_good_to_a_hundred_millionth(n: int, confidence: float) -> None:
    with localcontext() as context:
        context.prec = 60
        level = 1 - Decimal(confidence)
        for misses in MISSES:
            lower, upper = miss_ratio_bounds(misses, n, confidence)
            assert crosses(lambda p, x=misses: at_most(x, n, p), upper, level), (misses, upper)
            if misses:
                assert crosses(lambda p, x=misses: 1 - at_most(x - 1, n, p), lower, level), (misses, lower)
