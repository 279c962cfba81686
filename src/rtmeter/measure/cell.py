"""Measures one cell from plan to stored result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rtmeter import conditions, machine
from rtmeter.conditions.load import workers
from rtmeter.conditions.monitor import FILE as MONITOR
from rtmeter.conditions.target import clock_doubt, machine_of, uptime_shift_ns
from rtmeter.errors import RtmeterError
from rtmeter.host.identity import machine_id
from rtmeter.host.root import Root
from rtmeter.measure.by_probes import ByProbes
from rtmeter.measure.cyclictest import ByCyclictest
from rtmeter.measure.cyclictest_tool import CYCLICTEST
from rtmeter.measure.probe.probes import NotBuiltError
from rtmeter.measure.probe.supervise import OnProgress, Stop
from rtmeter.measure.programs.attached import ByAttaching, is_attached
from rtmeter.measure.source import Ran, Source
from rtmeter.measure.source.record import heard, tidy
from rtmeter.measure.source.their_clock import by_the_clock_of
from rtmeter.measure.team.by_chain import ByChain
from rtmeter.measure.team.by_discovery import ByDiscovery
from rtmeter.model import TARGET, Cell, Outcome
from rtmeter.results import store
from rtmeter.results.record import CellRecord


def source_of(cell: Cell) -> Source:
    """What measures the cell; asked nowhere else."""
    if is_attached(cell):
        return ByAttaching(cell)
    if cell.config["measurement"] == "chain":
        return ByChain(cell)
    if cell.config["measurement"] == "discovery":
        return ByDiscovery(cell)
    return ByCyclictest(cell) if cell.adapter == CYCLICTEST else ByProbes(cell)


def need_the_machine(cells: Iterable[Cell]) -> bool:
    """Whether one of the cells is measured here in real time, or changes this machine."""
    asked = [cell for cell in cells if TARGET not in cell.hosts]
    if any(_changes_the_machine(cell.conditions) for cell in asked):
        return True
    one_each = {(cell.adapter, cell.server_adapter): cell for cell in asked}
    return any(source_of(cell).real_time for cell in one_each.values())


def _changes_the_machine(conditions: Mapping[str, Any]) -> bool:
    """Whether more is asked than that it be idle."""
    asked = conditions.keys() & {"settings", "traffic", "server", "explain"}
    return bool(asked or workers(conditions.get("load", {})))


def run_cell(
    cell: Cell,
    path: Path,
    stop: Stop,
    on_progress: OnProgress,
    *,
    keep_empty: bool = True,
    source: Source | None = None,
    recording: conditions.SharedRecording | None = None,
) -> CellRecord:
    """Measures the cell and stores it at ``path``; returns its record.

    A run that fails is stored as failed, with whatever it measured; unless ``keep_empty``, not if that
    is nothing. One whose adapter is not built here is stored as skipped. ``source``: where it is another than
    source_of(); ``recording``: the one that it makes for several cells. Raises RtmeterError only if the
    result cannot be written: what there is of it is then in ``<path>.partial``.
    """
    new = store.NewCell(path)
    stop.keeping = False
    source = source or source_of(cell)
    ran = Ran(datetime.now(UTC), None)
    standing: conditions.Standing | None = None
    shift_ns, off, told_ns = None, None, None  # of a target's clock
    try:
        source.prepare()
        with machine_of(cell) as root:
            own = machine_id(root)
            ran = replace(ran, machine_id=own, server_machine_id=own)
            endured = conditions.applied(
                cell, new.folder, root, real_time=source.real_time, recording=recording
            )
            with store.writing(new.folder), endured as standing:
                ran = _looked(ran, cell, standing)
                if TARGET in cell.hosts:
                    told_ns, off = uptime_shift_ns(root), clock_doubt(root)
                outcome = source.run(new.folder, stop, on_progress, standing)
                shift_ns = told_ns  # else the rows may not be whole
        outcome = _under(standing, outcome)
    except NotBuiltError as error:
        outcome = Outcome("skipped", error)
    except RtmeterError as error:
        outcome = Outcome("failed", error)
        outcome = _under(standing, outcome) if standing else outcome  # what could not be taken back is told
    outcome = replace(outcome, warnings=(*outcome.warnings, *([off] if off else [])))
    stop.keeping = True
    ran = replace(ran, ended=datetime.now(UTC), conditions=standing.facts() if standing else None)
    try:
        record = source.record(outcome, new.folder, ran)
        if shift_ns is not None:
            by_the_clock_of(record, new.folder / MONITOR, shift_ns)
        tidy(new.folder, keep_logs=cell.keep_log or record.status == "failed" or not record.valid)
        record = heard(record, new.folder)
        if keep_empty or record.summary or (new.folder / store.STDERR).exists():
            record = new.finish(record)
        else:
            new.discard()
    except RtmeterError as error:
        if (log := new.folder / store.CLIENT_LOG).exists():
            error.remedy = f"free space there, then run: rtmeter recover {log}"
        raise
    return record


def _looked(ran: Ran, cell: Cell, standing: conditions.Standing) -> Ran:
    """What the machines of both ends have wrong, under the conditions that stand."""
    ran = replace(ran, findings=_findings(standing.root, machine.intent_of(cell)))
    if standing.server_root is None:
        return ran
    found = _findings(standing.server_root, machine.server_intent_of(cell))
    return replace(ran, server_findings=found, server_machine_id=machine_id(standing.server_root))


def _findings(root: Root, intent: machine.Intent) -> list[dict[str, Any]]:
    return [finding.to_json() for finding in machine.findings(root, intent)]


def _under(standing: conditions.Standing, outcome: Outcome) -> Outcome:
    """The outcome with what its conditions make of it."""
    warnings = (*outcome.warnings, *standing.doubts())
    failure = outcome.error or standing.failure()
    return replace(outcome, status="failed" if failure else outcome.status, error=failure, warnings=warnings)
