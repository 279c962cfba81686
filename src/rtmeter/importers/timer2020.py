"""The three CSV files of the 2020 ROS 2 timer tool: histogram, largest values, time series.

The tool keeps absolute differences, so early looks late; its histogram has 1,000 bins of a microsecond and
drops what lies beyond them.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np

from rtmeter.importers.base import CUT, US, Imported, ImportedSeries, SourceFile, histogram
from rtmeter.model import Doubt
from rtmeter.statistics.quantities import Ints

HIST, TOP, SERIES = "latency,count", "latency,index", "idx,latency"
BINS = 1000

_ABSOLUTE = Doubt("absolute_values", "the tool takes absolute differences: what was early counts as late", "")


def read_histogram(source: SourceFile) -> Imported:
    """``latency,count``: microseconds. What was beyond the last bin is in no file but the largest ten,
    so it is looked for beside this one (``…topn…`` for ``…hist…``)."""
    bins: Counter[int] = Counter()
    for number, (edge, count) in _rows(source, HIST):
        if source.count(edge, "latency", number) != len(bins):
            raise source.error("is out of order", line=number, field="latency", value=edge, remedy=CUT)
        bins[len(bins)] = source.count(count, "count", number)
    if len(bins) not in (BINS, BINS + 1):
        raise source.error(f"has not {BINS:,} rows of a microsecond", field="latency", remedy=CUT)
    top = _beside(source)
    largest = [] if top is None else _largest(top)
    latest = [value for value in largest if value >= len(bins) * US]
    found = histogram(
        source,
        bins + Counter(value // US for value in latest),
        US,
        name=source.path.stem,
        largest=max(largest) // US if largest else None,
    )
    dropped = len(latest) == len(largest)
    found = replace(found, dropped=dropped)
    doubts = [_ABSOLUTE]
    if dropped:
        how_many = f"{len(latest)} of them are known" if latest else "how many is not known"
        message = f"the tool drops values beyond its last bin: {how_many}"
        hint = "" if latest else "put the file of the largest values beside it"
        doubts.append(Doubt("histogram_overflow", message, hint))
    return _imported(ImportedSeries("histogram", histogram=found), doubts)


def read_series(source: SourceFile) -> Imported:
    """``idx,latency``: nanoseconds, in order."""
    rows = source.whole_numbers(2, ",") if source.text.partition("\n")[0].strip() == SERIES else None
    if rows is None or (rows[0] != np.arange(rows.shape[1])).any() or rows[1].min() < 0:
        samples = _by_line(source)
    else:
        samples = rows[1]
    doubts = [_ABSOLUTE, *source.check_steps(samples)]
    return _imported(ImportedSeries("time series", samples=samples), doubts)


def _by_line(source: SourceFile) -> Ints:
    """The latencies, shape (rows,), or the line at fault."""
    values: list[int] = []
    for number, (index, latency) in _rows(source, SERIES):
        if source.count(index, "idx", number) != len(values):
            raise source.error("is out of order", line=number, field="idx", value=index, remedy=CUT)
        values.append(source.time_ns(latency, 1, "latency", number))
    return np.array(values, dtype=np.int64)


def read_largest(source: SourceFile) -> Imported:
    """``latency,index``: the ten largest values alone judge nothing."""
    _largest(source)
    remedy = "import the histogram or the time series of the same run; this file is read beside it"
    raise source.error("has the largest values only", remedy=remedy)


def _largest(source: SourceFile) -> list[int]:
    return [source.time_ns(value, 1, "latency", number) for number, (value, _) in _rows(source, TOP)]


def _beside(source: SourceFile) -> SourceFile | None:
    name = re.sub("hist", "topn", source.path.name)
    path = source.path.with_name(name)
    return SourceFile(path) if name != source.path.name and path.is_file() else None


def _rows(source: SourceFile, header: str) -> list[tuple[int, tuple[str, str]]]:
    """Line numbers and the two columns of each row."""
    lines = source.whole_lines
    if not lines or lines[0].strip() != header:
        found = lines[0] if lines else ""
        raise source.error(f"is not the header {header}", line=1, field="header", value=found, remedy=CUT)
    rows = []
    for number, line in enumerate(lines[1:], 2):
        first, comma, second = line.partition(",")
        if not comma or "," in second:
            raise source.error("has not two columns", line=number, value=line, remedy=CUT)
        rows.append((number, (first, second)))
    if not rows:
        raise source.error("has no values", remedy=CUT)
    return rows


def _imported(series: ImportedSeries, doubts: list[Doubt]) -> Imported:
    return Imported(
        "ros2_timer_latency_measurement",
        "latency as the tool takes it",
        (series,),
        verified=False,
        doubts=tuple(doubts),
    )
