"""Cells of a chain: the source (source.py) that runs its stages over processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rtmeter.conditions import Standing
from rtmeter.measure import probes
from rtmeter.measure.chain_processes import processes_of
from rtmeter.measure.chain_record import record_chain
from rtmeter.measure.chain_run import log_of, run_chain
from rtmeter.measure.source import Ran
from rtmeter.measure.supervise import OnProgress, Stop
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

        return run_chain(self._cell, self._probe, folder, stop, heed, standing.launchers)

    def record(self, outcome: Outcome, folder: Path, ran: Ran) -> CellRecord:
        processes = processes_of(self._cell.config, together=self._probe.scripted)
        logs = {process: log_of(folder, process) for process in processes}
        return record_chain(self._cell, outcome, logs, folder, ran)
