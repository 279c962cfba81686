"""Cells that several processes of one adapter measure together: what their sources (source.py) have alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from rtmeter.conditions import Standing
from rtmeter.conditions.target import target_of
from rtmeter.host.root import Root
from rtmeter.measure.probe import given_options, polling, probes
from rtmeter.measure.probe.places import There
from rtmeter.measure.probe.supervise import OnProgress, Stop
from rtmeter.measure.probe.together import Team, run_together
from rtmeter.measure.source import Ran
from rtmeter.model import Cell, Measurement, Outcome
from rtmeter.results.record import CellRecord


class ByTeam(ABC):
    """The source of a cell that measures ``measurement``."""

    measurement: ClassVar[Measurement]

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
        return probes.require(self._cell.adapter, self.measurement)

    def check(self) -> None:
        self._check(Root() if target_of(self._cell) is None else None)

    def _check(self, root: Root | None) -> None:
        """``root``: of the machine that it runs on, if that can be looked at."""
        probe = self._probe
        given_options.check(self._cell, probe, None)
        if root is not None:
            polling.check(self._cell, probe, None, root, alike=len(self.team().members))

    def prepare(self) -> None:
        self.check()
        if (target := target_of(self._cell)) is not None:
            There(target).look(self._probe)

    def run(self, folder: Path, stop: Stop, on_progress: OnProgress, standing: Standing) -> Outcome:
        self._check(standing.root)
        heed = standing.checked_at(on_progress)
        return run_together(self._cell, self._probe, self.team(), folder, stop, heed, standing)

    @abstractmethod
    def team(self) -> Team:
        """The processes; a single one on a scripted clock."""

    @abstractmethod
    def record(self, outcome: Outcome, folder: Path, ran: Ran) -> CellRecord:
        """As Source has it."""
