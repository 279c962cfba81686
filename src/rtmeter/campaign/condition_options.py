"""The keys of a campaign that say what the machine is made to endure while a cell is measured."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from rtmeter import values
from rtmeter.campaign import option_types
from rtmeter.campaign.explain_option import ExplainAsked
from rtmeter.campaign.second_topic import SecondTopic
from rtmeter.campaign.strain_options import LoadAsked, TrafficAsked
from rtmeter.host import ssh
from rtmeter.model import LOCAL

_THROTTLING_REMEDY = "write off, or the time per second that real-time tasks may take, e.g. 950ms"


def _throttling(value: object) -> str:
    """``off`` (YAML's false too), or whole microseconds as the shortest text."""
    if value is False or value == "off":
        return "off"
    if value is True or value == "on":
        raise ValueError("does not say how much", _THROTTLING_REMEDY)
    ns = values.parse_positive_ns(value)
    if ns % 1000:
        raise ValueError("is not a whole number of microseconds", _THROTTLING_REMEDY)
    return values.format_duration(ns)


Throttling = Annotated[
    str, BeforeValidator(_throttling), WithJsonSchema({"type": ["string", "boolean"]}, mode="validation")
]
Priority = Annotated[int, Field(ge=1, le=99)]
QdiscWords = Annotated[str, StringConstraints(pattern=r"^\s*[a-z]")]
WrittenCpus = Annotated[option_types.Cpus, PlainSerializer(values.format_cpus)]
WrittenDuration = Annotated[option_types.Duration, PlainSerializer(values.format_duration)]
"""Stored as they are written, for the settings are made from what is stored of them."""


class SystemSettings(BaseModel):
    """``conditions``: settings of the machine; what is None is left alone. Times are nanoseconds."""

    model_config = option_types.STRICT

    @model_validator(mode="before")
    @classmethod
    def _probes_hold_idle_states(cls, given: Any) -> Any:
        if isinstance(given, dict) and "cpu_dma_latency" in given:
            remedy = "write cpu_dma_latency: true beside conditions, not in it"
            raise ValueError("holds cpu_dma_latency, which the cell's probe holds itself", remedy)
        return given

    governor: Annotated[
        str | None, Field(description="Frequency governor of every CPU.", examples=["performance"])
    ] = None
    rt_throttling: Annotated[
        Throttling | None,
        Field(description="off, or the share of each second for real-time tasks.", examples=["950ms"]),
    ] = None
    timer_migration: Annotated[
        bool | None, Field(description="Let timers of idle CPUs move to others.", examples=["off"])
    ] = None
    workqueue_cpus: Annotated[
        WrittenCpus | None, Field(description="CPUs of the kernel's unbound workqueues.", examples=["0"])
    ] = None
    irq_cpus: Annotated[
        dict[str, WrittenCpus] | None,
        Field(description="Device (or *) → CPUs that take its interrupts.", examples=[{"eth0": "0"}]),
    ] = None
    irq_priority: Annotated[
        dict[str, Priority] | None,
        Field(description="Device → FIFO priority of its IRQ threads.", examples=[{"eth0": 90}]),
    ] = None
    ksoftirqd_priority: Annotated[
        Priority | None, Field(description="FIFO priority of ksoftirqd on every CPU.", examples=["60"])
    ] = None
    qdisc: Annotated[
        dict[str, QdiscWords] | None,
        Field(
            description="Device → its root qdisc in the words of tc.",
            examples=[{"eth0": "tbf rate 50mbit burst 32kbit latency 50ms"}],
        ),
    ] = None
    net_prio: Annotated[
        dict[str, Annotated[int, Field(ge=0, le=2**32 - 1)]] | None,
        Field(description="Device → priority of what the probes send by it.", examples=[{"eth0": 6}]),
    ] = None
    isolate: Annotated[
        WrittenCpus | None, Field(description="CPUs of a cpuset for the measured process.", examples=["1"])
    ] = None
    stray_tasks: Annotated[
        Literal["stay", "move"] | None,
        Field(description="Whether everything else moves away from the isolated CPUs.", examples=["move"]),
    ] = None
    rt_runtime: Annotated[
        WrittenDuration | None,
        Field(
            description="Real-time run time a second of a cgroup for the measured process.",
            examples=["500ms"],
        ),
    ] = None
    unavailable: Annotated[
        Literal["leave_out"] | None,
        Field(description="leave_out: go without settings that cannot be had (default: the cell fails)."),
    ] = None


On = Annotated[
    str,
    BeforeValidator(lambda text: text if text == LOCAL else ssh.parse_target(str(text))),
    WithJsonSchema({"type": "string", "pattern": f"^({LOCAL}|{ssh.HOST})$"}),
]


class Hosts(BaseModel):
    """``hosts``: where the two ends of a round trip run."""

    model_config = option_types.STRICT

    controller: Annotated[
        Literal["local"], Field(description="The client's host: this machine, where rtmeter runs.")
    ] = "local"
    component: Annotated[
        On,
        Field(description="The server's host.", examples=["ssh://user@192.168.0.2"]),
    ] = LOCAL


HOSTS = Field(
    description="Where the server runs: component=ssh://user@host (docs/two-hosts.md).", exclude=True
)
ON = Field(
    description="The target: the machine that is measured, with all its processes (docs/targets.md).",
    examples=["ssh://user@board"],
    exclude=True,
)
"""What the options are, in help and schemas."""

GROUPS: dict[str, type[BaseModel]] = {
    "conditions": SystemSettings,
    "load": LoadAsked,
    "traffic": TrafficAsked,
    "hosts": Hosts,
    "second_topic": SecondTopic,
    "explain": ExplainAsked,
    "server_conditions": SystemSettings,
    "server_load": LoadAsked,
}
"""The options of a cell that are mappings with keys of their own, each of which may be a list."""


def asked(**parts: BaseModel | None) -> dict[str, Any]:
    """Those that were given, JSON-ready."""
    return {key: p.model_dump(mode="json", exclude_none=True) for key, p in parts.items() if p is not None}
