"""A simulated rate against the bound it has to meet."""

from __future__ import annotations

from collections.abc import Callable

from scipy.stats import beta

Sized = Callable[..., int]
"""The ``sized`` fixture."""


class Rates:
    """Asserts that a simulated rate does not contradict its bound: the one-sided 99 % Clopper-Pearson
    limit of the rate, on the bound's side, lies on the right side of it."""

    def __init__(self, table: list[str]) -> None:
        self._table = table

    def at_least(self, bound: float, hits: int, runs: int, what: str) -> None:
        limit = float(beta.ppf(0.99, hits + 1, runs - hits)) if hits < runs else 1.0
        self._note(f"{what}: {hits / runs:.4f} of {runs:,} (at least {bound})")
        assert limit >= bound, f"{what}: {hits} of {runs} is below {bound}"

    def at_most(self, bound: float, hits: int, runs: int, what: str) -> None:
        limit = float(beta.ppf(0.01, hits, runs - hits + 1)) if hits else 0.0
        self._note(f"{what}: {hits / runs:.4f} of {runs:,} (at most {bound})")
        assert limit <= bound, f"{what}: {hits} of {runs} is above {bound}"

    def _note(self, line: str) -> None:
        self._table.append(line)
