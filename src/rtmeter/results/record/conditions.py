"""The key ``conditions`` of a cell.json."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from rtmeter.results.record.maps import OPEN, Facts


class InEffect(TypedDict, total=False):
    """What was in effect of what was asked of a machine."""

    __pydantic_config__ = OPEN  # type: ignore[misc]
    settings: dict[str, Facts]
    load: Facts | None
    traffic: Facts | None


class HostConditions(TypedDict):
    """What was asked of a host, what was in effect and what was achieved; ``left_out``: setting → why."""

    asked: dict[str, Any]
    effective: InEffect
    achieved: dict[str, Facts | None]
    left_out: NotRequired[dict[str, str]]


class ServerConditions(HostConditions):
    """The same of the server's host."""

    host: str
    same_machine: bool


class Conditions(HostConditions):
    """What was asked of the machine, or of both."""

    server: NotRequired[ServerConditions]
