"""Histograms and intervals on disk (spec/results.md): what an imported cell has in the place of samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rtmeter.errors import RtmeterError
from rtmeter.host import checked
from rtmeter.model import ABSENT
from rtmeter.samples.arrow import check_columns
from rtmeter.statistics.counted_data import MOST_COUNTED, CountedData, Histogram, Intervals
from rtmeter.statistics.quantities import Ints
from rtmeter.values import from_json

HISTOGRAM, INTERVALS = "histogram.parquet", "intervals.parquet"
_VERSION = 1
_NULLABLE = ("upper_ns", "max_ns")


def write(folder: Path, data: CountedData) -> None:
    """Writes the data into a cell's folder."""
    if isinstance(data, Histogram):
        rows: dict[str, tuple[Ints, int | None]] = {
            "lower_ns": (data.lower_ns, data.over_from_ns),
            "upper_ns": (data.lower_ns + data.width_ns, data.below_ns),
            "count": (data.counts, data.over),
        }
        columns = {
            name: pa.array([*bins.tolist(), *([beyond] if data.over else [])], pa.int64())
            for name, (bins, beyond) in rows.items()
        }
        names = ("width_ns", "over", "over_from_ns", "below_ns", "dropped", "skips_after_ns")
        about = {name: getattr(data, name) for name in names}
        _write(folder / HISTOGRAM, columns, "rtmeter-histogram", about)
    else:
        maxima = pa.array(data.maxima_ns, mask=data.received == 0)
        counts = {"received": pa.array(data.received), "lost": pa.array(data.lost)}
        _write(folder / INTERVALS, counts | {"max_ns": maxima}, "rtmeter-intervals", {})


def read(file: Path) -> CountedData:
    """The data of a cell, in a file of either name. Raises RtmeterError if they are damaged."""
    try:
        return _histogram(file) if file.name == HISTOGRAM else _intervals(file)
    except (*checked.DAMAGED, KeyError, TypeError) as error:
        lacking = f"its metadata have no {error}" if isinstance(error, KeyError) else str(error)
        message = f"cannot be read: {lacking.splitlines()[0]}"
        raise RtmeterError(message, where=str(file), remedy="import the tool's file again") from error


def _histogram(file: Path) -> Histogram:
    columns, about = _read(file, "rtmeter-histogram", ("lower_ns", "upper_ns", "count"))
    facts = {name: _fact(about, name) for name in ("width_ns", "over", "over_from_ns")}
    facts |= {name: _fact(about, name, optional=True) for name in ("below_ns", "skips_after_ns")}
    lower_ns, counts = columns["lower_ns"], columns["count"]
    over, bins = facts["over"], slice(None, -1 if facts["over"] else None)
    if not (np.diff(lower_ns[bins]) > 0).all():
        raise ValueError("lower_ns does not go up from row to row")
    if facts["width_ns"] <= 0 or (over and (not len(counts) or counts[-1] != over)):
        raise ValueError("its metadata contradict its rows")
    if type(about["dropped"]) is not bool:
        raise ValueError("its metadata have a value of another type: dropped")
    return Histogram(lower_ns=lower_ns[bins], counts=counts[bins], dropped=about["dropped"], **facts)


def _intervals(file: Path) -> Intervals:
    columns, _ = _read(file, "rtmeter-intervals", ("received", "lost", "max_ns"))
    received, nothing = columns["received"], columns["max_ns"] == ABSENT
    if (nothing & (received > 0)).any():
        raise ValueError("max_ns has rows without a value where messages were received")
    return Intervals(received, columns["lost"], np.where(nothing, 0, columns["max_ns"]))


def _fact(about: dict[str, Any], name: str, *, optional: bool = False) -> Any:
    value = about[name]
    if type(value) is not int and not (optional and value is None):
        raise ValueError(f"its metadata have a value of another type: {name}")
    return value


def _write(path: Path, columns: dict[str, pa.Array], form: str, about: dict[str, Any]) -> None:
    meta = {"format": form, "version": _VERSION} | about
    table = pa.table(columns).replace_schema_metadata({"rtmeter": json.dumps(meta)})
    checked.write(table, path)


def _whole(name: str, column: pa.ChunkedArray) -> Ints:
    """What a column can be: of counts none below zero and no more than MOST_COUNTED in all; only where a
    value may not be known there is none, which is ABSENT. Raises ValueError."""
    if column.null_count and name not in _NULLABLE:
        raise ValueError(f"{name} has rows without a value")
    values: Ints = checked.numbers(column.fill_null(ABSENT))
    if not name.endswith("_ns") and (values.min(initial=0) < 0 or sum(values.tolist()) > MOST_COUNTED):
        raise ValueError(f"{name} is no count in each row")
    return values


def _read(path: Path, form: str, names: tuple[str, ...]) -> tuple[dict[str, Ints], dict[str, Any]]:
    """Its columns and its metadata."""
    table = checked.opened(path).read()
    meta = from_json((table.schema.metadata or {}).get(b"rtmeter", b"{}"))
    if (meta["format"], meta["version"]) != (form, _VERSION):
        raise ValueError(f"is {meta['format']} of version {meta['version']}")
    check_columns(table.schema, dict.fromkeys(names, pa.int64()))
    return {name: _whole(name, table.column(name)) for name in names}, meta
