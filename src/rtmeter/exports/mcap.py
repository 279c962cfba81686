"""MCAP (mcap.dev): a channel a cell, its rows as ROS 2 messages, for Foxglove and PlotJuggler."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mcap.writer import CompressionType, Writer

from rtmeter import version
from rtmeter.exports.distribution import name_of
from rtmeter.exports.phases import begins, has_releases, misses
from rtmeter.model import ABSENT
from rtmeter.results import store
from rtmeter.statistics.quantities import Columns, quantities, timeout_ns
from rtmeter.statistics.views import OUTCOME_BITS

_LITTLE_ENDIAN_CDR = b"\x00\x01\x00\x00"


def write(path: Path, out: Path) -> list[str]:
    """Writes a channel ``/<cell>`` for every cell; the time of a message is that of its release by the wall
    clock, where the cell knows it, else the monotonic one's. Returns what was left out."""
    notes: list[str] = []
    with out.open("wb") as file:
        writer = Writer(file, compression=CompressionType.ZSTD)
        writer.start(profile="ros2", library=f"rtmeter {version()}")
        for folder in store.find_cells(path):
            record = store.load_cell(folder)
            name = name_of(folder, path, record)
            if has_releases(folder, record):
                _write_cell(writer, folder, record, name)
            else:
                notes.append(f"{name}: has no single releases with their times, and is left out")
        writer.finish()  # type: ignore[no-untyped-call]
    return notes


def _write_cell(writer: Writer, folder: Path, record: Mapping[str, Any], name: str) -> None:
    meta = store.statistics_meta(record)
    chunks = store.chunks(folder)
    columns: list[str] | None = None
    channel = sequence = 0
    to_wall_ns = _to_wall_ns(record)
    for rows in chunks():
        if columns is None:
            columns = sorted(c for c in rows if c.endswith("_ns"))
            known = [q for q in quantities(meta) if set(q.columns) <= rows.keys()]
            schema = _schema(record, columns, [q.name for q in known])
            type_name = f"rtmeter_export/msg/{_camel(record)}"
            about = writer.register_schema(type_name, "ros2msg", schema.encode())
            metadata = {"cell": str(record["id"]), "adapter": str(record["adapter"])}
            channel = writer.register_channel(f"/{name}", "cdr", about, metadata)
            layout = struct.Struct(f"<4s{len(columns) + 1}q{len(known)}d2B")
        late = misses(rows, known[0].of(rows, timeout_ns(meta)), record["config"].get("deadline_ns"))
        table = _table(rows, columns, [q.of(rows, timeout_ns(meta)) for q in known], late)
        begin = begins(meta, rows)
        for at, values in zip(begin.tolist(), table, strict=True):
            when = max(at + to_wall_ns, 0) if at != ABSENT else 0
            data = layout.pack(_LITTLE_ENDIAN_CDR, *values)
            writer.add_message(channel, when, data, when, sequence)
            sequence += 1


def _table(rows: Columns, columns: list[str], of: list[Any], late: Mapping[str, Any]) -> Any:
    """A tuple a row, in the order of the schema."""
    missed = np.zeros(len(rows["k"]), dtype=np.int64)
    for which in late.values():
        missed[which] = 1
    micros = [np.where(value == ABSENT, np.nan, value / 1000).tolist() for value in of]
    integers = [rows[name].tolist() for name in ("k", *columns)]
    return zip(*integers, *micros, (rows["status"] & OUTCOME_BITS).tolist(), missed.tolist(), strict=True)


def _schema(record: Mapping[str, Any], columns: list[str], known: list[str]) -> str:
    """The message definition; every field is aligned to its size in this order."""
    lines = [f"# A release ({record['measurement']}); CLOCK_MONOTONIC, INT64_MIN where there is none."]
    lines += ["int64 k", *(f"int64 {name}" for name in columns)]
    lines += ["# Quantities in microseconds, NaN where there is none."]
    lines += [f"float64 {name}_us" for name in known]
    lines += ["uint8 IN_FLIGHT=0", "uint8 SERVED=1", "uint8 SKIPPED=2", "uint8 LOST=3", "uint8 status"]
    lines += ["# Lost, skipped, or served after the deadline; false in the warm-up.", "bool missed"]
    return "\n".join(lines) + "\n"


def _camel(record: Mapping[str, Any]) -> str:
    words = [str(record["measurement"]), *str(record["mode"] or "").split("_")]
    return "".join(word.capitalize() for word in words if word)


def _to_wall_ns(record: Mapping[str, Any]) -> int:
    """What is added to a monotonic time; 0 where the cell does not know it."""
    anchors = (record.get("clock") or {}).get("anchors") or {}
    if not {"realtime_ns", "monotonic_ns"} <= anchors.keys():
        return 0
    return int(anchors["realtime_ns"]) - int(anchors["monotonic_ns"])
