"""Whether bound and outcome of cells are those of their numbers, by the rule of verdicts (docs/judge.md)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rtmeter.archive.cells import NOT_TOLD
from rtmeter.judge.verdict import Misses, row_of
from rtmeter.model import Requirement
from rtmeter.statistics.bounds import miss_ratio_bounds

if TYPE_CHECKING:
    import duckdb

_AT_ONCE = 20_000
_ALIKE = 1e-6  # SciPy's releases differ by less, a changed number by more
_BOUNDED = f"""
SELECT list(cell ORDER BY cell), n, misses, design_effect, upper, outcome,
  coalesce(deadline_ns, 1), miss_ratio, confidence, criticality, horizon
FROM cells WHERE upper IS NOT NULL AND bins IS NOT NULL AND measurement IS DISTINCT FROM 'own_loop'
  AND NOT contains(coalesce(refused, ''), '{NOT_TOLD}')
  AND misses BETWEEN 0 AND n AND n > 0 AND design_effect BETWEEN 1 AND 1e300
  AND confidence > 0 AND confidence < 1 AND horizon BETWEEN 1 AND 1e6
  AND (miss_ratio IS NULL OR miss_ratio > 0 AND miss_ratio < 1)
GROUP BY ALL
"""


def misjudged(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
    """The cells with a bound that their misses do not give, or an outcome that the bound does not, and which.
    What refuses a bound, a hard deadline's return level, and what a program's own loop may have missed are
    not in an archive: such are left out."""
    found = connection.execute(_BOUNDED)
    while part := found.fetchmany(_AT_ONCE):
        for cells, n, misses, effect, upper, outcome, *asked in part:
            if wrong := _wrong(n, misses, effect, upper, outcome, Requirement(*asked)):
                yield from ((cell, wrong) for cell in cells)


def _wrong(
    n: int, misses: int, effect: float, upper: float, outcome: str | None, asked: Requirement
) -> str | None:
    bounds = miss_ratio_bounds(misses, n, asked.confidence, effect)
    if not math.isclose(bounds[1], upper, rel_tol=_ALIKE):
        return "has another bound than its misses give"
    known = asked.criticality != "hard" or misses
    if known and outcome != row_of(Misses("", n, misses, 0, 0), asked, None, bounds).outcome:
        return "has an outcome that its misses, or its bound, rule out"
    return None
