"""Cells of a discovery: the source (source.py) that runs a process for each participant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rtmeter.conditions import Standing
from rtmeter.measure import probes
from rtmeter.measure.discovery_record import record_discovery
from rtmeter.measure.source import Ran
from rtmeter.measure.supervise import OnProgress, Stop
from rtmeter.measure.together import Member, Team, log_of, run_together
from rtmeter.model import Cell, Outcome
from rtmeter.results.record import CellRecord

_OF_THE_CELL = ("participants", "others", "deadline_ns")


class ByDiscovery:
    """The source of a cell that measures a discovery."""

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
        return probes.require(self._cell.adapter, "discovery")

    def check(self) -> None:
        probes.require(self._cell.adapter, "discovery")

    def prepare(self) -> None:
        self.check()

    def run(self, folder: Path, stop: Stop, on_progress: OnProgress, standing: Standing) -> Outcome:
        def heed(event: dict[str, Any]) -> None:
            standing.check()
            on_progress(event)

        members = members_of(self._cell.config, together=self._probe.scripted)
        config = self._cell.config
        planned_ns = (config["warm_up"] + config["samples"] + 1) * config["period_ns"]
        team = Team(members, config["period_ns"], planned_ns)
        return run_together(self._cell, self._probe, team, folder, stop, heed, standing.launchers)

    def record(self, outcome: Outcome, folder: Path, ran: Ran) -> CellRecord:
        names = [member.name for member in members_of(self._cell.config, together=self._probe.scripted)]
        logs = {name: log_of(folder, name) for name in names}
        return record_discovery(self._cell, outcome, logs, folder, ran)


def members_of(config: dict[str, Any], *, together: bool) -> list[Member]:
    """A process for each participant, the one that joins the others last; ``together``: one for all, as on a
    scripted clock. All end by themselves."""
    own = {key: value for key, value in config.items() if key not in _OF_THE_CELL}
    own |= {"version": 1, "role": "single", "watch_stdin": True}
    asked = {key: config[key] for key in ("participants", "others")}
    if together:
        return [Member("all", own | {"discovery": asked}, shows=True)]
    last = config["participants"] - 1
    return [
        Member(f"p{number}", own | {"discovery": asked | {"participant": number}}, shows=number == last)
        for number in range(last + 1)
    ]
