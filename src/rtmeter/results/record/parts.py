"""The parts of a cell.json. What a probe, a tool or a machine says in keys of its own stays a map; of such a
map the keys that are read are typed, and any others are kept."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from typing_extensions import TypedDict

from rtmeter.campaign.published.asked import CONDITIONS
from rtmeter.errors import RtmeterError

Nanoseconds = Annotated[int, Field(gt=0, lt=2**56)]
"""A duration of a setting; at most two years."""

Facts = dict[str, Any]
"""A map of somebody's own words."""

_OPEN = ConfigDict(extra="allow")


class Part(BaseModel):
    """A part whose keys are all known."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def changed(self, **changes: Any) -> Self:
        """The same with other values, checked again."""
        return self.model_validate(dict(self) | changes)


class Failure(Part):
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


class MachineFinding(Part):
    """What the machine had wrong when the cell was measured (docs/check.md)."""

    id: str
    grade: Literal["fatal", "high", "unknown", "medium", "info"]
    value: str
    why: str
    source: str
    fix: str
    at_worst: Literal["fatal", "high", "unknown", "medium", "info"]
    items: list[Facts]


class Provenance(Part):
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


class SchedulingFacts(TypedDict):
    """A scheduling policy as the probe config has it."""

    policy: str
    priority: NotRequired[int | None]
    runtime_ns: NotRequired[int | None]
    deadline_ns: NotRequired[int | None]
    period_ns: NotRequired[int | None]


class Thread(TypedDict, total=False):
    """A thread of a probe, as its audit has it (spec/probe.md)."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    tid: int
    name: str
    role: str
    policy: str
    priority: int | None
    runtime_ns: int | None
    deadline_ns: int | None
    period_ns: int | None
    cpus: list[int] | None
    timer_slack_ns: int | None


class Threads(Part):
    """The threads of both processes."""

    client: list[Thread]
    server: list[Thread]

    def items(self) -> list[tuple[str, list[Thread]]]:
        """(process, its threads)."""
        return [("client", self.client), ("server", self.server)]


class Axes(TypedDict, total=False):
    """What varies in the cell's campaign, by the name that it has there."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    repeat: int


class Config(TypedDict, total=False):
    """The probe config without the keys of a run (spec/probe.md); an imported cell has three of them."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    period_ns: Nanoseconds | None
    timeout_ns: Nanoseconds | None
    deadline_ns: Nanoseconds | None
    loss_timeout_ns: Nanoseconds | None
    samples: Annotated[int, Field(ge=0, lt=2**48)]
    warm_up: Annotated[int, Field(ge=0, lt=2**48)]
    quantity: str | None
    in_flight: str | None
    scheduling: SchedulingFacts
    cpus: list[int] | None


class Effective(TypedDict, total=False):
    """The settings as they were read back (spec/probe.md)."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    scheduling: SchedulingFacts
    cpus: list[int] | None
    apply: str | None
    overrun: str | None
    memory_locked: bool | None
    prefault_heap_bytes: int | None
    drive: str | None
    components: str | None


class MachineFacts(TypedDict, total=False):
    """What a machine says of itself (spec/probe.md)."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    hostname: str | None
    kernel: str | None
    kernel_version: str | None
    cpu_model: str | None
    cpus_online: int | None
    virtual_machine: str | bool | None


class Clock(TypedDict, total=False):
    """The clock of the stamps, and what others showed at one moment."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    id: str
    anchors: dict[str, int] | None


class Grid(TypedDict, total=False):
    """The grid of the releases."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    t0_ns: int | None
    period_ns: int | None
    t0_from: str | None


class AdapterFacts(TypedDict, total=False):
    """What an adapter says of itself and its middleware."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    middleware: str | None
    middleware_version: str | None
    reported_clock: str


class SecondTopic(TypedDict, total=False):
    """What one end saw of the second topic."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    sent: int
    refused: int
    received: int


class Carried(TypedDict):
    """Which way the messages of one end went."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
    carried_by: str


class ClockOffset(TypedDict):
    """The server's clock as the client's shows it."""

    same_clock: bool
    origin_ns: NotRequired[int | float]
    offset_ns: NotRequired[int | float]
    drift: NotRequired[int | float]
    error_ns: NotRequired[int | float]
    exchanges: NotRequired[int]


class InEffect(TypedDict, total=False):
    """What was in effect of what was asked of a machine."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]
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


def _known(condition: str) -> str:
    if condition not in CONDITIONS:
        raise ValueError(f"is no condition that a result can tell of: {condition}")
    return condition


class SourceCondition(TypedDict):
    """A condition of a published table's source (spec/campaign.md)."""

    condition: Annotated[str, AfterValidator(_known), WithJsonSchema({"enum": list(CONDITIONS)})]
    was: str
    where: dict[str, str]
    matches: NotRequired[str]
    least: NotRequired[int | float]


class KernelColumn(TypedDict):
    """The column of a published table that tells the kernel, and its values."""

    column: str
    preempt_rt: str
    ordinary: str


class PublishedRows(TypedDict):
    """Published values that the cell is to be set beside (spec/campaign.md)."""

    table: str
    where: dict[str, list[str]]
    kernel: NotRequired[KernelColumn]
    tables: list[str]
    values: dict[str, str]
    also: list[str]
    not_comparable: dict[str, str]
    note: NotRequired[str]
    conditions: list[SourceCondition]
    notes: list[str]
