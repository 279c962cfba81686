"""Parts of a cell.json whose keys are all known."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

from rtmeter.errors import RtmeterError
from rtmeter.model import Rig
from rtmeter.results.record.maps import Facts, ThreadFacts


class RecordPart(BaseModel):
    """A part whose keys are all known."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    def changed(self, **changes: Any) -> Self:
        """The same with other values, checked again."""
        return self.model_validate(dict(self) | changes)


class Failure(RecordPart):
    """Why a cell failed, or was skipped."""

    field: str | None
    value: str | None
    message: str
    remedy: str | None
    where: str | None

    @classmethod
    def of(cls, error: RtmeterError) -> Self:
        """As it is stored."""
        return cls.model_validate(error.to_json())

    @property
    def as_error(self) -> RtmeterError:
        """As it was raised."""
        return RtmeterError.from_json(self.model_dump())


class MachineFinding(RecordPart):
    """What the machine had wrong when the cell was measured (docs/check.md)."""

    id: str
    grade: Literal["fatal", "high", "unknown", "medium", "info"]
    value: str
    why: str
    source: str
    fix: str
    at_worst: Literal["fatal", "high", "unknown", "medium", "info"]
    items: list[Facts]


class Provenance(RecordPart):
    """What an imported cell was made of; ``unknown`` names what the file does not say."""

    file: str
    sha256: str
    tool: str
    version: str | None
    verified: bool
    quantity: str
    series: str
    data: Literal["samples", "histogram", "intervals"]
    unit: str | None
    period_from: Literal["file", "--period"] | None
    facts: Facts
    unknown: list[str]


class JudgedBy(RecordPart):
    """What the stored verdict was made of: the statistics that judged, by a hash of them, and the size in
    bytes of each file of data."""

    statistics: str
    data: dict[str, int]


class Threads(RecordPart):
    """The threads of both processes."""

    client: list[ThreadFacts]
    server: list[ThreadFacts]

    def items(self) -> list[tuple[str, list[ThreadFacts]]]:
        """(process, its threads)."""
        return [("client", self.client), ("server", self.server)]


class RigOfCell(RecordPart):
    """Which of many machines a cell was measured on (docs/rigs.md), and its labels."""

    name: str
    labels: dict[str, str]

    @classmethod
    def of(cls, rig: Rig | None) -> Self | None:
        """As it is stored; None on a machine alone."""
        return None if rig is None else cls(name=rig.name, labels=rig.labels)


class RigOfRun(RecordPart):
    """One of many machines of a run: where it was, its labels, what it had in place of the campaign's
    options, and the place of labgrid that it is."""

    address: str
    labels: dict[str, str]
    set: dict[str, Any]
    place: str | None
