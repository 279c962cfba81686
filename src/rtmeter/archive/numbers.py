"""Whether the numbers of each cell are those of its distribution, many cells at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from rtmeter.archive.cells import NOT_TOLD
from rtmeter.statistics.fixed_bins import bin_numbers
from rtmeter.statistics.ranks import quantile_indices, share_of

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from rtmeter.statistics.drift import Bools
    from rtmeter.statistics.quantities import Ints

PERCENTS = {f"p{percent.replace('.', '_')}_ns": percent for percent in ("50", "90", "99", "99.9", "99.99")}
PERCENTS |= {"p99_999_ns": "99.999"}

_AT_ONCE = 20_000
_ALL = f"""
SELECT d.cell, d.n, d.lost, d.counts, {", ".join(PERCENTS)}, c.skipped,
  CASE WHEN measurement IS DISTINCT FROM 'own_loop' AND NOT contains(coalesce(refused, ''), '{NOT_TOLD}')
    THEN misses END AS misses, deadline_ns
FROM distributions d JOIN cells c USING (cell, batch)
"""


def disagreeing(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
    """The cells that have a quantile which is not that of their bins, or more or fewer misses than these
    allow, and which."""
    # The bins of all cells, some gigabytes, pass by the cells as they are read: none is held for its turn.
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    for part in connection.sql(_ALL).to_arrow_reader(_AT_ONCE):
        cells = part.column("cell")
        for what, wrong in _wrong(part):
            for place in np.flatnonzero(wrong).tolist():
                yield cells[place].as_py(), what
    connection.execute("RESET preserve_insertion_order")
    connection.execute("RESET disabled_optimizers")


def _wrong(part: pa.RecordBatch) -> Iterator[tuple[str, Bools]]:
    lists = part.column("counts")
    pairs = lists.flatten()
    bins, times = (pairs.field(place).to_numpy(zero_copy_only=False).astype(np.int64) for place in (0, 1))
    sizes = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(sizes, dtype=np.int64)
    starts, n, lost = ends - sizes, _ints(part, "n"), _ints(part, "lost")
    reached = np.concatenate([[0], np.cumsum(times)])
    known = reached[ends] - reached[starts]
    for name, percent in PERCENTS.items():
        index = quantile_indices(n, share_of(percent))
        place = np.searchsorted(reached[1:], reached[starts] + index, side="right")
        there, told = (index < known) & (place < len(bins)), part.column(name).is_valid().to_numpy(False)
        of = bins[np.where(there, place, 0)] if len(bins) else index
        other = bin_numbers(_ints(part, name)) != of
        yield f"has a p{percent} that is not that of its bins", (n > 0) & ((there != told) | (told & other))
    limit = bin_numbers(_ints(part, "deadline_ns"))
    at_least, at_most = (
        np.concatenate([[0], np.cumsum(np.where(late, times, 0))])
        for late in (bins > np.repeat(limit, sizes), bins >= np.repeat(limit, sizes))
    )
    misses, skipped = _ints(part, "misses"), _ints(part, "skipped")
    fewer = misses < at_least[ends] - at_least[starts] + lost
    more = misses - skipped > at_most[ends] - at_most[starts] + lost
    judged = part.column("misses").is_valid().to_numpy(False) & part.column(
        "deadline_ns"
    ).is_valid().to_numpy(False)
    yield "has other misses than its bins allow", judged & (fewer | more)


def _ints(part: pa.RecordBatch, name: str) -> Ints:
    return np.asarray(part.column(name).fill_null(0), dtype=np.int64)
