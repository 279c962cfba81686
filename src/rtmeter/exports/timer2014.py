"""The gnuplot logs of the 2014 timer tests, as rtmeter.importers.timer2014 reads them: whole microseconds
truncated towards zero, a row a bin, early values in comments of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rtmeter.errors import RtmeterError
from rtmeter.exports.served import ServedCell

US = 1000
_PEAK_US = 100_000

_NAMES = {
    "Measured": ("measured_after", "measured"),
    "Reported": ("reported",),
    "Difference": ("difference_after", "difference"),
}
"""The tool's three quantities, and what a cell calls them: first as the tool takes it, then as rtmeter."""


@dataclass
class _Bins:
    """A quantity in whole microseconds."""

    counts: Counter[int] = field(default_factory=Counter)
    peaks: list[int] = field(default_factory=list)
    early: int = 0
    n: int = 0
    sum_ns: int = 0
    absolute_ns: int = 0
    least_ns: int | None = None
    most_ns: int | None = None


def write(path: Path, out: Path, quantity: str | None) -> list[str]:
    """Writes the log of a quantity, ``measured_after`` by default, of a cell of one-shot timers."""
    cell = ServedCell(path)
    if cell.record.mode != "one_shot":
        remedy = "choose another format, or a cell of one-shot timers"
        raise RtmeterError("is no cell of one-shot timers", field="path", value=str(path), remedy=remedy)
    chosen = quantity or "measured_after"
    own = next((title for title, names in _NAMES.items() if chosen in names), "")
    if not own:
        known = [name for names in _NAMES.values() for name in names]
        remedy = f"choose one of {', '.join(known)}"
        raise RtmeterError("is not in these logs", field="--quantity", value=chosen, remedy=remedy)
    as_rtmeter = _NAMES[own].index(chosen)
    taken = {title: names[min(as_rtmeter, len(names) - 1)] for title, names in _NAMES.items()}
    bins = {title: _bins(cell, name) for title, name in taken.items()}
    if not bins[own].n:
        raise RtmeterError("has no value", field="--quantity", value=chosen, remedy="choose another quantity")
    with out.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in _lines(cell, bins, own))
    notes = [f"{chosen} is written, with {', '.join(taken.values())} in the header", *cell.left_out()]
    early = f"{bins[own].early:,} values early by less than a microsecond are in no row"
    return [*notes, *([early] if bins[own].early else [])]


def _bins(cell: ServedCell, name: str) -> _Bins:
    found = _Bins()
    for values in cell.of(name):
        if not len(values):
            continue
        us = np.fix(values / US).astype(np.int64)
        bins, counts = np.unique(us, return_counts=True)
        found.counts.update(dict(zip(bins.tolist(), counts.tolist(), strict=True)))
        found.peaks += (np.flatnonzero(us >= _PEAK_US) + found.n).tolist()
        found.early += int(np.count_nonzero((us == 0) & (values < 0)))
        found.n += len(values)
        found.sum_ns += int(values.sum())
        found.absolute_ns += int(np.abs(values).sum())
        least, most = int(values.min()), int(values.max())
        found.least_ns = least if found.least_ns is None else min(found.least_ns, least)
        found.most_ns = most if found.most_ns is None else max(found.most_ns, most)
    return found


def _lines(cell: ServedCell, bins: dict[str, _Bins], own: str) -> Iterator[str]:
    shown = bins[own]
    yield "# Plot data for GnuPlot"
    timeout_ns = cell.record.config.get("timeout_ns") or 0
    yield f"# Timeout: {timeout_ns // US}us, LoopLength: {shown.n}"
    for title, one in bins.items():
        mean_ns = (one.absolute_ns if title == "Difference" else one.sum_ns) / max(one.n, 1)
        least, mean, most = (int((ns or 0) / US) for ns in (one.least_ns, mean_ns, one.most_ns))
        yield f"# {title}:\t MIN: {least}us \tAVG: {mean}us \tMAX: {most}us"
    if shown.peaks:
        yield f"# Peak values of over 100ms in loops: | {' | '.join(map(str, shown.peaks))} | "
    for bin_us in range(max(shown.counts) + 1):
        count = shown.counts[bin_us] - (shown.early if bin_us == 0 else 0)
        yield f"{bin_us:06} \t{count:06}"
    if (least := min(shown.counts)) < 0:
        yield "# negative Values following"
        for bin_us in range(1, -least + 1):
            yield f"#-{bin_us:06} \t{shown.counts[-bin_us]:06}"
    yield ""
