"""The verdict of one cell as it lies on the disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.judge.counted import judge_counted
from rtmeter.judge.verdict import judge, refuse
from rtmeter.model import Requirement, Verdict
from rtmeter.results import store
from rtmeter.results.cells import StoredCell
from rtmeter.results.data import counted_of
from rtmeter.results.record import CellRecord, JudgedBy
from rtmeter.values import version


def judge_cell(
    record: CellRecord,
    folder: Path,
    requirement: Requirement,
    read: store.ReadSamples = store.chunks,
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
        named = RtmeterError.from_json(record.error.model_dump() | {"remedy": None})
        return refuse(meta, requirement, f"the run failed: {named}")
    if not record.valid:
        return refuse(meta, requirement, "the result is invalid: see its warnings")
    if record.summary is None:
        return refuse(meta, requirement, "nothing was measured")
    counted = counted_of(folder, record)
    if counted is not None:
        return judge_counted(meta, counted, requirement, horizon_hours)
    return judge(meta, read(folder), requirement, horizon_hours=horizon_hours)


def judged(record: CellRecord, folder: Path, requirement: Requirement) -> CellRecord:
    """The record with the verdict of its data, and with what that was made of."""
    found = {"verdict": judge_cell(record, folder, requirement), "judged_by": judged_by(folder)}
    return record.changed(**found)


def judged_by(folder: Path) -> JudgedBy:
    """What a verdict that is made now on the cell in ``folder`` is made of."""
    return JudgedBy(statistics=statistics_in_use(), data=_sizes(_files(folder)))


@cache
def statistics_in_use() -> str:
    """A hash of the code that judges: of the same data another may come to another verdict."""
    front = Path(__file__).parents[1]
    files = [*(front / "statistics").glob("*.py"), *(front / "judge").glob("*.py"), front / "samples/rows.py"]
    digest = hashlib.sha256(version().encode())
    for file in (*sorted(files), front / "model.py"):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _files(folder: Path) -> dict[str, os.stat_result]:
    """Size and time of its record and of each of its files of data, by name."""
    with os.scandir(folder) as entries:
        known = [one for one in entries if one.name in (store.CELL, *store.DATA) and one.is_file()]
        return {one.name: one.stat() for one in known}


def _sizes(files: Mapping[str, os.stat_result]) -> dict[str, int]:
    return {name: files[name].st_size for name in store.DATA if name in files}


def stored_verdict(cell: StoredCell, asked: Requirement | None) -> Verdict | None:
    """The verdict that was stored with the cell, if the same would come of judging it anew: it was made by
    what is asked (None: by the cell's own requirement), by the statistics in use, of the data that are there.
    None as well where judging reads no data."""
    record = cell.record
    verdict, by, required = record.verdict, record.judged_by, asked or record.requirement
    if verdict is None or by is None or not record.usable:
        return None
    if verdict.requirement != required or by.statistics != statistics_in_use():
        return None
    try:
        files = _files(cell.folder)
        judged_at = files.pop(store.CELL).st_mtime_ns
    except (OSError, KeyError):
        return None
    same = by.data == _sizes(files) and all(file.st_mtime_ns <= judged_at for file in files.values())
    return verdict if same else None
