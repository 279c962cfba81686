"""From sample logs to a cell.json: converts, summarises and judges what a run left behind."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from rtmeter import machine
from rtmeter.conditions import drops
from rtmeter.errors import RtmeterError
from rtmeter.judge.cell import judged
from rtmeter.measure.probe import beside_record, kernel_stamps
from rtmeter.measure.probe.clocks import Clocks, compare
from rtmeter.measure.source import Ran
from rtmeter.model import Cell, Doubt, Outcome
from rtmeter.results import store
from rtmeter.results.record import CellRecord, Failure, RigOfCell, Summary, WasBeside
from rtmeter.samples import LogReader, Recovery, write_parquet
from rtmeter.samples.meta import LogMeta
from rtmeter.statistics.quantities import judged_quantity
from rtmeter.statistics.summary import summarise
from rtmeter.values import version

_WORDS = ("effective", "usage", "instrument", "counters", "grid", "ticks", "clock")
"""What the record has in the words of the client's log."""


@dataclass(frozen=True, slots=True)
class Logs:
    """The sample logs of a cell; they need not exist."""

    client: Path
    server: Path

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Where those of a cell that is being measured are."""
        return cls(folder / store.CLIENT_LOG, folder / store.SERVER_LOG)


def record_cell(cell: Cell, outcome: Outcome, logs: Logs, folder: Path, ran: Ran) -> CellRecord:
    """The cell.json (spec/results.md) of a run; writes samples.parquet into ``folder``.

    The audit of the threads is added to the findings of the run. Raises RtmeterError if samples.parquet
    cannot be written.
    """
    doubts = list(outcome.warnings)
    error = outcome.error
    try:
        client, meta, clocks = _read(cell, logs, folder / store.SAMPLES, doubts)
    except RtmeterError as unreadable:
        if unreadable.where != str(logs.client):
            raise
        client, meta, clocks = None, LogMeta(), None
        if outcome.status == "complete":
            error = unreadable if unreadable.field else _no_log(unreadable, logs.client)
        elif logs.client.exists():
            doubts.append(Doubt("damaged_log", str(unreadable), "nothing of it was kept"))
    found = Gathered(meta, clocks, _server_meta(logs.server), bool(client and client.rows))
    found.missing = client.missing if client else []
    if found.rows:
        found.beside = beside_record.counted(cell, meta, found.server, folder)
        doubts += beside_record.doubts(found.beside)
    doubts += _log_doubts(client, found.server)
    return recorded(cell, Outcome(outcome.status, error, tuple(doubts)), found, folder, ran)


@dataclass(slots=True)
class Gathered:
    """What is known of a run: ``meta``, what was said of it; whether there is a samples.parquet with
    ``rows``, which of them are ``missing``."""

    meta: LogMeta
    clocks: Clocks | None = None
    server: LogMeta | None = None
    rows: bool = False
    missing: list[list[int | None]] = field(default_factory=list)
    beside: WasBeside | None = None


def recorded(cell: Cell, outcome: Outcome, found: Gathered, folder: Path, ran: Ran) -> CellRecord:
    """The cell.json of a run whose samples.parquet, if it has one, is written."""
    meta, server, clocks, error = found.meta, found.server, found.clocks, outcome.error
    doubts = list(outcome.warnings)
    doubts += kernel_stamps.doubts(kernel_stamps.facts(meta, server))
    findings = None
    if ran.findings is not None and meta.measurement != "own_loop":
        findings = machine.with_threads(ran.findings, meta.measurement, meta.threads)
    record = CellRecord.model_validate(
        {
            "id": cell.id,
            "status": "failed" if error and outcome.status != "skipped" else outcome.status,
            "valid": True,
            "error": Failure.of(error) if error else None,
            "measurement": cell.config["measurement"],
            "mode": cell.config.get("mode"),
            "adapter": cell.adapter,
            "server_adapter": cell.server_adapter,
            "axes": cell.axes,
            "factors": cell.factors,
            "config": cell.config,
            "server_config": server.cell_config if server else None,
            "hosts": cell.hosts,
            "rig": RigOfCell.of(cell.rig),
            "machine": _known(meta.machine, ran.machine_id),
            "server_machine": _known(server.machine, ran.server_machine_id) if server else None,
            "requirement": cell.requirement,
            "published": cell.published,
            "imported": None,
            "threads": {"client": meta.threads, "server": server.threads if server else []},
            "second_topic": _second_topic(meta, server),
            "beside": found.beside,
            "path": _path(meta, server),
            "adapter_facts": meta.adapter,
            "server_adapter_facts": (server.adapter or None) if server else None,
            "clock_offset": clocks.facts() if clocks else None,
            "kernel_stamps": kernel_stamps.facts(meta, server),
            "missing": found.missing,
            "conditions": ran.conditions,
            "findings": findings,
            "server_findings": ran.server_findings,
            "warnings": [],
            "summary": None,
            "verdict": None,
            "judged_by": None,
            "started": store.stamp(ran.started),
            "ended": store.stamp(ran.ended) if ran.ended else None,
            "rtmeter": version(),
        }
        | {word: getattr(meta, word) for word in _WORDS}
    )
    record = _judged(cell, record, folder, found.rows, doubts)
    of_server = [
        replace(one, message=f"server: {one.message}") for one in (server.warnings if server else ())
    ]
    return record.changed(warnings=[*meta.warnings, *of_server, *doubts])


def _no_log(error: RtmeterError, log: Path) -> RtmeterError:
    """Of a probe that ended as if it had written one."""
    remedy = f"the probe did not write what spec/sample-log.md says; see what it printed in {store.STDERR}"
    return RtmeterError(error.message, field="log", value=log.name, remedy=remedy)


def tidy(folder: Path, *, keep_logs: bool) -> None:
    """Removes what a cell that is whole does not need: its logs, and an empty probe.stderr."""
    stderr = folder / store.STDERR
    if stderr.is_file() and stderr.stat().st_size == 0:
        stderr.unlink()
    if not keep_logs and (folder / store.SAMPLES).is_file():
        for log in (store.CLIENT_LOG, store.SERVER_LOG):
            (folder / log).unlink(missing_ok=True)
        shutil.rmtree(folder / store.STAGES, ignore_errors=True)


def heard(record: CellRecord, folder: Path) -> CellRecord:
    """The record of a tidied folder; where nothing was printed, its error does not send there to read it."""
    error = record.error
    if error is None or error.remedy is None or (folder / store.STDERR).exists():
        return record
    said = ("it printed nothing" if store.STDERR in words else words for words in error.remedy.split("; "))
    return record.changed(error=error.model_copy(update={"remedy": "; ".join(said)}))


def _read(cell: Cell, logs: Logs, out: Path, doubts: list[Doubt]) -> tuple[Recovery, LogMeta, Clocks | None]:
    """Converts the logs to samples.parquet.

    Raises RtmeterError, with the client's log as ``where`` if that is at fault.
    """
    recovery, clocks = _convert(logs, out, doubts)
    meta = LogMeta.of(recovery.meta, logs.client)
    about = {"measurement": cell.config["measurement"], "mode": cell.config.get("mode")}
    lacking = set(judged_quantity(about).columns) - {column["name"] for column in recovery.meta["columns"]}
    if lacking:
        raise RtmeterError(
            f"lacks columns of a {about['measurement']} log",
            field="columns",
            value=", ".join(sorted(lacking)),
            where=str(logs.client),
            remedy="the probe that wrote it does not follow spec/sample-log.md",
        )
    return recovery, meta, clocks


def _convert(logs: Logs, out: Path, doubts: list[Doubt]) -> tuple[Recovery, Clocks | None]:
    """The client's log as samples.parquet, joined with the server's if that can be read; and the clocks of
    both, if there are two."""
    if logs.server.is_file():
        try:
            clocks = compare(logs.client, logs.server)
            recovery = write_parquet(logs.client, out, logs.server, clocks.to_client)
            doubts += clocks.doubts()
            return recovery, clocks
        except RtmeterError as error:
            if error.where != str(logs.server):
                raise
            doubts.append(Doubt("server_log_unreadable", str(error), "one-way legs are not known"))
    return write_parquet(logs.client, out), None


def _server_meta(log: Path) -> LogMeta | None:
    try:
        return LogMeta.of(LogReader(log).meta, log) if log.is_file() else None
    except RtmeterError:
        return None  # said by _convert()


def _known(machine: Mapping[str, Any], machine_id: str | None) -> dict[str, Any]:
    """What a probe says of its machine, and which one it is; nothing if there was no probe."""
    return {**machine, "machine_id": machine_id} if machine and machine_id else dict(machine)


def _second_topic(client: LogMeta, server: LogMeta | None) -> dict[str, Any] | None:
    """What became of it at both ends; None without one."""
    if client.second_topic is None:
        return None
    return {"client": client.second_topic, "server": server.second_topic if server else None}


def _path(client: LogMeta, server: LogMeta | None) -> dict[str, Any] | None:
    """Which way the messages of each end went; None where none were sent."""
    ends = {"client": client.path, "server": server.path if server else {}}
    return {end: one for end, one in ends.items() if one} or None


def _log_doubts(client: Recovery | None, server: LogMeta | None) -> list[Doubt]:
    hint = "what is whole was kept"
    doubts = [Doubt("damaged_log", problem, hint) for problem in (client.problems if client else [])]
    lost = server.counters.get("overflow", 0) if server else 0
    if lost:
        doubts.append(Doubt("server_overflow", f"{lost} rows of the server were lost to a full ring", ""))
    return doubts


def _judged(cell: Cell, record: CellRecord, folder: Path, has_rows: bool, doubts: list[Doubt]) -> CellRecord:
    """With summary, validity and verdict; what makes the cell invalid is added to the doubts."""
    invalid = bool(record.error or record.missing)
    if overflow := record.counters.get("overflow", 0):
        invalid = True
        message = f"{overflow:,} rows were lost to a full ring: the writer could not keep up"
        doubts.append(Doubt("ring_overflow", message, "leave the writer a CPU of its own"))
    summary = None
    if has_rows:
        found = summarise(record.meta, store.chunks(folder))
        for problem in [*found.pop("problems"), *beside_record.problems(record.beside)]:
            invalid = True
            doubts.append(Doubt("samples_do_not_add_up", problem, "report this as a defect"))
        summary = Summary.model_validate(found)
        doubts += drops.doubts(record.conditions or {}, summary.counts.get("lost", 0))
    else:
        (folder / store.SAMPLES).unlink(missing_ok=True)
    record = record.changed(summary=summary, valid=has_rows and not invalid)
    if cell.requirement is None:
        return record
    return judged(record, folder, cell.requirement)
