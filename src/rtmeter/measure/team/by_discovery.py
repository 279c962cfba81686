"""Cells of a discovery: the source (source.py) that runs a process for each participant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rtmeter.measure.probe.together import Member, Team, log_of
from rtmeter.measure.source import Ran
from rtmeter.measure.team.by_team import ByTeam
from rtmeter.measure.team.discovery_record import record_discovery
from rtmeter.model import Outcome
from rtmeter.results.record import CellRecord

_OF_THE_CELL = ("participants", "others", "deadline_ns")


class ByDiscovery(ByTeam):
    """The source of a cell that measures a discovery."""

    measurement = "discovery"

    def _members(self) -> list[Member]:
        return members_of(self._cell.config, together=self._probe.scripted)

    def team(self) -> Team:
        config = self._cell.config
        planned_ns = (config["warm_up"] + config["samples"] + 1) * config["period_ns"]
        quiet_ns = config["loss_timeout_ns"] + 11 * config["period_ns"]
        return Team(self._members(), quiet_ns, planned_ns)

    def record(self, outcome: Outcome, folder: Path, ran: Ran) -> CellRecord:
        logs = {member.name: log_of(folder, member.name) for member in self._members()}
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
