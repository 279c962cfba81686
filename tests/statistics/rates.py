"""A simulated rate against the bound it has to meet."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from scipy.special import bdtr, bdtrc, betaincinv

Sized = Callable[..., int]
"""The ``sized`` fixture."""

CONFIDENCE = 0.99

POWER = 0.9
"""A test of a rate fails with this probability, or a larger one, if the rate is `Rate.wrong`. Where a case by
itself has too few runs for that, it is ``weak``, and a test of all cases together has them."""

WORSE, OF_NEVER = 4, 0.25
"""What has to be found out of an upper claim: so many times its bound; of one of never, so large a rate."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something happened in simulated runs of a ``case``, and the bound that ``claim`` sets."""

    claim: str
    case: str
    hits: int
    runs: int
    at_least: bool
    bound: float
    weak: bool = False

    @property
    def limit(self) -> float:
        """The one-sided limit of the true rate (Clopper and Pearson, 1934), on the bound's side."""
        missed = self.runs - self.hits
        if self.at_least:
            return float(betaincinv(self.hits + 1, missed, CONFIDENCE)) if missed else 1.0
        return float(betaincinv(self.hits, missed + 1, 1 - CONFIDENCE)) if self.hits else 0.0

    @property
    def holds(self) -> bool:
        """The limit does not contradict the bound; without a run nothing holds."""
        return self.runs > 0 and (self.limit >= self.bound if self.at_least else self.limit <= self.bound)

    @property
    def wrong(self) -> float:
        """The rate that has to be found out: half a lower claim, ``WORSE`` times an upper one."""
        return self.bound / 2 if self.at_least else min(WORSE * self.bound, 1.0) or OF_NEVER

    @property
    def power(self) -> float:
        """How probable it is that so many runs of a rate of ``wrong`` fail."""
        failing = [hits for hits in range(self.runs + 1) if not replace(self, hits=hits).holds]
        if not failing or not self.runs:
            return 0.0
        if self.at_least:  # up to so many hits
            return float(bdtr(failing[-1], self.runs, self.wrong))
        return float(bdtrc(failing[0] - 1, self.runs, self.wrong)) if failing[0] else 1.0

    def __str__(self) -> str:
        side = "at least" if self.at_least else "at most"
        shares = f"{self.hits / max(self.runs, 1):.4f} of {self.runs:,} (limit {self.limit:.4f}"
        return f"{self.claim}, {self.case}: {shares}, {side} {self.bound})"


class Rates:
    """Asserts rates and keeps them for the table."""

    def __init__(self, table: list[Rate]) -> None:
        self._table = table

    def at_least(
        self, bound: float, hits: Iterable[bool], claim: str, case: str, *, weak: bool = False
    ) -> None:
        """The share of hits must not contradict a lower bound."""
        self._assert(hits, True, bound, claim, case, weak)

    def at_most(
        self, bound: float, hits: Iterable[bool], claim: str, case: str, *, weak: bool = False
    ) -> None:
        """The share of hits must not contradict an upper bound."""
        self._assert(hits, False, bound, claim, case, weak)

    def at_most_of_each(self, bound: float, cases: Mapping[str, Iterable[bool]], claim: str) -> None:
        """Of each case, which may by itself have too few runs, and of all of them together."""
        found = {case: list(hits) for case, hits in cases.items()}
        for case, hits in found.items():
            self.at_most(bound, hits, claim, case, weak=True)
        self.at_most(bound, (hit for hits in found.values() for hit in hits), claim, "all cases")

    def _assert(
        self, hits: Iterable[bool], at_least: bool, bound: float, claim: str, case: str, weak: bool
    ) -> None:
        each = [operator.truth(hit) for hit in hits]
        rate = Rate(claim, case, sum(each), len(each), at_least, bound, weak)
        self._table.append(rate)
        assert rate.holds, str(rate)
        assert weak or rate.power >= POWER, f"{rate}: find a rate of {rate.wrong:g} at {rate.power:.2f} only"
