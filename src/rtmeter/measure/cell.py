"""Measures one cell from plan to stored result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rtmeter import conditions, machine
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.ssh import Ssh
from rtmeter.measure import cyclictest as tool_cells
from rtmeter.measure import polling, probes
from rtmeter.measure.places import There
from rtmeter.measure.record import Logs, record_cell, tidy
from rtmeter.measure.supervise import OnProgress, Stop, run_probes
from rtmeter.model import LOCAL, Cell, Outcome
from rtmeter.results import store


def probes_for(cell: Cell) -> tuple[probes.Probe, probes.Probe | None]:
    """The probe that measures the cell, and the one of its server process if it needs one.

    Raises RtmeterError if one is not there, or cannot do it.
    """
    measurement = cell.config["measurement"]
    probe = probes.require(
        cell.adapter, f"timer.{cell.config['mode']}" if measurement == "timer" else measurement
    )
    if measurement != "roundtrip":
        return probe, None
    host = cell.hosts.get("component", LOCAL)
    if not probe.serves_inline(cell.config.get("options", {})):
        if host != LOCAL and probe.same_host:
            message = f"is out of reach of the adapter {cell.adapter}, which shares memory with its server"
            remedy = "leave it out, or choose an adapter that uses the network"
            raise RtmeterError(message, field="hosts.component", value=host, remedy=remedy)
        other = cell.server_adapter not in (None, cell.adapter)
        server = probes.require(str(cell.server_adapter), measurement) if other else probe
        if host != LOCAL:
            _check_reach("options", cell.config.get("options", {}), probe)
            _check_reach("server_options", cell.server_options or {}, server)
        return probe, server
    for field in ("server_adapter", "server_affinity", "server_options", "server_receive"):
        if getattr(cell, field) is not None:
            message = f"means nothing for the adapter {cell.adapter}: it has no server process"
            raise RtmeterError(message, field=field, value=getattr(cell, field), remedy="leave it out")
    if (second := cell.config.get("second_topic")) is not None:
        message = f"needs a server process, which the adapter {cell.adapter} has none of with these options"
        raise RtmeterError(message, field="second_topic", value=second["place"], remedy="leave it out")
    if host != LOCAL:
        message = f"means nothing for the adapter {cell.adapter}: its server is a part of the client"
        raise RtmeterError(message, field="hosts.component", value=host, remedy="leave it out")
    return probe, None


def _check_reach(field: str, given: Mapping[str, str], probe: probes.Probe) -> None:
    """Raises RtmeterError for an option with which the probe reaches its own host only."""
    for option, values in probe.same_host_options.items():
        if given.get(option) in values:
            about = probe.facts.get("option", {}).get(option, "")
            others = [value for value in about.partition(":")[0].split("|") if value not in values]
            remedy = f"choose {' or '.join(others)}" if others else "leave it out"
            message = "does not reach another host"
            raise RtmeterError(message, field=f"{field}.{option}", value=given[option], remedy=remedy)


def check(cell: Cell) -> None:
    """Raises RtmeterError if what measures the cell is not there, or cannot do it."""
    if tool_cells.is_of_tool(cell):
        tool_cells.check(cell)
    else:
        polling.check(cell, *probes_for(cell))


def check_polling(cell: Cell) -> None:
    """Raises RtmeterError if its threads would keep each other from running; nothing is said of a cell whose
    adapter is not here, or cannot measure it."""
    if cell.config["scheduling"]["policy"] == "other" or tool_cells.is_of_tool(cell):
        return
    try:
        found = probes_for(cell)
    except RtmeterError:
        return
    polling.check(cell, *found)


def need_the_machine(cells: Iterable[Cell]) -> bool:
    """Whether one of the cells is measured in real time, or changes the machine."""
    asked = list(cells)
    if any(cell.conditions.keys() & {"settings", "load", "traffic", "server"} for cell in asked):
        return True
    found = probes.find_probes()
    adapters = {name for cell in asked for name in (cell.adapter, cell.server_adapter) if name is not None}
    return any(name not in found or not probes.describe(name, found[name]).scripted for name in adapters)


def _look_there(cell: Cell) -> None:
    """Raises RtmeterError if the server has another host, which is out of reach or cannot run its probe."""
    host = cell.hosts.get("component", LOCAL)
    server = None if host == LOCAL else probes_for(cell)[1]
    if server is not None:
        There(Ssh(host, "hosts.component")).look(server)


def run_cell(
    cell: Cell, path: Path, stop: Stop, on_progress: OnProgress, *, keep_empty: bool = True
) -> dict[str, Any]:
    """Measures the cell and stores it at ``path``; returns its cell.json.

    A run that fails is stored as failed, with whatever it measured; unless ``keep_empty``, not if that
    is nothing. One whose adapter is not built here is stored as skipped. Raises RtmeterError only if the
    result cannot be written: what there is of it is then in ``<path>.partial``.
    """
    new = store.NewCell(path)
    stop.keeping = False
    started = datetime.now(UTC)
    standing: conditions.Standing | None = None
    found: dict[str, list[dict[str, Any]]] = {}
    of_tool = tool_cells.is_of_tool(cell)
    try:
        check(cell)
        _look_there(cell)
        with store.writing(new.folder), conditions.applied(cell, new.folder) as standing:
            found["findings"] = _findings(Root(), machine.intent_of(cell))
            if standing.server_root is not None:
                found["server_findings"] = _findings(standing.server_root, machine.server_intent_of(cell))
            heed, launchers = _checking(standing.check, on_progress), standing.launchers
            if of_tool:
                through = launchers.client(None)
                outcome = tool_cells.run(cell, new.folder, lambda: stop.asked > 0, standing.check, through)
            else:
                outcome = run_probes(cell, *probes_for(cell), new.folder, stop, heed, launchers)
        outcome = _under(standing, outcome)
    except probes.NotBuiltError as error:
        outcome = Outcome("skipped", error)
    except RtmeterError as error:
        outcome = Outcome("failed", error)
        outcome = _under(standing, outcome) if standing else outcome  # what could not be taken back is told
    stop.keeping = True
    logs = Logs(new.folder / store.CLIENT_LOG, new.folder / store.SERVER_LOG)
    try:
        ended = datetime.now(UTC)
        facts = standing.facts() if standing else None
        record = None
        if of_tool and (new.folder / tool_cells.FILE).is_file():
            try:
                ran = tool_cells.Ran(started, ended, facts, found)
                record = tool_cells.record(cell, outcome, new.folder, ran)
            except RtmeterError as error:  # it wrote no whole file
                outcome = Outcome("failed", outcome.error or error)
        if record is None:
            record = record_cell(cell, outcome, logs, new.folder, started, ended, conditions=facts, **found)
        tidy(new.folder, keep_logs=cell.keep_log or record["status"] == "failed" or not record["valid"])
        if keep_empty or record["summary"] or (new.folder / store.STDERR).exists():
            new.finish(record)
        else:
            new.discard()
    except RtmeterError as error:
        if logs.client.exists():
            error.remedy = f"free space there, then run: rtmeter recover {logs.client}"
        raise
    return record


def _findings(root: Root, intent: machine.Intent) -> list[dict[str, Any]]:
    return [finding.to_json() for finding in machine.findings(root, intent)]


def _checking(check: Callable[[], None], on_progress: OnProgress) -> OnProgress:
    """Ends the run by the error that the check raises."""

    def heed(event: dict[str, Any]) -> None:
        check()
        on_progress(event)

    return heed


def _under(standing: conditions.Standing, outcome: Outcome) -> Outcome:
    """The outcome with what its conditions make of it."""
    warnings = (*outcome.warnings, *standing.doubts())
    failure = outcome.error or standing.failure()
    return replace(outcome, status="failed" if failure else outcome.status, error=failure, warnings=warnings)
