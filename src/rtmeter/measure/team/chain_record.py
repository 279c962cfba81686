"""From the sample logs of a chain's processes to a cell.json: every path, the judged one's samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rtmeter.campaign.chain_option import graph_of
from rtmeter.errors import RtmeterError
from rtmeter.judge.cell import judged
from rtmeter.measure.source import Ran
from rtmeter.measure.source.record import Gathered, recorded
from rtmeter.measure.team.chain_processes import ChainProcess, overdue_ns, warm_ups
from rtmeter.model import Cell, Doubt, Outcome
from rtmeter.results import store
from rtmeter.results.record import CellRecord
from rtmeter.results.record.chain import Chain
from rtmeter.samples import LogReader, write_columns
from rtmeter.samples.meta import LogMeta
from rtmeter.statistics.chain import COLUMNS, ChainResult, PathResult, analyse
from rtmeter.statistics.order import describe
from rtmeter.statistics.quantities import Columns, Ints

_NOTHING = {name: np.empty(0, dtype=np.int64) for name in COLUMNS}
_NAMES = ("stage", *COLUMNS)
_UNTIL_THE_END = 1 << 62
"""A run that ended by itself was listened to until everything was settled."""

Metas = Mapping[ChainProcess, tuple[LogReader, LogMeta]]


def record_chain(
    cell: Cell, outcome: Outcome, logs: Mapping[ChainProcess, Path], folder: Path, ran: Ran
) -> CellRecord:
    """The cell.json of a run; writes samples.parquet into ``folder``. Raises RtmeterError if it cannot."""
    try:
        metas = {process: read_log(log, _NAMES, "chain") for process, log in logs.items() if log.exists()}
    except RtmeterError as unreadable:
        error = unreadable if outcome.status == "complete" else outcome.error
        return recorded(cell, replace(outcome, error=error), Gathered(LogMeta()), folder, ran)
    if len(metas) < len(logs) or not metas:
        return recorded(cell, outcome, Gathered(LogMeta()), folder, ran)
    result = _result(cell.config, outcome, metas)
    chosen = next(path for path in result.paths if list(path.stages) == cell.config["graph"]["judged"])
    source = cell.config["graph"]["judged"][0]
    own = next(meta for process, (_, meta) in metas.items() if source in process.stages)
    meta = of_all(own, [meta for _, meta in metas.values()])
    about = {"measurement": "chain", "mode": None, "period_ns": cell.config["period_ns"]}
    write_columns(chosen.samples, about | {"warm_up": cell.config["warm_up"]}, folder / store.SAMPLES)
    found = Gathered(meta, rows=len(chosen.samples["status"]) > 0)
    found.missing = [hole for reader, _ in metas.values() for hole in reader.missing]
    doubts = damaged(reader for reader, _ in metas.values())
    record = recorded(cell, replace(outcome, warnings=(*outcome.warnings, *doubts)), found, folder, ran)
    record = record.changed(chain=_chain(cell, logs, result))
    return _with_problems(cell, record, result, folder)


def read_log(log: Path, columns: Iterable[str], of: str) -> tuple[LogReader, LogMeta]:
    """A process's log and what it says of itself. Raises RtmeterError, also for one without the columns of
    such a measurement."""
    reader = LogReader(log)
    named = [column["name"] for column in reader.header["columns"]]
    if lacking := {*columns} - {*named}:
        message = f"is no log of a {of}: it lacks {', '.join(sorted(lacking))}"
        raise RtmeterError(message, field="log", value=log.name, remedy="rebuild the probe and measure again")
    return reader, LogMeta.of(reader.meta, log)


def _result(config: Mapping[str, Any], outcome: Outcome, metas: Metas) -> ChainResult:
    rows = {name: _NOTHING for stage in config["graph"]["stages"] for name in [stage["name"]]}
    whole_until_ns: dict[str, int] = {}
    for process, (reader, meta) in metas.items():
        stages, last_ns = _rows_of(reader, process)
        rows |= stages
        if reader.missing or meta.counters.get("overflow"):
            first = 0 if meta.counters.get("overflow") else reader.missing[0][0]
            before = (last for k, last in last_ns if first is None or k < first)
            whole_until_ns |= dict.fromkeys(process.stages, max(before, default=0))
    graph = graph_of(config)
    ended_ns = _UNTIL_THE_END if outcome.status == "complete" else _last_ns(rows)
    return analyse(
        graph,
        rows,
        warm_up=warm_ups(config, graph),
        loss_timeout_ns=int(config["loss_timeout_ns"]),
        ended_ns=ended_ns,
        overdue_ns=overdue_ns(config, graph),
        whole_until_ns=whole_until_ns,
    )


def _rows_of(
    reader: LogReader, process: ChainProcess
) -> tuple[dict[str, dict[str, Ints]], list[tuple[int, int]]]:
    """The log of each of its stages, and of every frame its first row and the last stamp. What is in the file
    is held once: an array takes memory as it is filled."""
    rows = {stage: {name: np.empty(reader.rows, np.int64) for name in COLUMNS} for stage in process.stages}
    counts = dict.fromkeys(process.stages, 0)
    last_ns: list[tuple[int, int]] = []
    for k, frame in reader.frames():
        for number, stage in enumerate(process.stages):
            mine = frame["stage"] == number
            begin, counts[stage] = counts[stage], counts[stage] + int(np.count_nonzero(mine))
            for name, column in rows[stage].items():
                column[begin : counts[stage]] = frame[name][mine]
        last_ns.append((k, _last_ns({"": frame})))
    return {stage: {name: rows[stage][name][:n] for name in COLUMNS} for stage, n in counts.items()}, last_ns


def _last_ns(rows: Mapping[Any, Columns]) -> int:
    """The last stamp of all: until then, at least, all stages listened."""
    stamps = [
        column.max()
        for log in rows.values()
        for column in (log["sent_ns"], log["received_ns"])
        if len(column)
    ]
    return int(max(stamps, default=0))


def damaged(readers: Iterable[LogReader]) -> list[Doubt]:
    """What cannot be read of the logs."""
    return [Doubt("damaged_log", one, "what is whole was kept") for r in readers for one in r.problems]


def of_all(own: LogMeta, metas: Sequence[LogMeta]) -> LogMeta:
    """What one process says, with the threads, warnings and counters of all."""
    counters: Counter[str] = Counter()
    for meta in metas:
        counters.update(meta.counters)
    together = {
        "threads": [thread for meta in metas for thread in meta.threads],
        "warnings": list(dict.fromkeys(warning for meta in metas for warning in meta.warnings)),
        "counters": dict(counters),
        "path": {},
    }
    return own.model_copy(update=together)


def _chain(cell: Cell, logs: Mapping[ChainProcess, Path], result: ChainResult) -> Chain:
    return Chain.model_validate(
        {
            "judged": cell.config["graph"]["judged"],
            "processes": {process.name: list(process.stages) for process in logs},
            "paths": [_path(path) for path in result.paths],
        }
    )


def _path(path: PathResult) -> dict[str, Any]:
    def described(k: np.typing.NDArray[np.int64], values: np.typing.NDArray[np.int64]) -> dict[str, Any]:
        return describe(values.copy(), int(k[values.argmax()]) if len(values) else None)

    return {
        "stages": list(path.stages),
        "counts": path.counts,
        "identity": path.identity,
        "data_age": described(path.age_k, path.age_ns),
        "reaction": described(path.k, path.reaction_ns),
    }


def _with_problems(cell: Cell, record: CellRecord, result: ChainResult, folder: Path) -> CellRecord:
    """A chain whose logs contradict each other is invalid, and judged as such."""
    problems = list(result.problems)
    problems += [
        f"{path.name}: {path.identity}"
        for path in result.paths
        if path.counts["released"]
        != sum(path.counts[n] for n in ("arrived", "overtaken", "lost", "in_flight"))
    ]
    if not problems:
        return record
    hint = "the age of what it passes on is that of its own hop: let it pass on index and time of the sample"
    doubts = [
        Doubt(
            "re_stamped" if "re-stamps" in one else "samples_do_not_add_up",
            one,
            hint if "re-stamps" in one else "",
        )
        for one in problems
    ]
    record = record.changed(valid=False, warnings=[*record.warnings, *doubts])
    return judged(record, folder, cell.requirement) if cell.requirement else record
