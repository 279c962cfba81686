"""Why a measured cell's releases were late, from the kernel's events that were recorded with it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rtmeter.errors import RtmeterError
from rtmeter.explain.causes import Explanation, Release, explain
from rtmeter.model import ABSENT, SERVED, WARM_UP_FLAG
from rtmeter.results import store
from rtmeter.results.cells import StoredCell
from rtmeter.results.record import CellRecord
from rtmeter.statistics.quantities import judged_quantity, timeout_ns
from rtmeter.trace.table import FILE, read_trace

MOST_IN_TIME = 2000
"""Releases in time that late ones are compared with, chosen at random, always the same ones."""

_REMEDY = "measure it with --explain, as root"


@dataclass(frozen=True)
class CellExplanation:
    """``late_after_ns``: what counts as late: the cell's deadline, or where it has none its p99
    (``by_deadline``); ``unserved``: releases that were skipped, lost or in flight, which have no stamp;
    ``in_time``: how many were, of which ``found`` has MOST_IN_TIME at most."""

    cell: StoredCell
    found: Explanation
    late_after_ns: int
    by_deadline: bool
    unserved: int
    in_time: int


def explained(cell: StoredCell, k: int | None = None) -> CellExplanation:
    """Explains the late releases of a cell, and the release ``k``.

    Raises RtmeterError if it has no trace, or no samples.
    """
    if not (cell.folder / FILE).is_file():
        message = "has no record of the kernel's events"
        raise RtmeterError(message, field="PATH", value=str(cell.folder), remedy=_REMEDY)
    tid = _stamping(cell.record, cell.folder)
    rows = list(_rows(cell))
    served = [row for row in rows if row[2] is not None]
    if not served:
        message, remedy = "has no release that was served", "measure it again"
        raise RtmeterError(message, field="PATH", value=str(cell.folder), remedy=remedy)
    required = cell.record.requirement
    lateness = sorted(stamp - release for _, release, stamp in served if stamp is not None)
    limit_ns = required.deadline_ns if required else lateness[-(-99 * len(lateness) // 100) - 1]
    releases = [
        Release(k, release, stamp, stamp - release > limit_ns)
        for k, release, stamp in served
        if stamp is not None
    ]
    in_time = [release for release in releases if not release.late]
    compared = set(random.Random(0).sample(in_time, min(len(in_time), MOST_IN_TIME)))
    asked = [release for release in releases if release.late or release in compared or release.k == k]
    found = explain(read_trace(cell.folder / FILE), asked, tid, paths=True)
    unserved = len(rows) - len(served)
    return CellExplanation(cell, found, limit_ns, required is not None, unserved, len(in_time))


def _rows(cell: StoredCell) -> Iterator[tuple[int, int, int | None]]:
    """k, release and stamp (None: not served) of each measured release."""
    meta = cell.record.meta
    quantity = judged_quantity(meta)
    for columns in store.chunks(cell.folder)():
        late_ns = quantity.of(columns, timeout_ns(meta))
        stamps, statuses = columns[quantity.plus[0]], columns["status"]
        is_served = (statuses == SERVED) & (late_ns != ABSENT)
        releases = np.where(is_served, stamps - late_ns, 0)
        measured = statuses & WARM_UP_FLAG == 0
        for row in np.flatnonzero(measured).tolist():
            stamp = int(stamps[row]) if is_served[row] else None
            yield int(columns["k"][row]), int(releases[row]), stamp


def _stamping(record: CellRecord, folder: Path) -> int:
    """The thread that stamps: the one that is known to, else the measured one."""
    threads = record.threads.client
    stamping = [thread for thread in threads if thread.get("stamps")]
    found = stamping or [thread for thread in threads if thread.get("role") == "measured"]
    if len(found) != 1:
        message = f"has {len(found)} threads that stamp, so that no one can be followed"
        raise RtmeterError(message, field="PATH", value=str(folder), remedy="measure with one thread")
    return found[0]["tid"]
