"""Maps in a cell.json: what a probe, a tool or a machine says in keys of its own. The keys that are read are
typed; any others are kept."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

Nanoseconds = Annotated[int, Field(gt=0, lt=2**56)]
"""A duration of a setting; at most two years."""

Facts = dict[str, Any]
"""A map of somebody's own words."""

OPEN = ConfigDict(extra="allow")


class SchedulingFacts(TypedDict):
    """A scheduling policy as the probe config has it."""

    policy: str
    priority: NotRequired[int | None]
    runtime_ns: NotRequired[int | None]
    deadline_ns: NotRequired[int | None]
    period_ns: NotRequired[int | None]


class ThreadFacts(TypedDict, total=False):
    """A thread of a probe, as its audit has it (spec/probe.md)."""

    __pydantic_config__ = OPEN  # type: ignore[misc]
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


_REPEAT = {"type": "integer", "minimum": 0, "exclusiveMaximum": 2**48}


def _with_its_repeat(axes: dict[str, Any]) -> dict[str, Any]:
    """Which repeat it is, is a number; all else is as the campaign writes it."""
    repeat = axes.get("repeat", 1)
    if type(repeat) is not int or not 0 <= repeat < 2**48:
        about = {"field": "axes.repeat", "given": repeat}
        raise PydanticCustomError("repeat", "is no number: {given}", about)
    return axes


Axes = Annotated[
    dict[str, Any],
    AfterValidator(_with_its_repeat),
    WithJsonSchema({"type": "object", "properties": {"repeat": _REPEAT}}),
]
"""What varies in the cell's campaign, by the name that it has there, in its order."""


class Config(TypedDict, total=False):
    """The probe config without the keys of a run (spec/probe.md); an imported cell has three of them."""

    __pydantic_config__ = OPEN  # type: ignore[misc]
    period_ns: Nanoseconds | None
    timeout_ns: Nanoseconds | None
    deadline_ns: Nanoseconds | None
    loss_timeout_ns: Nanoseconds | None
    samples: Annotated[int, Field(ge=0, lt=2**48)]
    warm_up: Annotated[int, Field(ge=0, lt=2**48)]
    quantity: str | None
    judge: str | None
    in_flight: str | None
    first_k: Annotated[int, Field(ge=0, lt=2**62)]
    scheduling: SchedulingFacts
    cpus: list[int] | None


class Effective(TypedDict, total=False):
    """The settings as they were read back (spec/probe.md)."""

    __pydantic_config__ = OPEN  # type: ignore[misc]
    scheduling: SchedulingFacts
    cpus: list[int] | None
    apply: str | None
    overrun: str | None
    memory_locked: bool | None
    prefault_heap_bytes: int | None
    drive: str | None
    components: str | None


class MachineFacts(TypedDict, total=False):
    """What a machine says of itself (spec/probe.md), and ``machine_id``, which of one host name it is
    (rtmeter.host.identity); older records have none."""

    __pydantic_config__ = OPEN  # type: ignore[misc]
    hostname: str | None
    machine_id: str | None
    kernel: str | None
    kernel_version: str | None
    cpu_model: str | None
    cpus_online: int | None
    virtual_machine: str | bool | None


class Clock(TypedDict, total=False):
    """The clock of the stamps, and what others showed at one moment."""

    __pydantic_config__ = OPEN  # type: ignore[misc]
    id: str
    anchors: dict[str, int] | None


class GridFacts(TypedDict, total=False):
    """The grid of the releases."""

    __pydantic_config__ = OPEN  # type: ignore[misc]
    t0_ns: int | None
    period_ns: int | None
    t0_from: str | None


class AdapterFacts(TypedDict, total=False):
    """What an adapter says of itself and its middleware."""

    __pydantic_config__ = OPEN  # type: ignore[misc]
    middleware: str | None
    middleware_version: str | None
    reported_clock: str
    matches: list[str]
    chosen: list[str]


class SecondTopicSeen(TypedDict, total=False):
    """What one end saw of the second topic."""

    __pydantic_config__ = OPEN  # type: ignore[misc]
    sent: int
    refused: int
    received: int


class Carried(TypedDict):
    """Which way the messages of one end went."""

    __pydantic_config__ = OPEN  # type: ignore[misc]
    carried_by: str


class KernelStampsFacts(TypedDict):
    """How the kernel's stamps of an end were brought to its stamps' clock; null: that clock was set."""

    offset_ns: int | None
    error_ns: float | None


class ClockWitness(TypedDict):
    """What the round trips themselves say of clocks that are told by a shared one; without the line, if they
    bear none."""

    exchanges: int
    least_leg_ns: int | None
    origin_ns: NotRequired[int]
    offset_ns: NotRequired[int]
    drift: NotRequired[float]
    error_ns: NotRequired[float]


class ClockOffsetFacts(TypedDict):
    """The server's clock as the client's shows it."""

    same_clock: bool
    by: NotRequired[str]
    origin_ns: NotRequired[int | float]
    offset_ns: NotRequired[int | float]
    drift: NotRequired[int | float]
    error_ns: NotRequired[int | float]
    exchanges: NotRequired[int]
    witness: NotRequired[ClockWitness]
