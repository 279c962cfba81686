"""The three CSV files of the 2020 timer tool, as rtmeter.importers.timer2020 reads them: time series,
histogram, largest values. The tool has no early values: they are written by how far they are off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rtmeter.exports.served import ServedCell
from rtmeter.statistics.quantities import Ints

US = 1000
BINS = 1000
LARGEST = 10


def write_series(path: Path, out: Path, quantity: str | None) -> list[str]:
    """``idx,latency``: every value in order, ns."""
    values = _Absolute(path, quantity)
    with out.open("w", encoding="utf-8") as file:
        file.write("idx,latency\n")
        for first, block in values:
            file.writelines(f"{first + at},{value}\n" for at, value in enumerate(block.tolist()))
    return values.notes


def write_histogram(path: Path, out: Path, quantity: str | None) -> list[str]:
    """``latency,count``: 1,000 bins of a microsecond; the tool drops what lies beyond."""
    values = _Absolute(path, quantity)
    counts, beyond = np.zeros(BINS, dtype=np.int64), 0
    for _, block in values:
        bins = block // US
        counts += np.bincount(bins[bins < BINS], minlength=BINS)
        beyond += int(np.count_nonzero(bins >= BINS))
    rows = (f"{bin_us},{count}\n" for bin_us, count in enumerate(counts.tolist()))
    out.write_text("".join(["latency,count\n", *rows]), encoding="utf-8")
    dropped = f"{beyond:,} values beyond {BINS:,} us are left out, as the tool does"
    return [*values.notes, *([dropped] if beyond else [])]


def write_largest(path: Path, out: Path, quantity: str | None) -> list[str]:
    """``latency,index``: the ten largest values, ns, the largest first; of equal ones the later first."""
    values = _Absolute(path, quantity)
    largest, index = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    for first, block in values:
        largest = np.concatenate((largest, block))
        index = np.concatenate((index, np.arange(first, first + len(block))))
        kept = np.lexsort((-index, -largest))[:LARGEST]
        largest, index = largest[kept], index[kept]
    rows = (f"{value},{at}\n" for value, at in zip(largest.tolist(), index.tolist(), strict=True))
    out.write_text("".join(["latency,index\n", *rows]), encoding="utf-8")
    return values.notes


class _Absolute:
    """Blocks of a quantity's absolute values, each with the number of its first; the judged quantity by
    default."""

    def __init__(self, path: Path, quantity: str | None) -> None:
        self._cell = ServedCell(path)
        self._quantity = quantity or self._cell.judged
        self._early = 0

    def __iter__(self) -> Iterator[tuple[int, Ints]]:
        first = 0
        for values in self._cell.of(self._quantity):
            self._early += int(np.count_nonzero(values < 0))
            yield first, np.abs(values)
            first += len(values)

    @property
    def notes(self) -> list[str]:
        """What to know of the file, once it was read through."""
        early = f"{self._early:,} early values are written as if late by as much: the format has no sign"
        said = f"{self._quantity} is written, as served"
        return [said, *self._cell.left_out(), *([early] if self._early else [])]
