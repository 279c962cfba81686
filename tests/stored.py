"""Results as tests write and read them: what is in the files, checked by the front's own model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rtmeter.host.checked import crc32c_of
from rtmeter.results import counted, store
from rtmeter.results.record import CellRecord, RunRecord, text_of
from rtmeter.results.record.older import cell_of_version_1
from rtmeter.statistics.counted import summarise_counted
from rtmeter.statistics.counted_data import CountedData, Histogram
from synthetic import Made, meta_of
from synthetic import cell_json as cell_json_of


def cell_json(folder: Path) -> dict[str, Any]:
    """The cell.json of the folder."""
    found: dict[str, Any] = json.loads(text_of(store.read_cell(folder)))
    return found


def run_json(folder: Path) -> dict[str, Any]:
    """The run.json of the folder."""
    found: dict[str, Any] = json.loads(text_of(store.read_run(folder)))
    return found


def write_run(folder: Path, about: Mapping[str, Any], campaign: str | None) -> None:
    """A run.json that says this, and nothing in particular of the rest."""
    usual = {
        "campaign": "c",
        "description": "",
        "started": "2026-11-21T05:00:00Z",
        "ended": None,
        "cells": [],
    }
    usual |= {"ended": None, "scale": 1.0, "host": None, "rtmeter": "0.1.0"}
    store.write_run(folder, RunRecord.model_validate(usual | dict(about)), campaign)


def record(id: str = "cell", **changes: Any) -> CellRecord:
    """The record of a cell that measured nothing yet, but for the changes."""
    made = Made(id=id)
    old = cell_json_of(made, meta_of(made), {}, None, None) | {"summary": None, "version": 1}
    return CellRecord.model_validate(cell_of_version_1(old) | changes)


PROVENANCE: dict[str, Any] = {"file": "a.json", "sha256": "0", "tool": "t", "version": None, "verified": True}
PROVENANCE |= {"quantity": "q", "series": "s", "data": "samples", "unit": "us", "period_from": None}
PROVENANCE |= {"facts": {}, "unknown": []}
"""What an imported cell was made of."""


def write_counted(folder: Path, data: CountedData, **changes: Any) -> Path:
    """Writes an imported cell that has this in the place of samples; returns its folder. Its record has no
    checksum of it, so that it may be altered."""
    made_of = PROVENANCE | {"data": "histogram" if isinstance(data, Histogram) else "intervals"}
    about: dict[str, Any] = {"measurement": "imported", "config": {}, "imported": made_of, "started": None}
    with store.NewCell(folder) as new:
        counted.write(new.folder, data)
        written = record(**about | {"summary": summarise_counted(data)} | changes)
        new.finish(written)
    (folder / store.CELL).write_text(text_of(written), encoding="utf-8")
    return folder


def json_of(record: CellRecord) -> dict[str, Any]:
    """What is written of a record."""
    found: dict[str, Any] = json.loads(text_of(record))
    return found


def with_checksum(cell: Path) -> CellRecord:
    """Gives the record of a cell the checksum of its data, as a cell that is measured has it."""
    record = store.read_cell(cell)
    (data,) = (cell / name for name in store.DATA if (cell / name).is_file())
    record = record.model_copy(update={"data_crc32c": crc32c_of(data)})
    (cell / store.CELL).write_text(text_of(record), encoding="utf-8")
    return record
