"""The rows of one cell: what of its record and its samples goes into the tables of an archive."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from rtmeter.archive.schema import CAUSES, FINDINGS, MAXIMA
from rtmeter.archive.tables import json_text
from rtmeter.errors import RtmeterError
from rtmeter.results import store
from rtmeter.results.cells import StoredCell
from rtmeter.results.data import samples_of
from rtmeter.results.record import CellRecord, Statistics
from rtmeter.results.record.reading import unreadable
from rtmeter.statistics.fixed_bins import Binned, binned
from rtmeter.statistics.judged import judged_run
from rtmeter.statistics.quantities import Ints, judged_quantity
from rtmeter.statistics.views import LATER
from rtmeter.trace.table import FILE as TRACE
from rtmeter.values import utc

BLOCK_NS = 300 * 10**9
"""The blocks whose maxima are kept."""

EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
AHEAD = timedelta(days=1)
"""A clock that tells a time before this one, or later than now by more than that, is not believed."""

NO_TIME = "not told"
"""In ``clock`` of a cell that states no time."""

NOBODY = "unknown"
"""The rig of cells that name no machine."""

NOT_TOLD = "misses_not_told"
"""In ``refused`` of a cell whose data do not tell how many releases missed."""

_QUANTILES = ("min_ns", "p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "p99_99_ns", "p99_999_ns", "max_ns")
_DRIVEN = {"timer": ("drive",), "cycle": ("drive", "components")}
_OF_THE_SERVER = ("kernel", "kernel_version", "firmware")
_MIDDLEWARE = ("middleware", "middleware_version")
_NOT_SETTINGS = ("version", "samples", "warm_up", "measurement", "mode", "quantity", "seed")


@dataclass(frozen=True)
class CellRows:
    """A cell as an archive has it: its row, its distribution (None where its samples are not known one by
    one), and rows of other tables, without the causes until they are asked for; ``source``: what they are
    of."""

    cell: dict[str, Any]
    binned: Binned | None
    others: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    source: StoredCell | None = None

    def explain(self) -> RtmeterError | None:
        """Adds why its releases were late, which may take seconds, unless that was asked before. Returns what
        stands in the way, which is no reason to leave out the cell: its causes are then not known."""
        if self.source is None or "causes" in self.cell:
            return None
        try:
            causes = _causes(self.source)
        except (RtmeterError, OSError) as error:
            self.cell["causes"] = None
            told = error if isinstance(error, RtmeterError) else unreadable(error, self.source.folder)
            told.where = told.where or str(self.source.folder)
            return told
        self.cell["causes"] = None if causes is None else len(causes)
        self.others[CAUSES] = causes or []
        return None


def rows_of(cell: StoredCell, labels: Mapping[str, str], now: datetime) -> CellRows:
    """The rows of a cell on disk, without its causes. Raises RtmeterError if its samples cannot be read."""
    record = cell.record
    values = _values(cell)
    found = None if values is None else binned(values)
    labels = {**(record.rig.labels if record.rig else {}), **labels}
    row = _facts(record, cell.folder) | _judged(record) | _times(record, now)
    row |= {"cell": _identity(record, values), "labels": list(labels.items()), "rig": _rig(record, labels)}
    others = {
        MAXIMA: [] if values is None else _maxima(values, record),
        FINDINGS: _findings(record),
    }
    row["findings"] = len(others[FINDINGS])
    if values is not None and found is not None:
        row |= {"n": found.n, "bins": len(found.bins), "blocks": len(others[MAXIMA])}
    return CellRows(row, found, others, cell)


def _values(cell: StoredCell) -> Ints | None:
    """The judged quantity per release; None of what has no samples, or none that count."""
    if not cell.record.usable or samples_of(cell.folder, cell.record) is None:
        return None
    return judged_run(cell.record.meta, store.chunks(cell.folder)).values


def _identity(record: CellRecord, values: Ints | None) -> str:
    """A name by content: what was asked, where, when, and every value that came of it. It is the same
    whatever is later said of the cell, and whichever rtmeter says it."""
    about: list[Any] = [
        record.id,
        record.measurement,
        record.mode,
        record.adapter,
        dict(record.axes),
        dict(record.config),
    ]
    about += [record.machine.get(name) for name in ("hostname", "machine_id", "boot_id")]
    about += [record.started, record.ended, record.status, dict(record.grid)]
    about += [record.imported.sha256, record.imported.series] if record.imported else []
    digest = hashlib.sha256(json_text(about).encode())
    if values is not None:
        digest.update(np.ascontiguousarray(values, dtype="<i8").tobytes())
    return digest.hexdigest()[:32]


def _rig(record: CellRecord, labels: Mapping[str, str]) -> str:
    """What the rig is called: its label, its name where it was one of many, or the host name with the first
    digits of the machine's id, so that two machines of one name, or of one id, are two rigs."""
    if "rig" in labels:
        return labels["rig"]
    if record.rig is not None:
        return record.rig.name
    name, own = record.machine.get("hostname") or NOBODY, record.machine.get("machine_id")
    return f"{name}-{own[:8]}" if own else name


def _facts(record: CellRecord, folder: Path) -> dict[str, Any]:
    machine, facts = record.machine, record.adapter_facts
    row: dict[str, Any] = {
        name: getattr(record, name)
        for name in ("id", "name", "status", "valid", "measurement", "mode", "adapter", "server_adapter")
    }
    names = ("machine_id", "boot_id", "hostname", "kernel", "kernel_version", "firmware", "cpu_model")
    row |= {name: _text(machine.get(name)) for name in (*names, "virtual_machine")}
    row |= {name: _text(facts.get(name)) for name in _MIDDLEWARE}
    theirs = record.server_adapter_facts or {}
    if any(theirs.get(name) != facts.get(name) for name in _MIDDLEWARE):
        row |= {f"server_{name}": _text(theirs.get(name)) for name in _MIDDLEWARE}
    row |= {name: record.config.get(name) for name in ("period_ns", "timeout_ns")}
    row["payload_bytes"] = _payload_bytes(record, folder)
    row |= {"campaign": _campaign(folder), "rtmeter": record.rtmeter, "repeat": record.repeat}
    scheduling = record.config.get("scheduling")
    row["scheduling"] = json_text(scheduling) if scheduling else None
    row["settings"] = json_text(_settings(record))
    row["quantity"] = _text(record.config.get("quantity")) or judged_quantity(record.meta).name
    driven = _DRIVEN.get(record.measurement, ())
    row |= {name: _text(record.effective.get(name) or record.config.get(name)) for name in driven}
    row |= {name: _text(facts.get(name)) for name in ("rmw", "rmw_library")}
    server = _server(record)
    return row | {f"server_{name}": _text(server.get(name)) for name in _OF_THE_SERVER}


def _server(record: CellRecord) -> Mapping[str, Any]:
    """The facts of the server's machine, if that is another one."""
    server: Mapping[str, Any] = record.server_machine or {}
    same = all(server.get(name) == record.machine.get(name) for name in ("hostname", "boot_id"))
    return {} if same else server


def _payload_bytes(record: CellRecord, folder: Path) -> int | None:
    """A key of the probe's own, which the record does not check."""
    found: object = record.config.get("payload_bytes")
    if found is None or (type(found) is int and 0 <= found < 2**63):
        return found
    raise RtmeterError(
        "is no number of bytes",
        where=str(folder / store.CELL),
        field="config.payload_bytes",
        value=str(found)[:60],
        remedy="measure the cell again, or leave it out",
    )


def _settings(record: CellRecord) -> dict[str, Any]:
    """What was asked for and what was in effect, by name."""
    settings: dict[str, Any] = {k: v for k, v in record.config.items() if k not in _NOT_SETTINGS}
    settings |= {name: value for name, value in record.effective.items() if value is not None}
    asked = record.conditions["asked"] if record.conditions else {}
    return settings | {name: value for name, value in asked.items() if value not in (None, {}, [], False)}


def _campaign(folder: Path) -> str:
    if not (folder.parent / store.RUN).is_file():
        return "measure"
    return store.read_run(folder.parent).campaign


def _text(value: object) -> str | None:
    return None if value in (None, False, "") else str(value)


def _judged(record: CellRecord) -> dict[str, Any]:
    """Requirement, verdict and exact statistics; a statistic that falls on a lost release is null."""
    row: dict[str, Any] = {"deadline_ns": record.deadline_ns}
    if asked := record.requirement:
        names = ("miss_ratio", "confidence", "horizon", "criticality")
        row |= {name: getattr(asked, name) for name in names}
    if verdict := record.verdict:
        row |= {
            name: getattr(verdict, name) for name in ("outcome", "n", "misses", "late", "skipped", "lost")
        }
        row |= {
            "reason": verdict.reason[:300],
            "upper": verdict.bound,
            "design_effect": verdict.design_effect,
        }
        found = verdict.support.findings if verdict.support else ()
        refusing = dict.fromkeys(one.type for one in found if one.consequence == "refuse")
        if verdict.misses_between and verdict.outcome == "inconclusive":  # what may be misses fails no group
            row["misses"], refusing[NOT_TOLD] = verdict.misses_between[0], None
        row["refused"] = ",".join(refusing) or None
    if (statistics := _statistics(record)) is not None:
        values = statistics.model_dump()
        row |= {name: None if values[name] == "lost" else values[name] for name in _QUANTILES}
        row["max_at_k"] = None if values["max_ns"] == "lost" else statistics.max_at_k
        row["n"] = row.get("n") or statistics.n  # a verdict's has releases that are in no histogram
    if record.verdict is None and record.usable and record.summary:
        row["lost"] = record.summary.counts.get("lost")
    return row


def _statistics(record: CellRecord) -> Statistics | None:
    return record.judged if record.usable else None


def _times(record: CellRecord, now: datetime) -> dict[str, Any]:
    """When it was measured, by the clock of the rig, and in ``measured`` by what of it can be believed."""
    started, ended = _time(record.started), _time(record.ended)
    doubt = None
    if started is None:
        doubt = NO_TIME
    elif started < EARLIEST:
        doubt = "before 2020"
    elif started > now + AHEAD:
        doubt = "ahead"
    at = started if doubt is None else now
    return {"started": started, "ended": ended, "measured": at, "clock": doubt, "added": now}


def _time(text: str | None) -> datetime | None:
    try:
        return utc(text) if text else None
    except ValueError:
        return None


def _maxima(values: Ints, record: CellRecord) -> list[dict[str, Any]]:
    """The latest release of each BLOCK_NS of releases; null where one was lost."""
    tick = record.tick_ns
    if not tick or not len(values):
        return []
    size = max(1, math.ceil(BLOCK_NS / tick))
    first_k = max(record.warm_up, record.config.get("first_k") or 0)
    rows: list[dict[str, Any]] = []
    for block, start in enumerate(range(0, len(values), size)):
        part = values[start : start + size]
        lost = int(np.count_nonzero(part == LATER))
        first = int(part.argmax())
        row: dict[str, Any] = {
            "block": block,
            "n": len(part),
            "lost": lost,
            "max_at_k": first_k + start + first,
        }
        rows.append(row | {"max_ns": None if lost else int(part[first])})
    return rows


def _causes(cell: StoredCell) -> list[dict[str, Any]] | None:
    """Why its releases were late; None where the kernel's events are not there."""
    if not cell.record.usable or not (cell.folder / TRACE).is_file():
        return None
    from rtmeter.judge.explained import explained

    return [
        {
            "category": cause.key.category,
            "who": " of ".join(filter(None, (cause.key.who, cause.key.of))) or None,
            "ended_by": (cause.key.ended_by or "thread") if cause.key.category == "blocked" else None,
            "relation": cause.key.relation,
            "releases": cause.releases,
            "lateness_ns": cause.lateness_ns,
        }
        for cause in explained(cell).found.causes
    ]


def _findings(record: CellRecord) -> list[dict[str, Any]]:
    """What the machines had wrong, and the doubts about the data."""
    rows: list[dict[str, Any]] = []
    for source, found in (("machine", record.findings), ("server", record.server_findings)):
        for one in found or ():
            rows.append({"source": source, "finding": one.id, "grade": one.grade, "value": one.value[:300]})
    for doubt in record.warnings:
        rows.append({"source": "data", "finding": doubt.type, "grade": None, "value": doubt.message[:300]})
    return rows
