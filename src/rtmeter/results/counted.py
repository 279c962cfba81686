"""Histograms and intervals on disk (spec/results.md): what an imported cell has in the place of samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rtmeter.errors import RtmeterError
from rtmeter.statistics.counted_data import CountedData, Histogram, Intervals
from rtmeter.statistics.quantities import Ints

HISTOGRAM, INTERVALS = "histogram.parquet", "intervals.parquet"
_VERSION = 1
_MOST = 2**48
"""Releases of a cell, as of one that is measured here."""


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
    if file.name == HISTOGRAM:
        columns, about = _read(file, "rtmeter-histogram", ("lower_ns", "count"))
        bins = slice(None, -1 if about["over"] else None)
        return Histogram(
            lower_ns=columns["lower_ns"][bins],
            width_ns=about["width_ns"],
            counts=columns["count"][bins],
            over=about["over"],
            over_from_ns=about["over_from_ns"],
            below_ns=about["below_ns"],
            dropped=about["dropped"],
            skips_after_ns=about["skips_after_ns"],
        )
    columns, _ = _read(file, "rtmeter-intervals", ("received", "lost", "max_ns"))
    return Intervals(columns["received"], columns["lost"], columns["max_ns"])


def _write(path: Path, columns: dict[str, pa.Array], form: str, about: dict[str, Any]) -> None:
    meta = {"format": form, "version": _VERSION} | about
    table = pa.table(columns).replace_schema_metadata({"rtmeter": json.dumps(meta)})
    pq.write_table(table, path, compression="zstd")


def _whole(name: str, column: pa.ChunkedArray) -> Ints:
    """What a column can be: whole numbers, and of counts none below zero and no more than _MOST in all; only
    max_ns may lack some, where nothing was received, and is 0 there. Raises ValueError."""
    if column.type != pa.int64():
        raise ValueError(f"{name} is of type {column.type}, not int64")
    if column.null_count and name != "max_ns":
        raise ValueError(f"{name} has rows without a value")
    values: Ints = column.fill_null(0).to_numpy()
    if name not in ("lower_ns", "max_ns") and (values.min(initial=0) < 0 or sum(values.tolist()) > _MOST):
        raise ValueError(f"{name} is no count in each row")
    return values


def _read(path: Path, form: str, names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        table = pq.read_table(path)
        meta = json.loads(table.schema.metadata[b"rtmeter"])
        if (meta["format"], meta["version"]) != (form, _VERSION):
            raise ValueError(f"is {meta['format']} of version {meta['version']}")
        columns = {name: _whole(name, table.column(name)) for name in names}
        bins = columns.get("lower_ns", np.zeros(0, np.int64))[: -1 if meta.get("over") else None]
        if not (np.diff(bins) > 0).all():
            raise ValueError("lower_ns does not go up from row to row")
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        message = f"cannot be read: {str(error).splitlines()[0]}"
        raise RtmeterError(message, where=str(path), remedy="import the tool's file again") from error
    return columns, meta
