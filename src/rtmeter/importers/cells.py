"""Cells made of other tools' files: what is in them, and what they do not say."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rtmeter.errors import RtmeterError
from rtmeter.importers import Imported, ImportedSeries, read
from rtmeter.judge.cell import judged
from rtmeter.model import Doubt, Requirement
from rtmeter.results import counted, store
from rtmeter.results.record import CellRecord, RunRecord, Summary, Threads
from rtmeter.samples import write_values
from rtmeter.statistics.counted import summarise_counted
from rtmeter.statistics.counted_data import PERIOD_UNKNOWN, Histogram
from rtmeter.statistics.summary import summarise
from rtmeter.values import format_duration, harmless, slug, version

CAMPAIGN = "import"
"""The folder's name where a run has its campaign's."""

UNKNOWN_MACHINE = "unknown-machine"

_EMPTY = ("axes", "hosts", "effective", "usage", "instrument", "counters", "grid", "clock")
_NULL = (
    *("mode", "server_adapter", "server_config", "server_machine", "published", "second_topic", "path"),
    *(
        "ticks",
        "clock_offset",
        "conditions",
        "findings",
        "server_findings",
        "summary",
        "verdict",
        "judged_by",
    ),
)
"""What only a probe says: nothing here, and null."""

_FROM_SOURCE = Doubt(
    "format_from_source",
    "this format was read by its tool's source code, not tried on the tool's own output",
    "compare a few numbers with what the tool prints",
)

_SKIPS = Doubt(
    "skips_unseen",
    "releases that the tool passed over after a late one are not in the file",
    "with a period verdicts count them, without one none passes; rtmeter's own have them in quantiles",
)


@dataclass(frozen=True, slots=True)
class Import:
    """One series of a file, to become the cell ``id``; ``period_ns`` as the file or the user states it."""

    id: str
    file: Path
    found: Imported
    series: ImportedSeries
    period_ns: int | None


def read_files(files: Sequence[Path], form: str | None, period_ns: int | None) -> list[Import]:
    """Every series of the files, in order; nothing is written. Raises RtmeterError if one cannot be read,
    or says another period than the user, or has an order and no period."""
    imports = [one for file in files for one in _of_file(file, form, period_ns)]
    taken: dict[str, Path] = {}
    for one in imports:
        if one.id in taken:
            message = f"would be a second cell {one.id}, beside that of {taken[one.id]}"
            raise RtmeterError(message, where=str(one.file), remedy="rename the file, or import it apart")
        taken[one.id] = one.file
    return imports


def _of_file(file: Path, form: str | None, period_ns: int | None) -> Iterator[Import]:
    found = read(file, form)
    if period_ns is not None and found.period_ns not in (None, period_ns):
        raise RtmeterError(
            f"is not what the file says: {format_duration(found.period_ns or 0)}",
            where=str(file),
            field="--period",
            value=format_duration(period_ns),
            remedy="leave it out",
        )
    for series in found.series:
        period = found.period_ns or period_ns
        if series.samples is not None and period is None:
            message = "is not in the file, and without it the order of its values says nothing"
            remedy = "give the period of the loop that was measured, e.g. --period 1ms"
            raise RtmeterError(message, where=str(file), field="--period", remedy=remedy)
        several = f"-{series.name}" if len(found.series) > 1 else ""
        yield Import(slug(f"{file.stem}{several}") or slug(found.tool), file, found, series, period)


def machine_of(imports: Sequence[Import]) -> str:
    """The machine's folder: the host that all files name, or UNKNOWN_MACHINE."""
    hosts = {one.found.machine.get("hostname", "") for one in imports}
    return slug(hosts.pop()) or UNKNOWN_MACHINE if len(hosts) == 1 else UNKNOWN_MACHINE


def write_run(imports: Sequence[Import], folder: Path) -> None:
    """Writes the run.json of cells that were imported together."""
    now = store.stamp(datetime.now(UTC))
    run = RunRecord(
        campaign=CAMPAIGN,
        description="",
        started=now,
        ended=now,
        cells=[one.id for one in imports],
        scale=1.0,
        host=None,
        rtmeter=version(),
    )
    store.write_run(folder, run, None)


def write_import(one: Import, folder: Path, requirement: Requirement | None) -> CellRecord:
    """Writes the cell of a series into the run ``folder`` and returns its record."""
    with store.NewCell(folder / one.id) as new:
        record = content_of(one, new.folder, requirement)
        new.finish(record)
    return record


def content_of(one: Import, folder: Path, requirement: Requirement | None) -> CellRecord:
    """Writes the data of a series into its cell's ``folder`` and returns its record."""
    record = _record(one, requirement)
    with store.writing(folder):
        record = record.changed(summary=_write_data(one, record, folder))
    if requirement is None:
        return record
    return judged(record, folder, requirement)


def _write_data(one: Import, record: CellRecord, folder: Path) -> Summary:
    """Samples, or what there is in their place; returns the summary."""
    series = one.series
    if series.samples is not None:
        meta = record.meta
        write_values(series.samples, "latency_ns", meta, folder / store.SAMPLES)
        summary = summarise(meta, store.chunks(folder))
        del summary["problems"]  # of rows that are made here there are none
        return Summary.model_validate(summary)
    data = series.histogram or series.intervals
    assert data is not None
    if one.found.skips and isinstance(data, Histogram):
        data = replace(data, skips_after_ns=one.period_ns or PERIOD_UNKNOWN)
    counted.write(folder, data)
    return Summary.model_validate(summarise_counted(data))


def _record(one: Import, requirement: Requirement | None) -> CellRecord:
    """The cell.json (spec/results.md) without summary and verdict; what the file does not say is empty."""
    found = one.found
    doubts = [*one.series.doubts, *found.doubts, *(() if found.verified else (_FROM_SOURCE,))]
    if found.skips and _may_have_skipped(one):
        doubts.append(_SKIPS)
    known = harmless(
        {
            "id": one.id,
            "status": "complete",
            "valid": True,
            "error": None,
            "measurement": "imported",
            "adapter": found.tool,
            "config": {"period_ns": one.period_ns, "warm_up": 0, "quantity": found.quantity},
            "requirement": requirement,
            "imported": _provenance(one),
            "threads": Threads(client=[], server=[]),
            "adapter_facts": {"middleware": found.tool, "middleware_version": found.version},
            "machine": dict(found.machine),
            "missing": [],
            "warnings": doubts,
            "started": store.stamp(found.started) if found.started else None,
            "ended": store.stamp(found.ended) if found.ended else None,
            "rtmeter": version(),
        }
    )
    return CellRecord.model_validate(known | {key: {} for key in _EMPTY} | dict.fromkeys(_NULL))


def _may_have_skipped(one: Import) -> bool:
    """Whether the largest value was later than a period, or that is not known."""
    largest = one.series.histogram.max_ns if one.series.histogram else None
    return one.period_ns is None or largest is None or largest >= one.period_ns


def _provenance(one: Import) -> dict[str, Any]:
    """``imported`` of the record: what the cell was made of; ``unknown`` names what the file does not say."""
    found, series = one.found, one.series
    kinds = {"samples": series.samples, "histogram": series.histogram, "intervals": series.intervals}
    said = {
        "version": found.version,
        "unit": found.unit,
        "period": found.period_ns,
        "machine": found.machine,
        "time": found.started,
        "options": found.facts.get("command"),
    }
    return {
        "file": one.file.name,
        "sha256": hashlib.sha256(one.file.read_bytes()).hexdigest(),
        "tool": found.tool,
        "version": found.version,
        "verified": found.verified,
        "quantity": found.quantity,
        "series": series.name,
        "data": next(kind for kind, data in kinds.items() if data is not None),
        "unit": found.unit,
        "period_from": "file" if found.period_ns else "--period" if one.period_ns else None,
        "facts": dict(found.facts),
        "unknown": [name for name, value in said.items() if not value],
    }
