"""The judged quantity of a cell as counts of values, for files that hold a histogram."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rtmeter.errors import RtmeterError
from rtmeter.results import store, words
from rtmeter.results.data import counted_of
from rtmeter.results.record import CellRecord
from rtmeter.statistics.counted_data import CountedData, Histogram, Intervals
from rtmeter.statistics.quantities import Ints, judged_quantity
from rtmeter.statistics.views import LATER, per_release
from rtmeter.values import format_duration

Rounding = Callable[[Ints], Ints]
"""Values in ns, none negative, to those that stand for them in the file."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The ``quantity`` of a cell per release: ``values`` (ns, ascending, none negative) and ``counts``, shape
    (values,), and the exact extremes (0 without values). ``over_from_ns``: from there on, if anywhere, only
    the count of values and the largest are known. ``notes``: what is not where it was, or left out."""

    cell: str
    record: CellRecord
    quantity: str
    values: Ints
    counts: Ints
    min_ns: int
    max_ns: int
    over_from_ns: int | None
    notes: tuple[str, ...]

    @property
    def n(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())


def distributions(path: Path, rounding: Rounding, *, overflows: bool = False) -> list[Distribution]:
    """That of each cell under the path, by the name of each; ``overflows``: the file can say what lies beyond
    its last bin. Raises RtmeterError if one has none."""
    return [_of_cell(folder, path, rounding, overflows) for folder in store.cell_folders(path)]


def notes_of(found: list[Distribution]) -> list[str]:
    """The notes of all, each with its cell where there are several."""
    return [f"{one.cell}: {note}" if len(found) > 1 else note for one in found for note in one.notes]


def name_of(folder: Path, path: Path, record: CellRecord) -> str:
    """A cell's folder below the path; its id if it is the path, or one of the repeats of that name."""
    return str(folder.relative_to(path)) if path in folder.parents else record.id


def _of_cell(folder: Path, path: Path, rounding: Rounding, overflows: bool) -> Distribution:
    record = store.read_cell(folder)
    if record.summary is None:
        raise RtmeterError("has no samples", where=str(folder), remedy="measure it again, or leave it out")
    tally = _Tally(rounding)
    data = counted_of(folder, record)
    if data is None:
        notes = _count_samples(tally, folder, record)
    else:
        notes = _count(tally, _histogram_of(data, folder), overflows)
    if tally.early:
        notes.append(f"{tally.early:,} early values count as 0")
    return Distribution(
        cell=" ".join(name_of(folder, path, record).split()),  # a line of the file ends with the line
        record=record,
        quantity=words.judged(record.meta),
        values=tally.values,
        counts=tally.counts,
        min_ns=tally.min_ns or 0,
        max_ns=tally.max_ns or 0,
        over_from_ns=data.over_from_ns if isinstance(data, Histogram) and data.over else None,
        notes=tuple(notes),
    )


class _Tally:
    """Counts rounded values."""

    def __init__(self, rounding: Rounding) -> None:
        self.rounding = rounding
        self.values = self.counts = np.empty(0, dtype=np.int64)
        self.early = 0
        self.min_ns: int | None = None
        self.max_ns: int | None = None

    def see(self, values: Ints, counts: Ints | None = None) -> None:
        """Adds values, each as often as ``counts`` says, or once."""
        if not len(values):
            return
        counts = np.ones_like(values) if counts is None else counts
        self.early += int(counts[values < 0].sum())
        values = np.maximum(values, 0)
        least, most = int(values.min()), int(values.max())
        self.min_ns = least if self.min_ns is None else min(self.min_ns, least)
        self.max_ns = most if self.max_ns is None else max(self.max_ns, most)
        all_values = np.concatenate((self.values, self.rounding(values)))
        self.values, place = np.unique(all_values, return_inverse=True)
        total = np.zeros(len(self.values), dtype=np.int64)
        np.add.at(total, place, np.concatenate((self.counts, counts)))
        self.counts = total


def _count_samples(tally: _Tally, folder: Path, record: CellRecord) -> list[str]:
    meta, lost = record.meta, 0
    for block in per_release(meta, judged_quantity(meta), store.chunks(folder)()):
        came = block.value != LATER
        lost += int(np.count_nonzero(~came))
        tally.see(block.value[came])
    return [f"{lost:,} lost releases have no value and are left out"] if lost else []


def _histogram_of(data: CountedData, folder: Path) -> Histogram:
    if isinstance(data, Intervals):
        remedy = "export it as csv, parquet or json"
        raise RtmeterError("has no single values, only maxima of intervals", where=str(folder), remedy=remedy)
    return data


def _count(tally: _Tally, data: Histogram, overflows: bool) -> list[str]:
    tally.see(data.lower_ns, data.counts)
    notes = []
    first, last = (tally.rounding(np.maximum(data.lower_ns + by, 0)) for by in (0, data.width_ns - 1))
    if (first != last).any():
        wide = format_duration(data.width_ns)
        notes.append(f"values were counted in bins of {wide}, and stand where their bin begins")
    if data.over:
        beyond = data.over_from_ns if data.max_ns is None else data.max_ns
        tally.see(np.array([beyond]), np.array([data.over]))
        as_ = "the end of that" if data.max_ns is None else "the largest of them"
        within = "are overflows, and in mean and maximum " if overflows else ""
        notes.append(f"{data.over:,} values beyond the tool's last bin {within}count as {as_}")
    if data.dropped:
        notes.append("the tool left out values beyond its last bin, and how many is not known")
    return notes
