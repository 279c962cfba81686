"""A simulated rate against the bound it has to meet."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from scipy.special import betaincinv

Sized = Callable[..., int]
"""The ``sized`` fixture."""

CONFIDENCE = 0.99


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something happened in simulated runs of a ``case``, and the bound that ``claim`` sets."""

    claim: str
    case: str
    hits: int
    runs: int
    at_least: bool
    bound: float

    @property
    def limit(self) -> float:
        """The one-sided limit of the true rate (Clopper and Pearson, 1934), on the bound's side."""
        missed = self.runs - self.hits
        if self.at_least:
            return float(betaincinv(self.hits + 1, missed, CONFIDENCE)) if missed else 1.0
        return float(betaincinv(self.hits, missed + 1, 1 - CONFIDENCE)) if self.hits else 0.0

    @property
    def holds(self) -> bool:
        """The limit does not contradict the bound."""
        return self.limit >= self.bound if self.at_least else self.limit <= self.bound

    def __str__(self) -> str:
        side = "at least" if self.at_least else "at most"
        shares = f"{self.hits / max(self.runs, 1):.4f} of {self.runs:,} (limit {self.limit:.4f}"
        return f"{self.claim}, {self.case}: {shares}, {side} {self.bound})"


class Rates:
    """Asserts rates and keeps them for the table."""

    def __init__(self, table: list[Rate]) -> None:
        self._table = table

    def at_least(self, bound: float, hits: Iterable[bool], claim: str, case: str) -> None:
        """The share of hits must not contradict a lower bound."""
        self._assert(hits, True, bound, claim, case)

    def at_most(self, bound: float, hits: Iterable[bool], claim: str, case: str) -> None:
        """The share of hits must not contradict an upper bound."""
        self._assert(hits, False, bound, claim, case)

    def _assert(self, hits: Iterable[bool], at_least: bool, bound: float, claim: str, case: str) -> None:
        each = [operator.truth(hit) for hit in hits]
        rate = Rate(claim, case, sum(each), len(each), at_least, bound)
        self._table.append(rate)
        assert rate.holds, str(rate)
