"""Cells of a chain: the source (source.py) that runs its stages over processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rtmeter.campaign.chain_option import graph_of
from rtmeter.conditions import Standing
from rtmeter.measure import probes
from rtmeter.measure.chain_processes import drain_ns, probe_config, processes_of
from rtmeter.measure.chain_record import record_chain
from rtmeter.measure.source import Ran
from rtmeter.measure.supervise import OnProgress, Stop
from rtmeter.measure.together import Member, Team, log_of, run_together
from rtmeter.model import Cell, Outcome
from rtmeter.results.record import CellRecord


class ByChain:
    """The source of a cell that measures a chain."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    @property
    def programs(self) -> list[str]:
        return [f"the probe of {self._cell.adapter}"]

    @property
    def real_time(self) -> bool:
        return not self._probe.scripted

    @property
    def _probe(self) -> probes.Probe:
        return probes.require(self._cell.adapter, "chain")

    def check(self) -> None:
        probes.require(self._cell.adapter, "chain")

    def prepare(self) -> None:
        self.check()

    def run(self, folder: Path, stop: Stop, on_progress: OnProgress, standing: Standing) -> Outcome:
        def heed(event: dict[str, Any]) -> None:
            standing.check()
            on_progress(event)

        config, probe = self._cell.config, self._probe
        judged = config["graph"]["judged"][0]
        members = [
            Member(one.name, probe_config(config, one), one.has_source, judged in one.stages)
            for one in processes_of(config, together=probe.scripted)
        ]
        graph = graph_of(config)
        slowest_ns = max(source.period_ns or 0 for source in graph.sources)
        planned_ns = (config["warm_up"] + config["samples"]) * config["period_ns"] + drain_ns(config, graph)
        team = Team(members, slowest_ns, planned_ns)
        return run_together(self._cell, probe, team, folder, stop, heed, standing.launchers)

    def record(self, outcome: Outcome, folder: Path, ran: Ran) -> CellRecord:
        processes = processes_of(self._cell.config, together=self._probe.scripted)
        logs = {process: log_of(folder, process.name) for process in processes}
        return record_chain(self._cell, outcome, logs, folder, ran)
