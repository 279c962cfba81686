"""Results of whole cells of each kind of data, and what may become of the file that has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rtmeter.results import counted, store
from rtmeter.statistics.counted_data import Histogram, Intervals
from stored import write_counted, write_run
from synthetic import usual, write_cell
from traced_cells import TRACED, write_traced

CAMPAIGN = """
name: c
cells:
  - {measurement: wakeup, adapter: posix, samples: 600, deadline: 1ms}
"""
DEADLINE_NS = 1_000_000
REQUIRED: dict[str, Any] = {"deadline_ns": DEADLINE_NS, "miss_ratio": None, "confidence": 0.95}
REQUIRED |= {"criticality": "firm", "horizon": 10.0}
COUNTED = {
    counted.HISTOGRAM: Histogram(
        np.arange(1000, 300_000, 1000), 1000, np.full(299, 50), over=3, over_from_ns=300_000
    ),
    counted.INTERVALS: Intervals(np.full(300, 50), np.zeros(300, np.int64), np.arange(1000, 301_000, 1000)),
}

Damage = Callable[[Path], None]


def write_whole(root: Path, file: str) -> Path:
    """A run of two cells, ``cell`` and ``plain``, that have data in a file of that name; returns its folder,
    which lies below ``root``."""
    run = root / store.machine_name() / "c" / "20261121T050000Z"
    write_run(run, {"cells": ["cell", "plain"], "started": "2026-11-21T05:00:00Z"}, CAMPAIGN)
    axes = {"cell": {"load": "none"}, "plain": {"load": "cpu"}}
    if file == store.SAMPLES:
        made = replace(TRACED, samples=600, warm_up=10, delays=usual(1, 50), deadline_ns=DEADLINE_NS)
        write_traced(run / "cell", "thief", replace(made, id="cell", axes=axes["cell"]))
        write_cell(run / "plain", replace(made, id="plain", axes=axes["plain"]))
    else:
        about: dict[str, Any] = {
            "config": {"period_ns": DEADLINE_NS},
            "requirement": REQUIRED | {"horizon": 10.0},
        }
        for name in ("cell", "plain"):
            write_counted(run / name, COUNTED[file], id=name, axes=axes[name], **about)
    return run


def deleted(file: Path) -> None:
    file.unlink()


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def a_bit(file: Path) -> None:
    """One in the middle is another."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x10
    file.write_bytes(content)


def altered(change: Callable[[pa.Table], pa.Table]) -> Damage:
    """Its table is another one."""
    return lambda file: pq.write_table(change(pq.read_table(file, partitioning=None)), file)


def column(name: str, change: Callable[[pa.ChunkedArray], Any]) -> Damage:
    """A column has other values, or is gone (None)."""

    def changed(table: pa.Table) -> pa.Table:
        place, values = table.schema.get_field_index(name), change(table.column(name))
        table = table.remove_column(place)
        return table if values is None else table.add_column(place, name, values)

    return altered(changed)


def damages(file: Path) -> dict[str, Damage]:
    """All that is done to a file that is whole, by name."""
    found = {"deleted": deleted, "a folder": a_folder, "0 bytes": emptied}
    found |= {
        "no rows": altered(lambda table: table.slice(0, 0)),
        "fewer rows": altered(lambda table: table.slice(0, len(table) - 1)),
        "no metadata": altered(lambda table: table.replace_schema_metadata(None)),
    }
    for name in pq.read_schema(file).names:
        found |= {
            f"{name} gone": column(name, lambda _: None),
            f"{name} as text": column(name, lambda values: pa.array(map(str, values.to_pylist()))),
            f"{name} as real": column(name, lambda values: pa.array(np.arange(len(values)) * 1.0)),
        }
    if file.name == store.SAMPLES:
        del found["no metadata"]  # cell.json says the same
        del found["status as text"]  # no damage: other tools write it so
        del found["free_ns gone"]  # needed where releases were skipped, and here none was
    else:
        found |= {
            f"{name} negative": column(name, lambda values: pa.array([-1, *values.to_pylist()[1:]]))
            for name in ("count", "received", "lost")
            if name in pq.read_schema(file).names
        }
    if file.name == counted.HISTOGRAM:
        found["in another order"] = altered(lambda table: table.take(list(range(len(table)))[::-1]))
    return found
