"""The model of run.json."""

from __future__ import annotations

from typing import Literal

from rtmeter.results.record.parts import RecordPart, RigOfRun

RUN_FORMAT = "rtmeter-run"
RUN_VERSION: Literal[2] = 2


class RunRecord(RecordPart):
    """A run: which cells it was to measure, in order, and what it was started with. ``ended`` is None while
    it goes on, or if it was killed; ``host``: where the servers of round trips ran, if not here;
    ``machine_id``: which machine measured it (rtmeter.host.identity), None where that is not known;
    ``rigs``: of a run on many machines, those."""

    format: Literal["rtmeter-run"] = "rtmeter-run"
    version: Literal[2] = RUN_VERSION
    campaign: str
    description: str
    started: str
    ended: str | None
    cells: list[str]
    scale: float
    host: str | None
    machine_id: str | None = None
    rigs: dict[str, RigOfRun] | None = None
    rtmeter: str
