"""From sample logs to a cell.json: converts, summarises and judges what a run left behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rtmeter import store, version
from rtmeter.errors import RtmeterError
from rtmeter.model import Cell, Doubt, Outcome, Requirement, Verdict
from rtmeter.samples import LogReader, Recovery, write_parquet
from rtmeter.statistics.summary import summarise
from rtmeter.verdict import judge, refuse

_WORDS = ("effective", "usage", "instrument", "counters", "grid", "machine", "clock")
_RUN_KEYS = ("version", "role", "log", "session", "watch_stdin")  # of a config: the run's, not the cell's


@dataclass(frozen=True, slots=True)
class Logs:
    """The sample logs of a cell; they need not exist."""

    client: Path
    server: Path


def record_cell(
    cell: Cell, outcome: Outcome, logs: Logs, folder: Path, started: datetime, ended: datetime | None
) -> dict[str, Any]:
    """The cell.json (spec/results.md) of a run; writes samples.parquet into ``folder``.

    Raises RtmeterError if that cannot be written.
    """
    doubts = list(outcome.warnings)
    error = outcome.error
    client: Recovery | None = None
    try:
        client = _convert(logs, folder / store.SAMPLES, doubts)
    except RtmeterError as unreadable:
        if unreadable.where != str(logs.client):
            raise
        error = error or unreadable
    server = _server_meta(logs.server)
    meta = client.meta if client else {}
    record: dict[str, Any] = {
        "id": cell.id,
        "status": "failed" if error else outcome.status,
        "valid": True,
        "error": error.to_json() if error else None,
        "measurement": cell.config["measurement"],
        "mode": cell.config.get("mode"),
        "adapter": cell.adapter,
        "server_adapter": cell.server_adapter,
        "axes": cell.axes,
        "config": cell.config,
        "server_config": config_of(server) if server else None,
        "requirement": asdict(cell.requirement) if cell.requirement else None,
        "threads": {"client": meta.get("threads") or [], "server": server.get("threads") or []},
        "adapter_facts": meta.get("adapter") or {},
        "missing": client.missing if client else [],
    }
    record |= {word: meta.get(word) or {} for word in _WORDS}
    doubts += _log_doubts(client, server)
    record |= _findings(cell, record, folder, bool(client and client.rows), doubts)
    record["warnings"] = [
        *(meta.get("warnings") or []),
        *(server.get("warnings") or []),
        *map(asdict, doubts),
    ]
    times = {"started": _stamp(started), "ended": _stamp(ended) if ended else None}
    return record | times | {"rtmeter": version()}


def tidy(folder: Path, *, keep_logs: bool) -> None:
    """Removes what a cell that is whole does not need: its logs, and an empty probe.stderr."""
    stderr = folder / store.STDERR
    if stderr.is_file() and stderr.stat().st_size == 0:
        stderr.unlink()
    if not keep_logs and (folder / store.SAMPLES).is_file():
        for log in (store.CLIENT_LOG, store.SERVER_LOG):
            (folder / log).unlink(missing_ok=True)


def config_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The cell's part of the config that a log's header repeats."""
    return {key: value for key, value in (meta.get("config") or {}).items() if key not in _RUN_KEYS}


def recovered(log: Path, server_log: Path | None, folder: Path) -> dict[str, Any]:
    """The cell.json of a sample log that was left alone; writes samples.parquet into ``folder``.

    Raises RtmeterError if nothing of the log can be read.
    """
    reader = LogReader(log)
    meta = reader.meta
    cell = Cell(
        id=log.parent.name.removesuffix(store.PARTIAL) or log.stem,
        adapter=str(meta.get("adapter", {}).get("name", "unknown")),
        server_adapter=None,
        axes={},
        config={"measurement": meta["measurement"]} | config_of(meta),
    )
    cut = RtmeterError("the log was cut: its probe did not end by itself", field="log", value=str(log))
    outcome = Outcome(meta["outcome"]) if reader.ended else Outcome("failed", cut)
    anchor_ns = meta.get("clock", {}).get("anchors", {}).get("realtime_ns", 0)
    logs = Logs(log, server_log or log.with_name("no-server"))
    return record_cell(cell, outcome, logs, folder, datetime.fromtimestamp(anchor_ns / 1e9, UTC), None)


def _convert(logs: Logs, out: Path, doubts: list[Doubt]) -> Recovery:
    """The client's log as samples.parquet, joined with the server's if that can be read."""
    if logs.server.is_file():
        try:
            return write_parquet(logs.client, out, logs.server)
        except RtmeterError as error:
            if error.where != str(logs.server):
                raise
            doubts.append(Doubt("server_log_unreadable", str(error), "one-way legs are not known"))
    return write_parquet(logs.client, out)


def _server_meta(log: Path) -> dict[str, Any]:
    try:
        return LogReader(log).meta if log.is_file() else {}
    except RtmeterError:
        return {}  # said by _convert()


def _log_doubts(client: Recovery | None, server: Mapping[str, Any]) -> list[Doubt]:
    hint = "what is whole was kept"
    doubts = [Doubt("damaged_log", problem, hint) for problem in (client.problems if client else [])]
    lost = (server.get("counters") or {}).get("overflow", 0)
    if lost:
        doubts.append(Doubt("server_overflow", f"{lost} rows of the server were lost to a full ring", ""))
    return doubts


def _findings(
    cell: Cell, record: Mapping[str, Any], folder: Path, has_rows: bool, doubts: list[Doubt]
) -> dict[str, Any]:
    """Summary, validity and verdict; what makes the cell invalid is added to the doubts."""
    found: dict[str, Any] = {"summary": None, "verdict": None}
    invalid = bool(record["error"] or record["missing"])
    if overflow := record["counters"].get("overflow", 0):
        invalid = True
        message = f"{overflow:,} rows were lost to a full ring: the writer could not keep up"
        doubts.append(Doubt("ring_overflow", message, "leave the writer a CPU of its own"))
    if has_rows:
        summary = summarise(store.statistics_meta(record), store.chunks(folder))
        for problem in summary.pop("problems"):
            invalid = True
            doubts.append(Doubt("samples_do_not_add_up", problem, "report this as a defect"))
        found["summary"] = summary
    else:
        (folder / store.SAMPLES).unlink(missing_ok=True)
    found["valid"] = not invalid
    if cell.requirement is not None:
        found["verdict"] = asdict(judge_cell({**record, **found}, folder, cell.requirement))
    return found


def judge_cell(record: Mapping[str, Any], folder: Path, requirement: Requirement) -> Verdict:
    """The verdict of a cell in ``folder`` by its samples; an error if they must not be judged."""
    meta = store.statistics_meta(record)
    if record["error"]:
        return refuse(meta, requirement, f"the run failed: {record['error']['message']}")
    if not record["valid"]:
        return refuse(meta, requirement, "the result is invalid: see its warnings")
    if record["summary"] is None:
        return refuse(meta, requirement, "nothing was measured")
    return judge(meta, store.chunks(folder), requirement)


def _stamp(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
