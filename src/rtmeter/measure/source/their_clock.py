"""The samples of a target's machine, taken from here, brought to the clock that its releases have."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from rtmeter.host import checked
from rtmeter.host.files import whole_file
from rtmeter.results.record import CellRecord


def by_the_clock_of(record: CellRecord, monitor: Path, shift_ns: int) -> None:
    """Rewrites ``at_ns`` of the file. ``shift_ns``: from CLOCK_MONOTONIC here to CLOCK_BOOTTIME there, which
    the anchors of the cell's log lead on from; without them it stays as it is, and so does one that is not
    whole, which the cell's doubts tell."""
    anchors = record.clock.get("anchors") or {}
    if not monitor.exists() or not {"boottime_ns", "monotonic_ns"} <= anchors.keys():
        return
    shift_ns += anchors["monotonic_ns"] - anchors["boottime_ns"]
    try:
        rows = checked.read(monitor)
    except checked.DAMAGED:
        return
    at = pa.array(checked.numbers(rows.column("at_ns")) + shift_ns)
    place = rows.column_names.index("at_ns")
    with whole_file(monitor, "--out") as file:
        checked.write(rows.set_column(place, rows.schema.field(place), at), file)
