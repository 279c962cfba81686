"""A cell → what measured it, and the cell.json of what that left: the interface of all sources, as cell.py
sees it, and what they have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from rtmeter.conditions import Standing
from rtmeter.measure.probe.supervise import OnProgress, Stop
from rtmeter.model import Outcome
from rtmeter.results.record import CellRecord


@dataclass(frozen=True, slots=True)
class Ran:
    """What is known of a run beside its data.

    ``conditions``: what was asked of the machine and what became of it; ``findings``: what it had wrong
    before; ``server_findings``: what the server's had, if that is another one; ``machine_id`` and
    ``server_machine_id``: which machines they are (rtmeter.host.identity); None where that is not known.
    """

    started: datetime
    ended: datetime | None
    conditions: Mapping[str, Any] | None = None
    findings: list[dict[str, Any]] | None = None
    server_findings: list[dict[str, Any]] | None = None
    machine_id: str | None = None
    server_machine_id: str | None = None


class Source(Protocol):
    """What measures one cell: asked whether it can, run under the cell's conditions, its data then stored."""

    @property
    def programs(self) -> list[str]:
        """What it starts, in a user's words."""

    @property
    def real_time(self) -> bool:
        """Whether the machine must be its own meanwhile; not if nothing of it is measured."""

    def check(self) -> None:
        """Raises RtmeterError if the cell cannot be measured here, NotBuiltError if its source is missing."""

    def prepare(self) -> None:
        """As check(); looks at the other host as well, if one takes part."""

    def run(self, folder: Path, stop: Stop, on_progress: OnProgress, standing: Standing) -> Outcome:
        """Measures, while the conditions stand; what was measured is then in ``folder``, and nothing runs on.

        Raises RtmeterError for a run that failed.
        """

    def record(self, outcome: Outcome, folder: Path, ran: Ran) -> CellRecord:
        """The cell.json of what is in ``folder``, whatever became of the run; writes its data there.

        Raises RtmeterError if that cannot be written.
        """
