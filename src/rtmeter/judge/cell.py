"""The verdict of one cell as it lies on the disk."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rtmeter import version
from rtmeter.judge.counted import judge_counted
from rtmeter.judge.verdict import judge, refuse
from rtmeter.model import Requirement, Verdict
from rtmeter.results import store
from rtmeter.results.cells import StoredCell
from rtmeter.results.record import CellRecord


def judge_cell(
    record: CellRecord,
    folder: Path,
    requirement: Requirement,
    read: store.Read = store.chunks,
    horizon_hours: float | None = None,
) -> Verdict:
    """The verdict of a cell in ``folder`` by its samples; an error if they must not be judged.

    ``horizon_hours`` as in ``judge``.
    """
    meta = record.meta
    if record.status == "skipped" and record.error:
        reason = f"not measured: the adapter {record.error.value} {record.error.message}"
        return replace(refuse(meta, requirement, reason), outcome="inconclusive")
    if record.error:
        return refuse(meta, requirement, f"the run failed: {record.error.message}")
    if not record.valid:
        return refuse(meta, requirement, "the result is invalid: see its warnings")
    if record.summary is None:
        return refuse(meta, requirement, "nothing was measured")
    counted = store.load_counted(folder)
    if counted is not None:
        return judge_counted(meta, counted, requirement, horizon_hours)
    return judge(meta, read(folder), requirement, horizon_hours=horizon_hours)


def stored_verdict(cell: StoredCell, asked: Requirement | None) -> Verdict | None:
    """The verdict that was stored with the cell, if the same would come of judging it anew: this rtmeter
    judged it by what is asked (None: by its own requirement), and its data are no newer."""
    record = cell.record
    if record.verdict is None or record.rtmeter != version() or asked not in (None, record.requirement):
        return None
    try:
        judged_at = (cell.folder / store.CELL).stat().st_mtime_ns
    except OSError:
        return None
    for data in store.DATA:
        with suppress(FileNotFoundError):
            if (cell.folder / data).stat().st_mtime_ns > judged_at:
                return None
    return record.verdict
