"""A cell made of the logs of several processes that measured together: their front is gone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rtmeter.errors import RtmeterError
from rtmeter.measure.probe.together import log_of
from rtmeter.measure.source import Ran
from rtmeter.measure.team.chain_processes import processes_of
from rtmeter.measure.team.chain_record import record_chain
from rtmeter.measure.team.discovery_record import record_discovery
from rtmeter.model import Cell, Outcome
from rtmeter.results import store
from rtmeter.results.record import CellRecord
from rtmeter.samples import LogReader
from rtmeter.samples.meta import LogMeta
from rtmeter.values import from_json


def recovered_team(partial: Path, folder: Path) -> CellRecord:
    """The cell.json of the logs in ``partial``, where they were measured; writes samples.parquet into
    ``folder``. Raises RtmeterError if one of them is none, or nothing says whose they are."""
    config, members = _team(partial)
    metas = {name: _meta(log) for name in members if (log := log_of(partial, name)).exists()}
    first = next(iter(metas.values()), (LogMeta(), False))[0]
    cell = Cell(
        id=partial.resolve().name.removesuffix(store.PARTIAL),
        adapter=str(first.adapter.get("name", "unknown")),
        server_adapter=None,
        axes={},
        config=config,
    )
    outcome = _outcome(members, metas)
    ran = Ran(datetime.fromtimestamp(first.clock.get("anchors", {}).get("realtime_ns", 0) / 1e9, UTC), None)
    if config["measurement"] == "discovery":
        return record_discovery(cell, outcome, {name: log_of(partial, name) for name in members}, folder, ran)
    processes = processes_of(config, together=members == ["all"])
    logs = {process: log_of(partial, process.name) for process in processes}
    return record_chain(cell, outcome, logs, folder, ran)


def _team(partial: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        team = from_json((partial / store.STAGES / store.TEAM).read_bytes())
        return team["config"], team["members"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        message = f"does not say whose the logs beside it are: {error}"
        where = str(partial / store.STAGES / store.TEAM)
        raise RtmeterError(message, where=where, remedy="measure again") from None


def _meta(log: Path) -> tuple[LogMeta, bool]:
    reader = LogReader(log)
    return LogMeta.of(reader.meta, log), reader.ended


def _outcome(members: list[str], metas: Mapping[str, tuple[LogMeta, bool]]) -> Outcome:
    """The worst of all."""
    for name in members:
        meta, ended = metas.get(name, (None, False))
        if meta is None or not ended or meta.outcome is None:
            return Outcome(
                "failed", RtmeterError(f"the log of {name} was cut: its probe did not end by itself")
            )
        if meta.outcome == "failed":
            message = str((meta.error or {}).get("message", "the probe says so"))
            return Outcome("failed", RtmeterError(f"{name}: {message}"))
    complete = all(meta.outcome == "complete" for meta, _ in metas.values())
    return Outcome("complete" if complete else "interrupted", None)
