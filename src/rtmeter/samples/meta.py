"""What a probe says of its run in the JSON of its sample log (spec/probe.md), checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rtmeter.errors import RtmeterError
from rtmeter.model import Doubt, Measurement

_RUN_KEYS = ("version", "role", "log", "session", "offered", "watch_stdin")
"""Of a config: the run's, not the cell's."""

MapOrNull = Annotated[dict[str, Any], BeforeValidator(lambda value: {} if value is None else value)]


class LogMeta(BaseModel):
    """The keys of header, updates and end frame that the front goes by; a null stands for nothing."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    measurement: Measurement | Literal["own_loop"] = "wakeup"
    mode: Literal["one_shot", "periodic"] | None = None
    outcome: Literal["complete", "interrupted", "failed"] | None = None
    error: dict[str, Any] | None = None
    config: MapOrNull = Field(default_factory=dict)
    adapter: MapOrNull = Field(default_factory=dict)
    effective: MapOrNull = Field(default_factory=dict)
    usage: MapOrNull = Field(default_factory=dict)
    instrument: MapOrNull = Field(default_factory=dict)
    counters: dict[str, int] = Field(default_factory=dict)
    grid: MapOrNull = Field(default_factory=dict)
    ticks: str | None = None
    second_topic: dict[str, Any] | None = None
    heard: list[dict[str, Any]] = Field(default_factory=list)
    heard_of: list[dict[str, Any]] = Field(default_factory=list)
    published: dict[str, Any] | None = None
    path: MapOrNull = Field(default_factory=dict)
    machine: MapOrNull = Field(default_factory=dict)
    clock: MapOrNull = Field(default_factory=dict)
    realtime_clock: MapOrNull = Field(default_factory=dict)
    shared_clock: MapOrNull = Field(default_factory=dict)
    threads: list[dict[str, Any]] = Field(default_factory=list)
    warnings: list[Doubt] = Field(default_factory=list)

    @classmethod
    def of(cls, meta: dict[str, Any], log: Path) -> Self:
        """Raises RtmeterError naming the log if a key is of another kind."""
        try:
            return cls.model_validate(meta)
        except ValidationError as error:
            first = error.errors()[0]
            raise RtmeterError(
                f"is not what a probe writes: {first['msg'].lower()}",
                field=".".join(map(str, first["loc"])),
                value=first["input"],
                where=str(log),
                remedy="the probe that wrote it does not follow spec/probe.md",
            ) from None

    @property
    def cell_config(self) -> dict[str, Any]:
        """The config without what is the run's own."""
        return {key: value for key, value in self.config.items() if key not in _RUN_KEYS}
