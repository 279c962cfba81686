"""cell.json as the report reads it (spec/results.md): what a type is wrong for is damage, not a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from rtmeter.errors import RtmeterError
from rtmeter.model import Measurement
from rtmeter.results import store
from rtmeter.statistics.order import shown
from rtmeter.values import harmless

Nanoseconds = Annotated[int, Field(gt=0, lt=2**56)]
"""A duration of a setting; at most two years."""

Time = int | float | Literal["lost"] | None
"""Nanoseconds; ``lost`` where a statistic falls on a lost release; None where there is none."""


def _empty_if_null(value: object) -> object:
    return {} if value is None else value


def _nothing_if_null(value: object) -> object:
    return [] if value is None else value


Facts = Annotated[dict[str, Any], BeforeValidator(_empty_if_null), Field(default_factory=dict)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Doubt(_Part):
    """A warning stored with the data."""

    type: str
    message: str
    hint: str = ""


class Failure(_Part):
    """Why a cell failed."""

    message: str
    field: str | None = None
    value: str | None = None
    remedy: str | None = None


class Asked(_Part):
    """The requirement."""

    deadline_ns: Nanoseconds
    miss_ratio: float | None = Field(default=None, gt=0, lt=1)
    confidence: float = Field(default=0.95, gt=0, lt=1)


class Found(_Part):
    """What the machine had wrong when the cell was measured (rtmeter.machine.Finding)."""

    id: str
    grade: str
    value: str
    why: str = ""
    source: str = ""
    fix: str = ""


class GateFinding(_Part):
    """What a gate saw in the data (rtmeter.model.Finding)."""

    type: str
    consequence: str = "info"
    message: str = ""
    at: list[int] = Field(default_factory=list)


class Support(_Part):
    """What of a verdict's support the report uses."""

    rhythm_s: float | None = Field(default=None, gt=0)
    upper: float | None = Field(default=None, ge=0, le=1)
    design_effect: float = Field(default=1.0, ge=1)
    findings: list[GateFinding] = Field(default_factory=list)


class Judged(_Part):
    """The verdict; ``upper`` is the bound of independent misses."""

    outcome: Literal["pass", "fail", "inconclusive", "error"]
    reason: str
    n: int = 0
    misses: int = 0
    misses_between: tuple[int, int] | None = None
    late: int = 0
    skipped: int = 0
    lost: int = 0
    upper: float | None = Field(default=None, ge=0, le=1)
    more_samples: int | None = None
    support: Support | None = None

    @property
    def missed(self) -> str:
        """How many missed, in words; of data without single values between how many."""
        least, most = self.misses_between or (self.misses, self.misses)
        return f"{most:,}" if least == most else f"{least:,} to {most:,}"

    @property
    def bound(self) -> float | None:
        """The upper bound of the miss ratio that may be stated; None where there is none."""
        return self.support.upper if self.support else self.upper

    @property
    def design_effect(self) -> float:
        """How many releases count as one."""
        return self.support.design_effect if self.support else 1.0


class Statistics(_Part):
    """One view of a quantity, nanoseconds."""

    n: int
    min_ns: Time = None
    mean_ns: Time = None
    stddev_ns: Time = None
    p50_ns: Time = None
    p99_ns: Time = None
    p99_9_ns: Time = None
    p99_999_ns: Time = None
    max_ns: Time = None
    max_at_k: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_quantiles_of_too_few(cls, given: Any) -> Any:
        return shown(given) if isinstance(given, dict) and isinstance(given.get("n"), int) else given


class Summary(_Part):
    """Counts, identity and quantities by name and view."""

    counts: dict[str, int | None] = Field(default_factory=dict)
    identity: str = ""
    quantities: dict[str, dict[str, Statistics | None]] = Field(default_factory=dict)


class Config(BaseModel):
    """The probe config: what the report computes with, and all the rest."""

    model_config = ConfigDict(extra="allow", frozen=True)

    period_ns: Nanoseconds | None = None
    timeout_ns: Nanoseconds | None = None
    deadline_ns: Nanoseconds | None = None
    warm_up: int = Field(default=0, ge=0, lt=2**48)
    quantity: str | None = None
    in_flight: str | None = None


class CellFile(_Part):
    """A cell.json."""

    format: Literal["rtmeter-cell"]
    version: int
    id: str
    status: Literal["complete", "interrupted", "failed", "skipped"]
    valid: bool
    error: Failure | None = None
    measurement: Measurement | Literal["imported"]
    mode: Literal["one_shot", "periodic"] | None = None
    adapter: str
    server_adapter: str | None = None
    axes: Facts
    config: Config = Config()
    requirement: Asked | None = None
    effective: Facts
    threads: Annotated[dict[str, list[dict[str, Any]]], BeforeValidator(_empty_if_null)] = Field(
        default_factory=dict
    )
    usage: Facts
    instrument: Facts
    counters: Facts
    second_topic: Facts
    path: Facts
    grid: Facts
    adapter_facts: Facts
    conditions: Facts
    imported: Facts
    machine: Facts
    server_machine: Facts
    clock: Facts
    clock_offset: Facts
    warnings: list[Doubt] = Field(default_factory=list)
    findings: Annotated[list[Found], BeforeValidator(_nothing_if_null)] = Field(default_factory=list)
    server_findings: Annotated[list[Found], BeforeValidator(_nothing_if_null)] = Field(default_factory=list)
    missing: list[tuple[int, int | None]] = Field(default_factory=list)
    summary: Summary | None = None
    verdict: Judged | None = None
    started: str | None = None
    ended: str | None = None
    rtmeter: str | None = None

    @property
    def factors(self) -> dict[str, Any]:
        """The axes of its campaign, and the adapter, also where the campaign does not vary it in a list."""
        return self.axes if "adapter" in self.axes else {"adapter": self.adapter} | self.axes

    @model_validator(mode="after")
    def _has_its_times(self) -> Self:
        if self.measurement == "timer" and self.mode is None:
            raise ValueError("a timer cell needs a mode")
        told = self.status in ("failed", "skipped") or self.measurement == "imported"
        if self.tick_ns is None and not told:
            raise ValueError("the config has neither period_ns nor timeout_ns")
        return self

    @property
    def tick_ns(self) -> int | None:
        """The period, or a one-shot's timeout."""
        shot = self.config.timeout_ns if self.mode == "one_shot" else None
        return shot or self.config.period_ns

    @property
    def meta(self) -> dict[str, Any]:
        """What rtmeter.statistics asks of a cell."""
        keys = ("period_ns", "timeout_ns", "deadline_ns", "in_flight", "warm_up", "quantity")
        clock = dict(self.adapter_facts).get("reported_clock", "monotonic")
        about = {"measurement": self.measurement, "mode": self.mode, "reported_clock": clock}
        about["t0_from"] = dict(self.grid).get("t0_from")
        return about | {key: getattr(self.config, key) for key in keys}

    @property
    def deadline_ns(self) -> int | None:
        """The deadline that plots show: that of the requirement, else the one configured."""
        return self.requirement.deadline_ns if self.requirement else self.config.deadline_ns


def _harmless(content: bytes) -> bytes:
    """Without what a terminal would heed; as it is if it is no JSON, which its model says then."""
    if content.isascii() and b"\\u" not in content:
        return content
    try:
        return json.dumps(harmless(json.loads(content))).encode()
    except (ValueError, RecursionError):
        return content


def read_cell_file(path: Path) -> CellFile:
    """The cell.json at ``path``; RtmeterError if it cannot be read, is damaged or of another version."""
    remedy = "measure the cell again, or recover its probe.rtlog (rtmeter recover)"
    try:
        cell = CellFile.model_validate_json(_harmless(path.read_bytes()))
    except OSError as error:
        raise RtmeterError(f"cannot be read: {error.strerror}", where=path.name, remedy=remedy) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or None
        raise RtmeterError(
            first["msg"].removeprefix("Value error, "), where=path.name, field=field, remedy=remedy
        ) from error
    if cell.version != store.VERSION:
        raise RtmeterError(
            f"is of version {cell.version}, and this rtmeter reads version {store.VERSION}",
            where=path.name,
            remedy="use the rtmeter that wrote it, or a later one",
        )
    return cell
