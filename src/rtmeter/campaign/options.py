"""Everything a cell can be configured with, declared once.

The options of ``rtmeter measure``, the keys of a campaign (spec/campaign.md) and the probe config
(spec/probe.md) all derive from :class:`CellOptions`: a field's type parses what people write, its
serialization is what the probe reads, its description is the help text.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, field_serializer

from rtmeter import values
from rtmeter.campaign.beside_options import BACKGROUND_NODES, BESIDE, PUBLISHERS, SUBSCRIBERS
from rtmeter.campaign.chain_option import GRAPH, ChainGraph
from rtmeter.campaign.condition_options import GROUPS, HOSTS, ON, Hosts, On, SystemSettings, asked
from rtmeter.campaign.explain_option import EXPLAIN, ExplainOption
from rtmeter.campaign.loop_options import COMMAND, JUDGE, LOOP, PID, THREAD, UNTOLD_PERIOD_NS, attached
from rtmeter.campaign.option_types import (
    CONFIDENCE,
    CONNECT_TIMEOUT,
    INTERFACE,
    KERNEL_STAMPS,
    MISS_RATIO,
    MONITOR,
    OTHERS,
    PARTICIPANTS,
    SERVER_SHARED_CLOCK,
    SHARED_CLOCK,
    SLEEP_OFFSET,
    STRICT,
    TIMER_SLACK,
    Cpus,
    Duration,
    DurationOrZero,
    For,
    Horizon,
    OptionText,
    PolicyOption,
    Ratio,
    Receive,
    SharedClockName,
    Size,
)
from rtmeter.campaign.second_topic import SECOND_TOPIC, SecondTopicOption
from rtmeter.campaign.strain_options import LOAD, SERVER_LOAD, TRAFFIC, LoadOption, TrafficOption
from rtmeter.model import HORIZON, MONITOR_NS, TWO_ENDS, Criticality, Measurement, Requirement

MOST_RELEASES = 2**48
"""That can be counted: less than any counter of ours holds."""

_ROUNDTRIP = For(TWO_ENDS)
_MESSAGES = For((*TWO_ENDS, "cycle"))
_CARRIED = For((*TWO_ENDS, "cycle", "chain", "discovery"))
_OWN_QOS = For(("roundtrip", "cycle", "chain", "discovery"))
_PROCESSES = For((*TWO_ENDS, "chain", "discovery"))
_DISCOVERY = For(("discovery",))
_TIMER = For(("timer",))


class CellOptions(BaseModel):
    """What a cell is configured with. Times are held in nanoseconds, sizes in bytes.

    ``serialization_alias`` is the probe config's key where it differs; ``exclude`` marks what the
    front alone needs.
    """

    model_config = STRICT

    measurement: Annotated[Measurement, Field(description="What to measure.")]
    adapter: Annotated[
        str,
        Field(
            description="The middleware's adapter (see: rtmeter adapters).", examples=["posix"], exclude=True
        ),
    ]
    server_adapter: Annotated[
        str | None,
        _ROUNDTRIP,
        Field(
            description="Adapter of the server process, one that answers the client's (default: the same).",
            exclude=True,
        ),
    ] = None
    period: Annotated[
        Duration | None,
        Field(
            description="Period of the releases (default 1ms, roundtrip and request 10ms, discovery 2s; "
            "of a loop what its releases tell, and needed with `samples`).",
            examples=["1ms"],
            serialization_alias="period_ns",
        ),
    ] = None
    duration: Annotated[
        Duration | None,
        Field(
            description="How long to measure (default 10s, roundtrip and request 10min, discovery 1min).",
            examples=["10s"],
            exclude=True,
        ),
    ] = None
    samples: Annotated[
        int | None,
        Field(
            description="How many releases to measure, instead of a duration.",
            examples=["10000"],
            ge=1,
            le=MOST_RELEASES,
        ),
    ] = None
    warm_up: Annotated[
        DurationOrZero, Field(description="Time before measuring, recorded but not counted.", examples=["1s"])
    ] = 1_000_000_000
    scheduling: Annotated[
        PolicyOption,
        Field(
            description="Policy of the measured thread, and of the server's: other, fifo:P, rr:P or "
            "deadline:RUNTIME/DEADLINE/PERIOD.",
            examples=["fifo:80"],
        ),
    ] = values.Scheduling("other")
    apply: Annotated[
        Literal["before_init", "after_init"],
        Field(description="Set the policy before the middleware starts (its threads inherit it) or after."),
    ] = "before_init"
    child_threads: Annotated[
        PolicyOption | None,
        Field(
            description="Policy of the middleware's threads, set after it started: other, fifo:P or rr:P.",
            examples=["rr:70"],
        ),
    ] = None
    timer_slack: Annotated[Duration | None, TIMER_SLACK] = None
    cpus: Annotated[Cpus | None, Field(description="CPUs of the measured process.", examples=["1"])] = None
    child_cpus: Annotated[
        Cpus | None,
        Field(description="CPUs of the middleware's threads, set after it started.", examples=["0"]),
    ] = None
    server_cpus: Annotated[
        Cpus | None,
        _ROUNDTRIP,
        Field(
            description="CPUs of the server process (default: the client's).", examples=["0"], exclude=True
        ),
    ] = None
    lock_memory: Annotated[bool, Field(description="Lock all memory (mlockall).")] = False
    prefault_stack: Annotated[
        Size,
        Field(
            description="Stack to touch beforehand.",
            examples=["512KiB"],
            serialization_alias="prefault_stack_bytes",
        ),
    ] = 0
    prefault_heap: Annotated[
        Size,
        Field(
            description="Heap to touch beforehand and keep.",
            examples=["8MiB"],
            serialization_alias="prefault_heap_bytes",
        ),
    ] = 0
    cpu_dma_latency: Annotated[
        bool, Field(description="Hold /dev/cpu_dma_latency at 0: no deep idle states.")
    ] = False
    overrun: Annotated[
        Literal["catch_up", "skip"] | None,
        Field(
            description="Serve releases that have passed at once, or skip them (default: the measurement's)."
        ),
    ] = None
    deadline: Annotated[
        Duration | None,
        Field(
            description="Deadline of the judged quantity: makes the run a requirement with a verdict.",
            examples=["1ms"],
            serialization_alias="deadline_ns",
        ),
    ] = None
    break_on_late: Annotated[
        bool,
        Field(description="Stop the kernel's trace and end the run at the first late release (breaktrace)."),
    ] = False
    miss_ratio: Annotated[Ratio | None, MISS_RATIO] = None
    confidence: Annotated[Ratio, CONFIDENCE] = 0.95
    criticality: Annotated[
        Criticality,
        Field(
            description="What a miss means: hard (failure), firm (a worthless result) or soft (worth less).",
            exclude=True,
        ),
    ] = "firm"
    horizon: Horizon = HORIZON
    mode: Annotated[Literal["one_shot", "periodic"], _TIMER, Field(description="Kind of timer.")] = "periodic"
    timeout: Annotated[
        Duration | None,
        _TIMER,
        Field(description="Timeout of a one-shot timer.", examples=["1ms"], serialization_alias="timeout_ns"),
    ] = None
    drive: Annotated[
        Literal["spin", "sleep_then_spin_some", "poll"] | None,
        For(("timer", "cycle")),
        Field(description="How the callback is reached (default: the adapter's first)."),
    ] = None
    sleep_offset: Annotated[DurationOrZero | None, _TIMER, SLEEP_OFFSET] = None
    components: Annotated[
        Literal["one_thread", "two_threads"] | None,
        For(("cycle",)),
        Field(description="The threads of a cycle's components (default: the adapter's first)."),
    ] = None
    receive: Annotated[
        Receive | None,
        _MESSAGES,
        Field(description="How replies are received (default: the adapter's first)."),
    ] = None
    server_receive: Annotated[
        Receive | None,
        _ROUNDTRIP,
        Field(
            description="How the server receives (default: as the client, if the adapter is the same).",
            exclude=True,
        ),
    ] = None
    before: Annotated[
        Literal["none", "init", "init_and_node"],
        For(("wakeup",)),
        Field(description="What the middleware does to the process beforehand."),
    ] = "none"
    loss_timeout: Annotated[
        Duration | None,
        _CARRIED,
        Field(
            description="When a message counts as lost (default: 500ms, discovery half a period; or the "
            "deadline if longer).",
            examples=["500ms"],
            serialization_alias="loss_timeout_ns",
        ),
    ] = None
    in_flight: Annotated[
        Literal["one", "open"],
        _ROUNDTRIP,
        Field(description="Wait for each reply, or send at every release."),
    ] = "one"
    interface: Annotated[Literal["service", "action"], For(("request",)), INTERFACE] = "service"
    payload: Annotated[
        Size,
        _CARRIED,
        Field(
            description="Payload of a message.",
            examples=["500", "128KiB"],
            ge=8,
            le=2**30,
            serialization_alias="payload_bytes",
        ),
    ] = 500
    reliability: Annotated[
        Literal["best_effort", "reliable"], _OWN_QOS, Field(description="Quality of service: reliability.")
    ] = "best_effort"
    history_depth: Annotated[
        int, _OWN_QOS, Field(description="Quality of service: keep last N.", examples=["1"], ge=1, le=2**20)
    ] = 1
    second_topic: Annotated[SecondTopicOption | None, For(("roundtrip",)), SECOND_TOPIC] = None
    subscribers: Annotated[int, For(("roundtrip",)), SUBSCRIBERS] = 1
    publishers: Annotated[int, For(("roundtrip",)), PUBLISHERS] = 1
    background_nodes: Annotated[int, For(("roundtrip",)), BACKGROUND_NODES] = 0
    participants: Annotated[int, _DISCOVERY, PARTICIPANTS] = 2
    others: Annotated[Literal["cold", "present"], _DISCOVERY, OTHERS] = "cold"
    graph: Annotated[ChainGraph | None, For(("chain",)), GRAPH] = None
    connect_timeout: Annotated[Duration, _PROCESSES, CONNECT_TIMEOUT] = 10_000_000_000
    command: Annotated[str | None, LOOP, COMMAND] = None
    pid: Annotated[int | None, LOOP, PID] = None
    thread: Annotated[str | None, LOOP, THREAD] = None
    judge: Annotated[Literal["completion", "latency"], LOOP, JUDGE] = "completion"
    script: Annotated[
        str | None, Field(description="Delays for the null adapter, a CSV file.", examples=["delays.csv"])
    ] = None
    options: Annotated[
        dict[str, OptionText],
        Field(
            description="The adapter's own options (see: rtmeter adapters).", examples=[{"transport": "udp"}]
        ),
    ] = {}
    server_options: Annotated[
        dict[str, OptionText] | None,
        _ROUNDTRIP,
        Field(
            description="The server adapter's options (default: the client's, if the adapter is the same).",
            examples=[{"transport": "udp"}],
            exclude=True,
        ),
    ] = None
    conditions: Annotated[
        SystemSettings | None,
        Field(description="System settings while the cell is measured (docs/conditions.md).", exclude=True),
    ] = None
    load: Annotated[LoadOption | None, LOAD] = None
    traffic: Annotated[TrafficOption | None, TRAFFIC] = None
    on: Annotated[On | None, ON] = None
    hosts: Annotated[Hosts | None, _ROUNDTRIP, HOSTS] = None
    kernel_stamps: Annotated[bool, For(("roundtrip",)), KERNEL_STAMPS] = False
    shared_clock: Annotated[SharedClockName | None, _ROUNDTRIP, SHARED_CLOCK] = None
    server_shared_clock: Annotated[SharedClockName | None, _ROUNDTRIP, SERVER_SHARED_CLOCK] = None
    server_conditions: Annotated[
        SystemSettings | None,
        _ROUNDTRIP,
        Field(description="System settings of the server's host (default: conditions).", exclude=True),
    ] = None
    server_load: Annotated[LoadOption | None, _ROUNDTRIP, SERVER_LOAD] = None
    monitor: Annotated[DurationOrZero, MONITOR] = MONITOR_NS
    strict: Annotated[
        bool, Field(description="Fail where a condition was not reached, instead of warning.", exclude=True)
    ] = False
    explain: Annotated[ExplainOption, EXPLAIN] = None
    keep_log: Annotated[
        bool, Field(description="Keep the sample logs beside samples.parquet.", exclude=True)
    ] = False

    @classmethod
    def meant_for(cls, name: str) -> tuple[str, ...]:
        """The measurements the option means something for; empty: all."""
        marks = [m for m in OPTIONS[name].metadata if isinstance(m, For)]
        return marks[0].measurements if marks else ()

    @classmethod
    def applies(cls, name: str, measurement: str) -> bool:
        """Whether the option means something for the measurement."""
        return not cls.meant_for(name) or measurement in cls.meant_for(name)

    @property
    def one_shot(self) -> bool:
        """Whether shots follow each other instead of a grid of releases."""
        return self.measurement == "timer" and self.mode == "one_shot"

    @property
    def tick_ns(self) -> int:
        """T: the period, or the timeout of one-shot timers. Only after settle()."""
        tick = self.timeout if self.one_shot else self.period
        if tick is None and self.measurement == "loop":
            return UNTOLD_PERIOD_NS
        assert tick is not None, "settle() fills it in"
        return tick

    @property
    def requirement(self) -> Requirement | None:
        """What the cell is judged by: there if a deadline was given."""
        if self.deadline is None:
            return None
        return Requirement(self.deadline, self.miss_ratio, self.confidence, self.criticality, self.horizon)

    @property
    def missed_after_ns(self) -> int | None:
        """What the count ``missed`` goes by: the deadline, for replies by default one period."""
        return self.tick_ns if self.deadline is None and self.measurement in TWO_ENDS else self.deadline

    @property
    def conditions_asked(self) -> dict[str, Any]:
        """What the machine is to endure (Cell.conditions), JSON-ready; empty if nothing is asked."""
        found = asked(settings=self.conditions, load=self.load, traffic=self.traffic)
        if server := asked(settings=self.server_conditions, load=self.server_load):
            found["server"] = server
        monitor = {"monitor_ns": self.monitor} if self.monitor != MONITOR_NS else {}
        explain = {"explain": self.explain.asked()} if self.explain is not None else {}
        return found | monitor | explain | ({"strict": True} if self.strict else {})

    @field_serializer("warm_up")
    def _warm_up_releases(self, warm_up_ns: int) -> Annotated[int, Field(ge=0)]:
        return -(-warm_up_ns // self.tick_ns)

    def probe_config(self) -> dict[str, Any]:
        """The probe config without paths and session (spec/probe.md), as JSON-ready values."""
        inapplicable = {n for n in OPTIONS if not self.applies(n, self.measurement)}
        if "history_depth" not in self.model_fields_set:  # a middleware without KEEP_LAST has its own default
            inapplicable.add("history_depth")
        least_of = {"break_on_late": None, "kernel_stamps": False} | BESIDE  # no key that cells had before
        inapplicable |= {name for name, least in least_of.items() if getattr(self, name) == least}
        config = self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=inapplicable)
        if "script" in config:  # the null adapter's own option
            config["options"] = {"script": config.pop("script")} | config["options"]
        if self.measurement == "loop":
            config |= attached(dict(self), self.tick_ns)
        return config if self.missed_after_ns is None else config | {"deadline_ns": self.missed_after_ns}


OPTIONS = {info.alias or name: info for name, info in CellOptions.model_fields.items()}
"""Every option by the name that people write."""

KNOWN = OPTIONS | {
    f"{group}.{key}": info for group, model in GROUPS.items() for key, info in model.model_fields.items()
}
"""And the keys of the options that are mappings: ``conditions.governor``."""
