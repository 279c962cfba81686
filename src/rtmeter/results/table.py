"""cells.parquet: the cells of a run as one table (spec/results.md), as new as their cell.json files.

Who reads many cells reads this one file. It is made anew of what changed whenever a cell.json is not the one
that it was made of; where it cannot be written, it is made in memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rtmeter.errors import RtmeterError
from rtmeter.host import checked
from rtmeter.host.files import open_file, replace_file
from rtmeter.results import store
from rtmeter.results.record import CellRecord, Statistics, text_of
from rtmeter.results.record.cell import CELL_FORMAT, CELL_VERSION
from rtmeter.results.record.reading import cell_of, unreadable
from rtmeter.statistics.quantities import judged_quantity
from rtmeter.values import version

TABLE = "cells.parquet"
FORMAT, VERSION = "rtmeter-cells", 2

_GROUP_CELLS = 500
_TIMES = tuple(name for name in Statistics.model_fields if name.endswith("_ns"))
_REAL = ("mean_ns", "stddev_ns")
_ASCENDING = ("min_ns", *(name for name in _TIMES if name not in ("min_ns", "max_ns", *_REAL)), "max_ns")

_TEXTS = (
    *("id", "status", "measurement", "mode", "adapter", "server_adapter", "started", "ended", "axes"),
    *("scheduling", "conditions", "hostname", "machine_id", "kernel", "cpu_model", "virtual_machine"),
    *("verdict", "reason", "criticality", "quantity", "view", "lost"),
)
_INTS = (
    *("period_ns", "timeout_ns", "payload_bytes", "deadline_ns", "judged_n", "misses", "late", "skipped"),
    *("lost_releases", "n", "max_at_k", "cell_mtime_ns", "cell_bytes"),
)
_REALS = ("miss_ratio", "confidence", "upper")

SCHEMA = pa.schema(
    [
        ("cell", pa.string()),
        *((name, pa.string()) for name in _TEXTS),
        ("valid", pa.bool_()),
        ("judged", pa.bool_()),
        *((name, pa.int64()) for name in _INTS),
        *((name, pa.float64() if name in _REAL else pa.int64()) for name in _TIMES),
        *((name, pa.float64()) for name in _REALS),
        ("record", pa.large_binary()),
    ],
    metadata={"rtmeter": json.dumps({"format": FORMAT, "version": VERSION, "rtmeter": version()})},
)
"""The columns (spec/results.md says what each is)."""

_BEGINNING = f'{{\n "format": "{CELL_FORMAT}",\n "version": {CELL_VERSION},'.encode()
"""Of what text_of() makes of a record."""

Stamp = tuple[int, int]
"""When a cell.json was written, and its size in bytes: what tells that it is another one."""


def records(
    folders: Sequence[Path], *, keep: bool = True
) -> Iterator[tuple[Path, CellRecord | RtmeterError]]:
    """The record of each cell, or what is wrong with it, in the order given; cells of a run lie together.
    ``keep``: whether a table may be written where there is none that is new."""
    for run, group in groupby(folders, key=lambda folder: folder.parent):
        wanted = list(group)
        table = None
        if len(wanted) > 1 and (run / store.RUN).is_file():
            stamps = _stamps(run)
            table = _new(run, stamps)
            if table is None and keep:
                if _open(run / TABLE) is None and stamps.keys() == {folder.name for folder in wanted}:
                    yield from _while_made(run, wanted)
                    continue
                table = read(run)
        contents: Iterator[bytes | None] = iter([None] * len(wanted))
        if table is not None:
            contents = _ordered(table, [folder.name for folder in wanted])
        for folder, content in zip(wanted, contents, strict=True):
            try:
                if content is None:
                    yield folder, store.read_cell(folder)
                else:
                    yield folder, cell_of(content, folder / store.CELL)
            except RtmeterError as error:
                yield folder, error


def _while_made(run: Path, folders: Sequence[Path]) -> Iterator[tuple[Path, CellRecord | RtmeterError]]:
    """The records of all cells of a run, each read once, while its table is made: at the end it is there."""
    out = pa.BufferOutputStream()
    with checked.writer(out, SCHEMA) as writer:
        for first in range(0, len(folders), _GROUP_CELLS):
            rows: list[dict[str, Any]] = []
            for folder in folders[first : first + _GROUP_CELLS]:
                found, record = _looked_at(folder)
                rows += found
                yield folder, record
            writer.write_table(_table(rows))
    _keep(run, out.getvalue())


def facts(folders: Sequence[Path], *columns: str) -> Iterator[tuple[Any, ...]]:
    """These columns of the first row of each cell, in the order given; None each of what cannot be read."""
    nothing = (None,) * len(columns)
    for run, group in groupby(folders, key=lambda folder: folder.parent):
        names = [folder.name for folder in group]
        if len(names) > 1 and (run / store.RUN).is_file():
            rows = {row["cell"]: row for row in reversed(_columns(run, ["cell", *columns]))}
        else:
            rows = {name: row for name in names for row in reversed(_looked_at(run / name)[0])}
        for name in names:
            yield tuple(rows[name].get(column) for column in columns) if name in rows else nothing


def _columns(run: Path, names: list[str]) -> list[dict[str, Any]]:
    """These columns of the table, which is made anew where they are damaged."""
    try:
        return list(read(run).read(names).to_pylist())
    except checked.DAMAGED:
        made = _made(run, _stamps(run), None, set())
        _keep(run, made)
        return list(checked.opened(pa.BufferReader(made)).read(names).to_pylist())


def _ordered(table: pq.ParquetFile, names: list[str]) -> Iterator[bytes | None]:
    """The content of each cell.json by name; None of one that the table does not know."""
    there = _contents(table)
    passed: dict[str, bytes | None] = {}
    for name in names:
        while name not in passed and (coming := next(there, None)) is not None:
            passed[coming[0]] = coming[1]
        yield passed.pop(name, None)


def _contents(table: pq.ParquetFile) -> Iterator[tuple[str, bytes | None]]:
    for group in range(table.num_row_groups):
        try:
            part = table.read_row_group(group, ["cell", "record"])
        except checked.DAMAGED:  # those cells are read themselves
            continue
        last = None
        for name, content in zip(part.column("cell").to_pylist(), part.column("record"), strict=True):
            if name != last:
                yield name, content.as_py()
            last = name


def read(run: Path) -> pq.ParquetFile:
    """The table of a run's cells; written beside them if it was not there or was older, and can be."""
    stamps = _stamps(run)
    if (table := _new(run, stamps)) is not None:
        return table
    old = _open(run / TABLE)
    known = {} if old is None else _known(old)
    made = _made(run, stamps, old, {name for name, stamp in stamps.items() if known.get(name) == stamp})
    _keep(run, made)
    return checked.opened(pa.BufferReader(made))


def _keep(run: Path, made: pa.Buffer) -> None:
    with suppress(RtmeterError):  # a folder that may only be read
        replace_file(run / TABLE, memoryview(made), "results")


def _new(run: Path, stamps: Mapping[str, Stamp]) -> pq.ParquetFile | None:
    """The table, if it is of these cells as they are."""
    table = _open(run / TABLE)
    return table if table is not None and _known(table) == stamps else None


def _stamps(run: Path) -> dict[str, Stamp]:
    found = {}
    for entry in os.scandir(run):
        if not entry.name.endswith(store.PARTIAL):
            with suppress(OSError):
                about = Path(entry.path, store.CELL).stat()
                found[entry.name] = about.st_mtime_ns, about.st_size
    return found


def _open(path: Path) -> pq.ParquetFile | None:
    """None where there is no table, or one that is damaged or of another version."""
    try:
        table = checked.opened(path)
        if table.schema_arrow.equals(SCHEMA, check_metadata=True):
            return table
    except checked.DAMAGED:
        pass
    return None


def _known(table: pq.ParquetFile) -> dict[str, Stamp]:
    try:
        columns = table.read(["cell", "cell_mtime_ns", "cell_bytes"]).to_pydict().values()
    except checked.DAMAGED:
        return {}
    return {name: (mtime_ns, size) for name, mtime_ns, size in zip(*columns, strict=True)}


def _made(run: Path, stamps: Mapping[str, Stamp], old: pq.ParquetFile | None, kept: set[str]) -> pa.Buffer:
    """The content of the table: what of the old one still holds, and the rest from the cells.

    In Arrow's own memory: a thread of Arrow's that lets go of Python's while the interpreter ends is ended in
    a destructor, which aborts the process.
    """
    out = pa.BufferOutputStream()
    with checked.writer(out, SCHEMA) as writer:
        if old is not None and kept:
            try:
                for group in range(old.num_row_groups):
                    part = old.read_row_group(group)
                    writer.write_table(part.filter(pc.is_in(part.column("cell"), pa.array(sorted(kept)))))
            except checked.DAMAGED:
                return _made(run, stamps, None, set())
        new = [name for name in _in_order(run, stamps) if name not in kept]
        for first in range(0, len(new), _GROUP_CELLS):
            some = new[first : first + _GROUP_CELLS]
            rows = [row for name in some for row in _looked_at(run / name)[0]]
            writer.write_table(_table(rows))
    return out.getvalue()


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows, SCHEMA)
    except (pa.ArrowException, OverflowError):  # a number that no machine measured: the record tells it
        kept = ("cell", "id", "status", "cell_mtime_ns", "cell_bytes", "record")
        return pa.Table.from_pylist([{name: row.get(name) for name in kept} for row in rows], SCHEMA)


def _in_order(run: Path, names: Iterable[str]) -> list[str]:
    with suppress(RtmeterError):
        place = {name: number for number, name in enumerate(store.read_run(run).cells)}
        return sorted(names, key=lambda name: (place.get(name, -1), name))
    return sorted(names)


def _looked_at(folder: Path) -> tuple[list[dict[str, Any]], CellRecord | RtmeterError]:
    """A row for each quantity and view of the cell, one without either if it has none, or is damaged; and its
    record, or what is wrong with it."""
    try:
        with open_file(folder / store.CELL) as file:
            about = os.fstat(file.fileno())
            content = file.read()
    except OSError as error:  # gone meanwhile, or not to be read
        return [], unreadable(error, folder / store.CELL)
    stamp = {"cell": folder.name, "cell_mtime_ns": about.st_mtime_ns, "cell_bytes": about.st_size}
    try:
        record = cell_of(content, folder / store.CELL)
    except RtmeterError as error:
        return [stamp | {"status": "damaged", "record": content}], error
    views = _views(record)
    facts = stamp | _facts(record)
    current = _current(record, content, folder / store.CELL)
    facts_and_views = [facts | view for view in views or [{}]]
    return [row | {"record": None if n else current} for n, row in enumerate(facts_and_views)], record


def _current(record: CellRecord, content: bytes, path: Path) -> bytes:
    """What is read in the place of a cell.json: of an older version, what it is as of the one that is read,
    which takes a twentieth of the time."""
    if not content.startswith(_BEGINNING) and json.loads(content)["version"] != record.version:
        made = text_of(record).encode()
        with suppress(RtmeterError):  # a number that JSON has not
            return made if cell_of(made, path) == record else content
    return content


def _facts(record: CellRecord) -> dict[str, Any]:
    machine, required, verdict = record.machine, record.requirement, record.verdict
    scheduling = record.config.get("scheduling")
    facts: dict[str, Any] = {
        "id": record.id,
        "status": record.status,
        "valid": record.valid,
        "measurement": record.measurement,
        "mode": record.mode,
        "adapter": record.adapter,
        "server_adapter": record.server_adapter,
        "started": record.started,
        "ended": record.ended,
        "axes": json.dumps(dict(record.axes)),
        "scheduling": json.dumps(scheduling) if scheduling else None,
        "conditions": json.dumps(record.conditions["asked"]) if record.conditions else None,
    }
    facts |= {name: record.config.get(name) for name in ("period_ns", "timeout_ns", "payload_bytes")}
    names = ("hostname", "machine_id", "kernel", "cpu_model", "virtual_machine")
    facts |= {name: None if (value := machine.get(name)) is None else str(value) for name in names}
    if required:
        facts |= {"deadline_ns": required.deadline_ns, "miss_ratio": required.miss_ratio}
        facts |= {"confidence": required.confidence, "criticality": required.criticality}
    if verdict:
        facts |= {"verdict": verdict.outcome, "reason": verdict.reason, "judged_n": verdict.n}
        facts |= {"misses": verdict.misses, "late": verdict.late, "skipped": verdict.skipped}
        facts |= {"lost_releases": verdict.lost, "upper": verdict.bound}
    return facts


def _views(record: CellRecord) -> list[dict[str, Any]]:
    if record.summary is None:
        return []
    judged = judged_quantity(record.meta).name
    return [
        {"quantity": name, "view": view, "judged": (name, view) == (judged, "per_release")} | _times(found)
        for name, views in record.summary.quantities.items()
        for view, found in views.items()
        if found is not None
    ]


def _times(found: Statistics) -> dict[str, Any]:
    """The statistics; ``lost``: the first of them in ascending order that falls on a lost release."""
    values = found.model_dump()
    lost = next((name.removesuffix("_ns") for name in _ASCENDING if values[name] == "lost"), None)
    times = {name: None if value == "lost" else value for name, value in values.items()}
    return {name: times[name] for name in ("n", "max_at_k", *_TIMES)} | {"lost": lost}
