"""What stands for the source of a cell that is known to fail."""

from __future__ import annotations

from pathlib import Path

from rtmeter.conditions import Standing
from rtmeter.errors import RtmeterError
from rtmeter.measure.probe.supervise import OnProgress, Stop
from rtmeter.measure.source import Ran, Source
from rtmeter.model import Outcome
from rtmeter.results.record import CellRecord


class Refused:
    """A Source that says why before anything is tried."""

    def __init__(self, source: Source, error: RtmeterError) -> None:
        self._source, self._error = source, error

    @property
    def programs(self) -> list[str]:
        return self._source.programs

    @property
    def real_time(self) -> bool:
        return self._source.real_time

    def check(self) -> None:
        raise self._error

    def prepare(self) -> None:
        raise self._error

    def run(self, folder: Path, stop: Stop, on_progress: OnProgress, standing: Standing) -> Outcome:
        raise self._error

    def record(self, outcome: Outcome, folder: Path, ran: Ran) -> CellRecord:
        return self._source.record(outcome, folder, ran)
