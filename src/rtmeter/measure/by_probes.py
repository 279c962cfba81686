"""Cells that probes measure: one of the adapter, and where another answers one more, the server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rtmeter.conditions import Standing
from rtmeter.conditions.target import target_of
from rtmeter.errors import RtmeterError
from rtmeter.host.ssh import Ssh
from rtmeter.measure.probe import beside, given_options, polling, probes, wires
from rtmeter.measure.probe.places import There
from rtmeter.measure.probe.supervise import OnProgress, Stop, run_probes
from rtmeter.measure.source import Ran
from rtmeter.measure.source.record import Logs, record_cell
from rtmeter.model import LOCAL, TWO_ENDS, Cell, Outcome
from rtmeter.results.record import CellRecord


class ByProbes:
    """The source (source.py) of a cell with an adapter."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    @property
    def programs(self) -> list[str]:
        names = (self._cell.adapter, self._cell.server_adapter)
        found = [f"the probe of {name}" for name in names if name is not None]
        return found + [f"{name} = {count}" for name, count in beside.asked(self._cell.config).items()]

    @property
    def real_time(self) -> bool:
        names = [name for name in (self._cell.adapter, self._cell.server_adapter) if name is not None]
        found = [(name, probes.path_of(name)) for name in names]
        return any(path is None or not probes.describe(name, path).scripted for name, path in found)

    def check(self) -> None:
        found = probes_for(self._cell)
        given_options.check(self._cell, *found)
        if target_of(self._cell) is None:
            polling.check(self._cell, *found)

    def prepare(self) -> None:
        self.check()
        if (target := target_of(self._cell)) is not None:
            for probe in dict.fromkeys(probe.name for probe in probes_for(self._cell) if probe):
                There(target).look(probes.find(probe))
            return
        host = self._cell.hosts.get("component", LOCAL)
        server = None if host == LOCAL else probes_for(self._cell)[1]
        if server is not None:
            There(Ssh(host, "hosts.component")).look(server)

    def run(self, folder: Path, stop: Stop, on_progress: OnProgress, standing: Standing) -> Outcome:
        found, heed = probes_for(self._cell), standing.checked_at(on_progress)
        if target_of(self._cell) is not None:
            polling.check(self._cell, *found, standing.root)
        return run_probes(self._cell, *found, folder, stop, heed, standing.launchers)

    def record(self, outcome: Outcome, folder: Path, ran: Ran) -> CellRecord:
        return record_cell(self._cell, outcome, Logs.of(folder), folder, ran)


def probes_for(cell: Cell) -> tuple[probes.Probe, probes.Probe | None]:
    """The probe that measures the cell, and the one of its server process if it needs one.

    Raises RtmeterError if one is not there, or cannot do it.
    """
    measurement = cell.config["measurement"]
    probe = probes.require(
        cell.adapter, f"timer.{cell.config['mode']}" if measurement == "timer" else measurement
    )
    if measurement not in TWO_ENDS:
        return probe, None
    if cell.config.get("kernel_stamps") and measurement not in probe.facts.get("kernel_stamps", ()):
        message = f"cannot be had of the adapter {cell.adapter}, which does not tell of them"
        remedy = "leave it out, or choose posix with transport udp"
        raise RtmeterError(message, field="kernel_stamps", value=True, remedy=remedy)
    host = cell.hosts.get("component", LOCAL)
    if not probe.serves_inline(cell.config.get("options", {})):
        if host != LOCAL and probe.same_host:
            message = f"is out of reach of the adapter {cell.adapter}, which shares memory with its server"
            remedy = "leave it out, or choose an adapter that uses the network"
            raise RtmeterError(message, field="hosts.component", value=host, remedy=remedy)
        other = cell.server_adapter not in (None, cell.adapter)
        server = _of_server(str(cell.server_adapter), probe, measurement) if other else probe
        if host != LOCAL:
            _check_reach("options", cell.config.get("options", {}), probe)
            _check_reach("server_options", cell.server_options or {}, server)
        options = cell.server_options if cell.server_options is not None else {} if other else _options(cell)
        beside.check(cell, server, inline=False, options=options)
        return probe, server
    beside.check(cell, probe, inline=True, options=_options(cell))
    for field in ("server_adapter", "server_cpus", "server_options", "server_receive"):
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


def _of_server(name: str, client: probes.Probe, measurement: str) -> probes.Probe:
    """The probe of a server's own adapter. Raises RtmeterError if there is none, or not for this client."""
    try:
        server = probes.require(name, measurement)
    except RtmeterError as error:
        error.field = "server_adapter"
        raise
    wires.check(client, server, measurement)
    return server


def _options(cell: Cell) -> Mapping[str, str]:
    given: Mapping[str, str] = cell.config.get("options", {})
    return given


def _check_reach(field: str, given: Mapping[str, str], probe: probes.Probe) -> None:
    """Raises RtmeterError for an option with which the probe reaches its own host only."""
    for option, values in probe.same_host_options.items():
        if given.get(option) in values:
            about = probe.facts.get("option", {}).get(option, "")
            others = [value for value in about.partition(":")[0].split("|") if value not in values]
            remedy = f"choose {' or '.join(others)}" if others else "leave it out"
            message = "does not reach another host"
            raise RtmeterError(message, field=f"{field}.{option}", value=given[option], remedy=remedy)
