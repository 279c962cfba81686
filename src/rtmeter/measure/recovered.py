"""A cell made of a sample log alone: of a probe whose front is gone, or from another machine."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.measure.source import Ran
from rtmeter.measure.source.record import Logs, record_cell
from rtmeter.model import Cell, Outcome
from rtmeter.results import store
from rtmeter.results.record import CellRecord
from rtmeter.samples import LogReader
from rtmeter.samples.meta import LogMeta


def recovered(log: Path, server_log: Path | None, folder: Path) -> CellRecord:
    """The cell.json of a sample log; writes samples.parquet into ``folder``.

    ``server_log`` is by default the one beside it. A log that its probe did not end is that of a failed
    run. Raises RtmeterError if nothing of the log can be read, or it is a server's, or of a chain or a
    discovery (team/recovered_team.py).
    """
    reader = LogReader(log)
    meta = LogMeta.of(reader.meta, log)
    if meta.measurement in ("chain", "discovery"):
        message = f"is the log of one of the processes of a {meta.measurement}, which say it together"
        remedy = "give the folder in which they were measured (*.partial)"
        raise RtmeterError(message, where=str(log), remedy=remedy)
    if not isinstance(meta.config.get("period_ns"), int) or meta.config.get("role") == "server":
        raise RtmeterError(
            "is not the log of a client or of a single process",
            where=str(log),
            field="role",
            value=meta.config.get("role"),
            remedy="give the client's log, and this one as --server-log",
        )
    cell = Cell(
        id=log.parent.resolve().name.removesuffix(store.PARTIAL),
        adapter=str(meta.adapter.get("name", "unknown")),
        server_adapter=None,
        axes={},
        config=meta.cell_config | {"measurement": meta.measurement, "mode": meta.mode},
    )
    started = datetime.fromtimestamp(meta.clock.get("anchors", {}).get("realtime_ns", 0) / 1e9, UTC)
    logs = Logs(log, server_log or log.with_name(store.SERVER_LOG))
    return record_cell(cell, _outcome(meta, reader.ended), logs, folder, Ran(started, None))


def _outcome(meta: LogMeta, ended: bool) -> Outcome:
    if not ended or meta.outcome is None:
        return Outcome("failed", RtmeterError("the log was cut: its probe did not end by itself"))
    message = str((meta.error or {}).get("message", "the probe says so"))
    return Outcome(meta.outcome, RtmeterError(message) if meta.outcome == "failed" else None)
