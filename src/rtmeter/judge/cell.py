"""The verdict of one cell as it lies on the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import rtmeter
from rtmeter import version
from rtmeter.judge.counted import judge_counted
from rtmeter.judge.verdict import judge, refuse
from rtmeter.model import Requirement, Verdict
from rtmeter.results import store
from rtmeter.results.cells import StoredCell
from rtmeter.results.record import CellRecord, JudgedBy


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
        return refuse(meta, requirement, f"the run failed: {record.error.message}")
    if not record.valid:
        return refuse(meta, requirement, "the result is invalid: see its warnings")
    if record.summary is None:
        return refuse(meta, requirement, "nothing was measured")
    counted = store.load_counted(folder)
    if counted is not None:
        return judge_counted(meta, counted, requirement, horizon_hours)
    return judge(meta, read(folder), requirement, horizon_hours=horizon_hours)


def judged(record: CellRecord, folder: Path, requirement: Requirement) -> CellRecord:
    """The record with the verdict of its data, and with what that was made of."""
    found = {"verdict": judge_cell(record, folder, requirement), "judged_by": judged_by(folder)}
    return record.changed(**found)


def judged_by(folder: Path) -> JudgedBy:
    """What a verdict that is made now on the cell in ``folder`` is made of."""
    return JudgedBy(statistics=statistics_in_use(), data={name: size for name, size, _ in _data(folder)})


@cache
def statistics_in_use() -> str:
    """A hash of the code that judges: of the same data another may come to another verdict."""
    front = Path(rtmeter.__file__).parent
    files = [*(front / "statistics").glob("*.py"), *(front / "judge").glob("*.py"), front / "samples/rows.py"]
    digest = hashlib.sha256(version().encode())
    for file in (*sorted(files), front / "model.py"):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _data(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Name, size and time (ns) of each of its files of data."""
    for name in store.DATA:
        with suppress(FileNotFoundError):
            about = (folder / name).stat()
            yield name, about.st_size, about.st_mtime_ns


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
        judged_at = (cell.folder / store.CELL).stat().st_mtime_ns
        data = list(_data(cell.folder))
    except OSError:
        return None
    same = by.data == {name: size for name, size, _ in data}
    return verdict if same and all(changed <= judged_at for _, _, changed in data) else None
