"""What stands above a picture: of what it is, and what its numbers must not be shown without."""

from __future__ import annotations

from collections.abc import Sequence

from rtmeter.judge.answer import unfit
from rtmeter.judge.conditions import in_one_line
from rtmeter.results.record import CellRecord


def heading(files: Sequence[CellRecord], quantity: str) -> str:
    """The quantity, and of which cell, if it is one."""
    name = f"{quantity[:1].upper()}{quantity[1:]}"
    return f"{name}: {files[0].id}" if len(files) == 1 else name


def notes(files: Sequence[CellRecord]) -> list[str]:
    """The conditions that all cells share, the number of releases, and why the figures may be unfit."""
    lines = [in_one_line(record) for record in files]
    common = [part for part in lines[0] if all(part in line for line in lines)]
    released = [_released(record) for record in files]
    known = [n for n in released if n is not None]
    several = len(set(known)) > 1
    counts = [f"n = {min(known):,} to {max(known):,}"] if several else []
    doubts = dict.fromkeys(why for record in files if (why := unfit(record)))
    return [*common, *counts, *doubts]


def _released(record: CellRecord) -> int | None:
    counts = record.summary.counts if record.summary else {}
    return counts.get("released", counts.get("armed", counts.get("n")))
