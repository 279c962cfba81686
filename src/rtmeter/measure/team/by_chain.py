"""Cells of a chain: the source (source.py) that runs its stages over processes."""

from __future__ import annotations

from pathlib import Path

from rtmeter.campaign.chain_option import graph_of
from rtmeter.measure.probe.together import Member, Team, log_of
from rtmeter.measure.source import Ran
from rtmeter.measure.team.by_team import ByTeam
from rtmeter.measure.team.chain_processes import (
    ChainProcess,
    drain_ns,
    probe_config,
    processes_of,
    quiet_ns,
)
from rtmeter.measure.team.chain_record import record_chain
from rtmeter.model import Outcome
from rtmeter.results.record import CellRecord


class ByChain(ByTeam):
    """The source of a cell that measures a chain."""

    measurement = "chain"

    def _processes(self) -> list[ChainProcess]:
        return processes_of(self._cell.config, together=self._probe.scripted)

    def team(self) -> Team:
        config = self._cell.config
        judged = config["graph"]["judged"][0]
        members = [
            Member(one.name, probe_config(config, one), one.has_source, judged in one.stages)
            for one in self._processes()
        ]
        graph = graph_of(config)
        planned_ns = (config["warm_up"] + config["samples"]) * config["period_ns"] + drain_ns(config, graph)
        planned_ns += max(source.offset_ns for source in graph.sources)
        return Team(members, quiet_ns(config, graph), planned_ns, drain_ns(config, graph))

    def record(self, outcome: Outcome, folder: Path, ran: Ran) -> CellRecord:
        logs = {process: log_of(folder, process.name) for process in self._processes()}
        return record_chain(self._cell, outcome, logs, folder, ran)
