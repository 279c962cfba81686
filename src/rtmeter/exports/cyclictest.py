"""Histograms as ``cyclictest -h`` writes them: microseconds, a row a bin, a column a cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from rtmeter.errors import RtmeterError
from rtmeter.exports.distribution import Distribution, distributions, notes_of
from rtmeter.statistics.quantities import Ints

US = 1000
MOST_BINS = 1_000_000
"""As many as cyclictest can have; what lies beyond is counted as its overflow."""


def write(path: Path, out: Path) -> list[str]:
    """Writes the cells as threads. cyclictest knows no early wake-ups: they are in bin 0. All threads have as
    many bins: those of the cell whose tool had the fewest, if values of it lie beyond them."""
    found = distributions(path, lambda values: values // US * US, overflows=True)
    notes = notes_of(found)
    ends = [end for one in found if (end := _end_us(one)) is not None]
    bins = min(max(one.max_ns for one in found) // US + 1, MOST_BINS, *ends)
    if not bins:
        message = "has values beyond a last bin that ends before a microsecond, the first of this format"
        raise RtmeterError(message, where=str(path), remedy="export it as hdr, csv, parquet or json")
    if bins in ends:
        cut = [one.cell for one in found if one.max_ns // US >= bins and _end_us(one) != bins]
        notes += [f"{cell}: what lies beyond the bins of another cell's tool is overflow" for cell in cut]
    columns = [_column(one, bins) for one in found]
    with out.open("w", encoding="utf-8") as file:
        file.writelines(
            f"# rtmeter: thread {at}: {one.cell}, {one.quantity}\n" for at, one in enumerate(found)
        )
        file.writelines(f"# rtmeter: {note}\n" for note in notes)
        file.write("# Histogram\n")
        for bin_, counts in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            file.write(f"{bin_:06} " + "\t".join(f"{count:06}" for count in counts) + "\n")
        file.writelines(f"{line}\n" for line in _totals(found, columns))
    return notes


def _end_us(one: Distribution) -> int | None:
    """Where its tool's bins end, if values lie beyond them."""
    return None if one.over_from_ns is None else one.over_from_ns // US


def _column(one: Distribution, bins: int) -> Ints:
    column = np.zeros(bins, dtype=np.int64)
    inside = one.values < bins * US
    column[one.values[inside] // US] = one.counts[inside]
    return column


def _totals(found: list[Distribution], columns: list[Ints]) -> Iterator[str]:
    def line(name: str, width: int, value: Callable[[Distribution], int]) -> str:
        return f"# {name}: " + " ".join(f"{value(one):0{width}}" for one in found)

    yield "# Total: " + " ".join(f"{column.sum():09}" for column in columns)
    yield line("Min Latencies", 5, lambda one: one.min_ns // US)
    yield line("Avg Latencies", 5, _mean_us)
    yield line("Max Latencies", 5, lambda one: one.max_ns // US)
    beyond = [one.n - int(column.sum()) for one, column in zip(found, columns, strict=True)]
    yield "# Histogram Overflows: " + " ".join(f"{count:05}" for count in beyond)


def _mean_us(one: Distribution) -> int:
    """Of whole microseconds, as cyclictest takes it."""
    return int(np.dot(one.values // US, one.counts)) // one.n if one.n else 0
