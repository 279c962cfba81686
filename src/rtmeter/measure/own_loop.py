"""Cells made of what programs recorded of their own loops with librtmeter (docs/your-own-loop.md)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from datetime import UTC, datetime
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.host.identity import machine_id
from rtmeter.host.root import Root
from rtmeter.measure.source import Ran
from rtmeter.measure.source.record import Logs, record_cell
from rtmeter.model import Cell, Doubt, Outcome, Requirement
from rtmeter.results import store
from rtmeter.results.loops import loop_folders
from rtmeter.results.record import CellRecord
from rtmeter.samples import write_parquet
from rtmeter.samples.meta import LogMeta
from rtmeter.samples.segments import LATE, WHOLE, SegmentedLog, lengths, segments
from rtmeter.values import from_json

BINS = "bins.json"

LOCK = "lock"
"""The file beside the starts of a name that a program holds a lock on while its loop is open; in it is the
name of that start's folder."""

_PATIENCE_S = 300
"""So long another process is waited for that makes the same cell."""

_LONGEST_NAME = 256
"""More bytes than a folder's name has."""

_FLOCK = "hhqqi4x"
"""struct flock (fcntl(2)): type, whence, start, length, process."""


def adopt(path: Path) -> list[RtmeterError]:
    """Makes the cells of all own loops below the path that have none yet, or have recorded more since.
    Returns why some starts, of many, were passed over: as those that were killed before their first release.

    Raises RtmeterError if a cell cannot be written, or nothing of one can be read that the path names.
    """
    folders, passed = loop_folders(path), []
    for folder in folders:
        if not segments(folder) or _is_current(folder):
            continue
        try:
            _make_of_what_stays(folder)
        except RtmeterError as error:
            if len(folders) == 1 or not str(error.where or "").startswith(str(folder)):
                raise
            passed.append(error)
    return passed


def is_open(folder: Path) -> bool:
    """Whether a program records into the folder now: the lock is held, and for it."""
    with contextlib.suppress(OSError), (folder.parent / LOCK).open("rb+") as file:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        held = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked))
        return int(held[0]) != fcntl.F_UNLCK and file.read(_LONGEST_NAME) == os.fsencode(folder.name)
    return False


def _is_current(folder: Path) -> bool:
    cell = folder.with_suffix("")
    if not store.is_cell(cell):
        return False
    with contextlib.suppress(RtmeterError):
        record = store.read_cell(cell)
        ended = any(doubt.type == store.STILL_RUNNING for doubt in record.warnings) and not is_open(folder)
        return record.instrument.get("recorded") == _recorded(folder) and not ended
    return False


def _recorded(folder: Path) -> dict[str, int]:
    """The logs that there are, and how long each is."""
    return {log.name: length for part in (WHOLE, LATE) for log, length in lengths(folder, part).items()}


def _make_of_what_stays(folder: Path) -> None:
    """Once more where its program let its oldest log go while it was read."""
    try:
        _make(folder)
    except RtmeterError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        _make(folder)


def _make(folder: Path) -> None:
    with store.NewCell(folder.with_suffix(""), _PATIENCE_S) as new:
        if _is_current(folder):
            return  # who was waited for has made it
        recorded, running = _recorded(folder), is_open(folder)
        record = _record(folder, new.folder, running)
        instrument = record.instrument | {"recorded": recorded}
        new.finish(record.changed(instrument=instrument))


def _record(folder: Path, out: Path, running: bool) -> CellRecord:
    log = SegmentedLog(folder)
    if log.first_row == log.end_row:
        remedy = "look again later" if running else "its program ended before the first: remove the folder"
        raise RtmeterError("holds no release", where=str(folder), remedy=remedy)
    meta = LogMeta.of(log.meta, folder)
    config = meta.cell_config | {"measurement": "own_loop", "mode": None, "first_k": log.first_row}
    if log.first_row and (about := _bins(folder)):
        config |= {"released_since_start": about["released"], "missed_since_start": about["missed"]}
    deadline, ratio = config.get("deadline_ns"), config.get("miss_ratio")
    cell = Cell(
        id=_id(folder, str(config.get("loop") or folder.parent.name)),
        adapter=str(meta.adapter.get("name", "own")),
        server_adapter=None,
        axes={} if (repeat := _repeat(folder)) == 1 else {"repeat": repeat},
        config=config,
        requirement=Requirement(int(deadline), ratio) if isinstance(deadline, int) else None,
    )
    started = datetime.fromtimestamp(log.header["clock"]["anchors"]["realtime_ns"] / 1e9, UTC)
    ended = datetime.fromtimestamp(segments(folder)[-1].stat().st_mtime, UTC)
    outcome = Outcome("complete" if log.ended else "interrupted", None, tuple(_doubts(folder, log, running)))
    logs = Logs(folder, folder / store.SERVER_LOG)
    record = record_cell(cell, outcome, logs, out, Ran(started, ended, machine_id=machine_id(Root())))
    if segments(folder, LATE):
        with contextlib.suppress(RtmeterError):  # only just begun
            write_parquet(folder, out / store.LATE_RELEASES, part=LATE)
    return record


def _repeat(folder: Path) -> int:
    """Which of the program's starts it is."""
    return sorted(one.name for one in folder.parent.glob(f"*{store.LOOP}")).index(folder.name) + 1


def _id(folder: Path, name: str) -> str:
    repeat = _repeat(folder)
    return name if repeat == 1 else f"{name}-r{repeat}"


def _doubts(folder: Path, log: SegmentedLog, running: bool) -> list[Doubt]:
    doubts = []
    if running:
        message = "the program goes on: this is what it had recorded"
        doubts.append(Doubt(store.STILL_RUNNING, message, "look again later"))
    elif not log.ended:
        message = "the program ended without closing its loop: its last second may not be there"
        doubts.append(Doubt("loop_cut", message, "close the loop, or let the program end by exit()"))
    if log.first_row:
        message = f"the cell has the last releases, from k = {log.first_row:,} on"
        if about := _bins(folder):
            message += f": of {about['released']:,} since its start {about['missed']:,} missed the deadline"
        hint = f"{BINS} has the distribution of all, {store.LATE_RELEASES} each late release with its "
        hint += "surroundings"
        doubts.append(Doubt("last_hours_only", message, hint))
    return doubts


def _bins(folder: Path) -> dict[str, int]:
    """How many releases there were since its start until the last log of whole ones began, warm-up apart, and
    how many of them missed; empty if nothing says it."""
    try:
        found = from_json((folder / BINS).read_text(encoding="utf-8"))
        released = sum(int(found[end]) for end in ("served", "skipped", "lost"))
        return {"released": released, "missed": int(found["missed"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
