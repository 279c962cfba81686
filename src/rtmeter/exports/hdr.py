"""HdrHistogram logs (version 1.3 of the format; github.com/HdrHistogram): one histogram a cell, in ns."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from rtmeter.exports.distribution import Distribution, distributions, notes_of
from rtmeter.statistics.quantities import Ints
from rtmeter.values import version

DIGITS = 3
_SUB_BUCKET_BITS = 11  # of a histogram of three significant digits: 2,048 values in the first bucket
_LARGEST_UNIT_NS = 1_000_000  # that of Interval_Max: milliseconds, as HdrHistogram's own tools have it


def write(path: Path, out: Path) -> list[str]:
    """Writes a line a cell, tagged by its folder if there are several: to DIGITS significant digits."""
    found = distributions(path, rounded)
    notes = notes_of(found)
    lines = ["#[Histogram log format version 1.3]", f"#[Exported by rtmeter {version()}: nanoseconds]"]
    lines += [f"#[{one.cell}: {one.quantity}, per release, n = {one.n}]" for one in found]
    lines += [f"#[{note}]" for note in notes]
    starts = [_epoch_s(one) for one in found]
    known = [start for start in starts if start is not None]
    first = min(known, default=0.0)
    if known:
        lines.append(f"#[StartTime: {first:.3f} (seconds since epoch), {datetime.fromtimestamp(first, UTC)}]")
    lines.append('"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"')
    for one, start in zip(found, starts, strict=True):
        tag = f"Tag={one.cell.replace(',', '-').replace(' ', '-')}," if len(found) > 1 else ""
        largest = f"{one.max_ns / _LARGEST_UNIT_NS:.3f}"
        lines.append(f"{tag}{start or first:.3f},{_length_s(one):.3f},{largest},{_encoded(one)}")
    out.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return notes


def rounded(values: Ints) -> Ints:
    """The smallest value of each value's bucket: all of a bucket share their first eleven bits."""
    bits = np.frexp(values.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(bits - _SUB_BUCKET_BITS, 0)
    smallest: Ints = values >> shift << shift
    return smallest


def _encoded(one: Distribution) -> str:
    from hdrh.histogram import HdrHistogram

    histogram = HdrHistogram(1, max(one.max_ns, 2), DIGITS)
    for value, count in zip(one.values.tolist(), one.counts.tolist(), strict=True):
        histogram.record_value(value, count)
    return str(histogram.encode().decode("ascii"))


def _epoch_s(one: Distribution) -> float | None:
    started = one.record.started
    return datetime.fromisoformat(started).timestamp() if started else None


def _length_s(one: Distribution) -> float:
    """How long the cell was measured; 0 if its period is not known."""
    config, summary = one.record.config, one.record.summary
    released = summary.counts.get("released", one.n) if summary else one.n
    return released * (config.get("period_ns") or 0) / 1e9
