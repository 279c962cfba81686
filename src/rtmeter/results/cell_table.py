"""Cells as one flat table: a row a cell, quantity and view."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtmeter.errors import RtmeterError
from rtmeter.results.cells import StoredCell
from rtmeter.results.data import data_of
from rtmeter.results.record import CellRecord, Statistics
from rtmeter.values import Scheduling

if TYPE_CHECKING:
    import pyarrow as pa

_EXACT = ("min_ns", "p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "p99_99_ns", "p99_999_ns", "max_ns")
_MEANS = ("mean_ns", "stddev_ns")
_TEXT = (
    *("cell", "id", "path", "status", "measurement", "mode", "adapter", "server_adapter"),
    *("host", "machine_id", "kernel", "scheduling", "started", "outcome", "quantity", "view"),
)
_COUNTS = ("period_ns", "deadline_ns", "misses", "n", *_EXACT, "max_at_k")


def names_of(cells: Sequence[StoredCell]) -> dict[str, StoredCell]:
    """The cells by the names that tables have for them: the folder below what all of them share; of one cell
    its id. In the order given, a cell that is there twice once."""
    folders = {cell.folder.resolve(): cell for cell in cells}
    if len(folders) == 1:
        return {cell.record.id: cell for cell in folders.values()}
    below = Path(os.path.commonpath(folders))
    return {str(folder.relative_to(below)): cell for folder, cell in folders.items()}


def cell_table(cells: Mapping[str, StoredCell]) -> pa.Table:
    """The table of cells by name.

    Columns: ``cell`` (the name), ``id``, ``path``, ``status``, ``valid``, ``measurement``, ``mode``,
    ``adapter``, ``server_adapter``, ``host``, ``machine_id``, ``kernel``, ``scheduling``, ``started``,
    ``period_ns``, ``deadline_ns``, ``outcome`` and ``misses`` of the stored verdict, ``quantity``, ``view``
    (``per_release``, ``as_served`` or ``corrected``), ``n``, the statistics in nanoseconds (int64; mean and
    standard deviation float64), ``max_at_k``, and ``lost``, the names of statistics that fall on a lost
    release and are therefore null. A text column ``axis_<name>`` for each axis of the campaigns. A cell
    without a summary has one row with nulls.
    """
    import pyarrow as pa

    axes = sorted({axis for cell in cells.values() for axis in cell.record.axes})
    types = dict.fromkeys(_TEXT, pa.string()) | dict.fromkeys(_COUNTS, pa.int64())
    types |= dict.fromkeys(_MEANS, pa.float64()) | {"valid": pa.bool_(), "lost": pa.list_(pa.string())}
    types |= {f"axis_{axis}": pa.string() for axis in axes}
    order = [*_TEXT[:4], "valid", *_TEXT[4:13], "period_ns", "deadline_ns", "outcome", "misses"]
    order += [
        "quantity",
        "view",
        "n",
        *_EXACT,
        *_MEANS,
        "max_at_k",
        "lost",
        *(f"axis_{axis}" for axis in axes),
    ]
    rows = [row for name, cell in cells.items() for row in _rows(name, cell)]
    return pa.Table.from_pylist(rows, pa.schema([(name, types[name]) for name in order]))


def _rows(name: str, cell: StoredCell) -> Iterator[dict[str, Any]]:
    record = cell.record
    about = {"cell": name, "path": str(cell.folder), **_conditions(record)}
    about |= {f"axis_{axis}": None if value is None else str(value) for axis, value in record.axes.items()}
    quantities = record.summary.quantities.items() if record.summary else ()
    rows = 0
    for quantity, views in quantities:
        for view, statistics in views.items():
            if statistics is not None:
                rows += 1
                yield about | {"quantity": quantity, "view": view} | _numbers(statistics)
    if not rows:
        yield about


def _conditions(record: CellRecord) -> dict[str, Any]:
    keys = ("id", "status", "valid", "measurement", "mode", "adapter", "server_adapter", "started")
    machine, verdict = dict(record.machine), record.verdict
    scheduling = record.effective.get("scheduling")
    return {key: getattr(record, key) for key in keys} | {
        "host": machine.get("hostname"),
        "machine_id": machine.get("machine_id"),
        "kernel": machine.get("kernel"),
        "scheduling": str(Scheduling.from_probe(scheduling)) if scheduling else None,
        "period_ns": record.period_ns,
        "deadline_ns": record.deadline_ns,
        "outcome": verdict.outcome if verdict else None,
        "misses": verdict.misses if verdict else None,
    }


def _numbers(statistics: Statistics) -> dict[str, Any]:
    found = {name: getattr(statistics, name) for name in ("n", *_EXACT, *_MEANS, "max_at_k")}
    lost = [name for name, value in found.items() if value == "lost"]
    return found | dict.fromkeys(lost) | {"lost": lost}


def samples_table(cell: StoredCell) -> pa.Table:
    """What the cell measured, as it is stored: a row a release; of data without order one a bin or interval.

    Raises RtmeterError if there is nothing, or it cannot be read.
    """
    from rtmeter.host import checked

    file = data_of(cell.folder, cell.record)
    if file is None:
        raise RtmeterError("holds no samples", field="cell", value=str(cell.folder), remedy="measure again")
    try:
        return checked.read(file)
    except checked.DAMAGED as error:
        message = f"cannot be read: {str(error).splitlines()[0]}"
        raise RtmeterError(message, where=str(file), remedy="measure or import the cell again") from None
