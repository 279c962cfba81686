"""`rtmeter archive check`: the numbers of a cell are those of its distribution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pytest
from archives import rows

from rtmeter.archive.add import _children
from rtmeter.archive.cells import CellRows
from rtmeter.archive.numbers import PERCENTS, disagreeing
from rtmeter.archive.schema import CELLS, DISTRIBUTIONS
from rtmeter.archive.tables import table_of
from rtmeter.statistics.fixed_bins import Binned, bin_numbers, edges
from rtmeter.statistics.views import LATER


def told(*cells: CellRows) -> set[tuple[str, str]]:
    """What is wrong with the cells, by the last digits of their names."""
    with duckdb.connect() as connection:
        connection.register("cells", table_of(CELLS, [one.cell | {"batch": "b"} for one in cells]))
        found = [row for one in cells for row in _children(DISTRIBUTIONS, one, "b")]
        connection.register("distributions", table_of(DISTRIBUTIONS, found))
        return {(cell[-4:], what) for cell, what in disagreeing(connection)}


def drawn(number: int) -> list[int]:
    """Values on both sides of 0, of any size, some lost."""
    random = np.random.default_rng(number)
    size = int(random.integers(1, 3000))
    values = (random.normal(0, 1, size) * 10.0 ** random.uniform(0, 15, size)).astype(np.int64)
    values[random.random(size) < random.choice([0, 0.0005, 0.02, 0.6])] = LATER
    return [int(value) for value in values]


def test_the_quantiles_of_every_cell_are_those_of_its_bins_and_no_others() -> None:
    cells = [rows(number, drawn(number)) for number in range(60)]
    assert told(*cells) == set()
    for name, percent in PERCENTS.items():
        wrong = []
        for number, one in enumerate(cells):
            value = one.cell[name]
            low, high = (0, 0) if value is None else edges(int(bin_numbers(np.array([value]))[0]))
            beside = 0 if value is None else (None, low - 1, high)[number % 3]
            wrong.append(replace(one, cell=one.cell | {name: beside}))
        expected = {(f"{n:04x}", f"has a p{percent} that is not that of its bins") for n in range(60)}
        assert told(*wrong) == expected


def test_counts_that_moved_are_seen() -> None:
    one = rows(7, [*range(1, 60)] * 20)
    assert one.binned is not None
    counts = one.binned.counts.copy()
    counts[10], counts[-2] = 1, counts[-2] + counts[10] - 1
    moved = replace(one, binned=Binned(one.binned.bins, counts, 0))
    assert ("0007", "has a p50 that is not that of its bins") in told(moved)
    assert told(replace(one, binned=Binned(one.binned.bins[:0], counts[:0], 0))) == set()  # of nothing


@pytest.mark.parametrize(
    ("changes", "right"),
    [
        ({"misses": 5}, True),
        ({"misses": 4}, False),
        ({"misses": 6}, True),  # one value is in the deadline's own bin
        ({"misses": 7}, False),
        ({"misses": 7, "skipped": 1}, True),
        ({"misses": 4, "refused": "clusters,misses_not_told"}, True),
        ({"misses": 4, "measurement": "own_loop"}, True),
        ({"misses": 4, "deadline_ns": None}, True),
        ({}, True),
    ],
)
def test_misses_are_as_many_as_the_bins_allow(changes: dict[str, Any], right: bool) -> None:
    """Of ten releases four are late and one is lost; one is in the bin of the deadline, in time or not."""
    values = [1, 2, 3, 4, 100_000, 200_000, 200_000, 200_000, 200_000, LATER]
    found = told(rows(3, values, **({"deadline_ns": 100_100, "skipped": 0} | changes)))
    assert found == (set() if right else {("0003", "has other misses than its bins allow")})


def test_many_cells_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtmeter.archive.numbers._AT_ONCE", 2048)  # the least that DuckDB gives
    cells = [rows(number, [number, number + 1]) for number in range(5000)]
    wrong = [replace(one, cell=one.cell | {"p50_ns": 10**9}) for one in cells[::1000]]
    assert len(told(*wrong, *(one for number, one in enumerate(cells) if number % 1000))) == 5
