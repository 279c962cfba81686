"""From the sample logs of a discovery's participants to a cell.json: each release's last start, match and
message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rtmeter.errors import RtmeterError
from rtmeter.judge.cell import judged
from rtmeter.measure.source import Ran
from rtmeter.measure.source.record import Gathered, recorded
from rtmeter.measure.team.chain_record import damaged, of_all, read_log
from rtmeter.model import ABSENT, IN_FLIGHT, LOST, SERVED, WARM_UP_FLAG, Cell, Doubt, Outcome
from rtmeter.results import store
from rtmeter.results.record import CellRecord
from rtmeter.samples import LogReader, write_columns
from rtmeter.samples.meta import LogMeta
from rtmeter.statistics.quantities import Columns, Ints
from rtmeter.statistics.views import OUTCOME_BITS

_TIMES = ("started_ns", "matched_ns", "first_ns")
_NAMES = ("release_ns", *_TIMES, "status")


def record_discovery(
    cell: Cell, outcome: Outcome, logs: Mapping[str, Path], folder: Path, ran: Ran
) -> CellRecord:
    """The cell.json of a run; writes samples.parquet into ``folder``. Raises RtmeterError if it cannot."""
    try:
        read = [read_log(log, _NAMES, "discovery") for log in logs.values() if log.exists()]
    except RtmeterError as unreadable:
        error = unreadable if outcome.status == "complete" else outcome.error
        return recorded(cell, replace(outcome, error=error), Gathered(LogMeta()), folder, ran)
    if len(read) < len(logs) or not read:
        return recorded(cell, outcome, Gathered(LogMeta()), folder, ran)
    config = cell.config
    samples = joined([_columns(reader) for reader, _ in read], config["warm_up"])
    about = {"measurement": "discovery", "mode": None, "period_ns": config["period_ns"]}
    write_columns(samples, about | {"warm_up": config["warm_up"]}, folder / store.SAMPLES)
    metas = [meta for _, meta in read]
    found = Gathered(of_all(metas[-1], metas), rows=len(samples["status"]) > 0)
    found.missing = [hole for reader, _ in read for hole in reader.missing]
    doubts = (*outcome.warnings, *damaged(reader for reader, _ in read))
    record = recorded(cell, replace(outcome, warnings=doubts), found, folder, ran)
    if not (early := before_start(samples)):
        return record
    were = "release was" if early == 1 else "releases were"
    message = f"{early:,} {were} over before the last participant had started"
    hint = "one of the release before was taken for it: lengthen the period"
    record = record.changed(valid=False, warnings=[*record.warnings, Doubt("too_early", message, hint)])
    return judged(record, folder, cell.requirement) if cell.requirement else record


def joined(logs: Sequence[tuple[Ints, Columns]], warm_up: int) -> dict[str, Ints]:
    """Of each participant's log ``k`` and its columns, each of shape (rows,): for every release that one of
    them has, from 0 on, the last start, match and message of all. In flight, if one has no row of it, or one
    in flight; lost, if one has lost it; a time is absent if it is with one of them."""
    count = max((int(k[-1]) + 1 for k, _ in logs if len(k)), default=0)
    worst = np.full(count, SERVED, dtype=np.int64)
    times = {name: np.full(count, np.iinfo(np.int64).min + 1) for name in _TIMES}
    release_ns = np.full(count, ABSENT)
    for k, columns in logs:
        outcome = np.full(count, IN_FLIGHT, dtype=np.int64)
        outcome[k] = columns["status"] & OUTCOME_BITS
        worst[(outcome == LOST) & (worst == SERVED)] = LOST
        worst[outcome == IN_FLIGHT] = IN_FLIGHT
        release_ns[k] = columns["release_ns"]
        for name, last in times.items():
            own = np.full(count, ABSENT)
            own[k] = columns[name]
            absent = (own == ABSENT) | (last == ABSENT)
            np.maximum(last, own, out=last)
            last[absent] = ABSENT
    flag = np.where(np.arange(count) < warm_up, WARM_UP_FLAG, 0)
    return {"release_ns": release_ns, **times, "status": worst | flag}


def before_start(samples: Mapping[str, Ints]) -> int:
    """In how many releases a match or a message came before the last participant had started."""
    served = (samples["status"] & OUTCOME_BITS) == SERVED
    matched_ns, first_ns = samples["matched_ns"], samples["first_ns"]
    first = np.minimum(np.where(matched_ns == ABSENT, first_ns, matched_ns), first_ns)
    return int(np.count_nonzero(served & (first < samples["started_ns"])))


def _columns(reader: LogReader) -> tuple[Ints, dict[str, Ints]]:
    frames = list(reader.frames())
    nothing: list[Any] = [np.empty(0, dtype=np.int64)]
    k = np.concatenate([*nothing, *(np.arange(first, first + len(f["status"])) for first, f in frames)])
    return k, {name: np.concatenate([*nothing, *(f[name] for _, f in frames)]) for name in _NAMES}
