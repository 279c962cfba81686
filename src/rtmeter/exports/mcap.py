"""MCAP (mcap.dev): a channel a cell, its rows as ROS 2 messages, for Foxglove and PlotJuggler."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmeter.exports.distribution import name_of
from rtmeter.exports.mcap_file import McapFile
from rtmeter.exports.phases import begins, has_releases
from rtmeter.model import ABSENT, TWO_ENDS
from rtmeter.results import store
from rtmeter.results.record import CellRecord
from rtmeter.statistics.quantities import Columns, Ints, quantities, timeout_ns
from rtmeter.statistics.views import OUTCOME_BITS, missed, up_to_a_ping
from rtmeter.values import version

_LITTLE_ENDIAN_CDR = b"\x00\x01\x00\x00"


def write(path: Path, out: Path) -> list[str]:
    """Writes a channel ``/<cell>`` for every cell; the time of a message is that of its release by the wall
    clock, where the cell knows it, else the monotonic one's. Returns what was left out."""
    notes: list[str] = []
    with out.open("wb") as file:
        writer = McapFile(file, "ros2", f"rtmeter {version()}")
        for folder in store.cell_folders(path):
            record = store.read_cell(folder)
            name = name_of(folder, path, record)
            if has_releases(folder, record):
                _write_cell(writer, folder, record, name)
            else:
                notes.append(f"{name}: has no single releases with their times, and is left out")
        writer.finish()
    return notes


def _write_cell(writer: McapFile, folder: Path, record: CellRecord, name: str) -> None:
    meta = record.meta
    columns: list[str] | None = None
    channel = 0
    to_wall_ns = _to_wall_ns(record)
    chunks = store.chunks(folder)()
    for rows in up_to_a_ping(chunks) if meta["measurement"] in TWO_ENDS else chunks:
        if columns is None:
            columns = sorted(c for c in rows if c.endswith("_ns"))
            known = [q for q in quantities(meta) if set(q.columns) <= rows.keys()]
            schema = _schema(record, columns, [q.name for q in known])
            type_name = f"rtmeter_export/msg/{_camel(record)}"
            metadata = {"cell": record.id, "adapter": record.adapter}
            channel = writer.channel(f"/{name}", type_name, schema, metadata)
        of = {q.name: q.of(rows, timeout_ns(meta)) for q in known}
        late = np.isin(rows["k"], missed(meta, [rows], record.deadline_ns))
        begin = begins(meta, rows)
        times = np.where(begin == ABSENT, 0, np.maximum(begin + to_wall_ns, 0))
        writer.messages(channel, times, _messages(rows, columns, of, late))


def _messages(
    rows: Columns, columns: list[str], of: Mapping[str, Ints], late: npt.NDArray[np.bool_]
) -> npt.NDArray[Any]:
    """The bytes of a message a row, in the order of the schema."""
    layout = [("cdr", "S4"), *((name, "<i8") for name in ("k", *columns))]
    layout += [*((f"{name}_us", "<f8") for name in of), ("status", "u1"), ("missed", "u1")]
    found = np.zeros(len(rows["k"]), layout)
    found["cdr"] = _LITTLE_ENDIAN_CDR
    for name in ("k", *columns):
        found[name] = rows[name]
    for name, value in of.items():
        found[f"{name}_us"] = np.where(value == ABSENT, np.nan, value / 1000)
    found["status"] = rows["status"] & OUTCOME_BITS
    found["missed"] = late
    return found


def _schema(record: CellRecord, columns: list[str], known: list[str]) -> str:
    """The message definition; every field is aligned to its size in this order."""
    lines = [f"# A release ({record.measurement}); CLOCK_MONOTONIC, INT64_MIN where there is none."]
    lines += ["int64 k", *(f"int64 {name}" for name in columns)]
    lines += ["# Quantities in microseconds, NaN where there is none."]
    lines += [f"float64 {name}_us" for name in known]
    lines += ["uint8 IN_FLIGHT=0", "uint8 SERVED=1", "uint8 SKIPPED=2", "uint8 LOST=3", "uint8 status"]
    lines += ["# As verdicts count it, false in the warm-up.", "bool missed"]
    return "\n".join(lines) + "\n"


def _camel(record: CellRecord) -> str:
    words = [record.measurement, *(record.mode or "").split("_")]
    return "".join(word.capitalize() for word in words if word)


def _to_wall_ns(record: CellRecord) -> int:
    """What is added to a monotonic time; 0 where the cell does not know it."""
    anchors = record.clock.get("anchors") or {}
    if not {"realtime_ns", "monotonic_ns"} <= anchors.keys():
        return 0
    return int(anchors["realtime_ns"]) - int(anchors["monotonic_ns"])
