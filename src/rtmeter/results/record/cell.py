"""The model of cell.json."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from rtmeter.model import Doubt, Measurement, Requirement, Verdict
from rtmeter.results.record.beside import WasBeside
from rtmeter.results.record.chain import Chain
from rtmeter.results.record.conditions import Conditions
from rtmeter.results.record.maps import (
    AdapterFacts,
    Axes,
    Carried,
    Clock,
    ClockOffsetFacts,
    Config,
    Effective,
    Facts,
    GridFacts,
    KernelStampsFacts,
    MachineFacts,
    SecondTopicSeen,
)
from rtmeter.results.record.parts import (
    Failure,
    JudgedBy,
    MachineFinding,
    Provenance,
    RecordPart,
    RigOfCell,
    Threads,
)
from rtmeter.results.record.published import PublishedRows
from rtmeter.results.record.summary import Statistics, Summary
from rtmeter.statistics.quantities import judged_quantity
from rtmeter.values import without_repeat

CELL_FORMAT = "rtmeter-cell"
CELL_VERSION: Literal[2] = 2
Status = Literal["complete", "interrupted", "failed", "skipped"]


def _contradiction(field: str, message: str) -> PydanticCustomError:
    """What no key says alone, with the key that is to be put right."""
    return PydanticCustomError("contradiction", "{message}", {"field": field, "message": message})


class CellRecord(RecordPart):
    """Everything about a cell but its samples (spec/results.md has a sentence on each key). None where
    something does not apply or was not looked at; empty where nobody said anything."""

    format: Literal["rtmeter-cell"] = "rtmeter-cell"
    version: Literal[2] = CELL_VERSION
    id: str
    status: Status
    valid: bool
    error: Failure | None
    measurement: Literal[Measurement, "imported", "own_loop"]
    mode: Literal["one_shot", "periodic"] | None
    adapter: str
    server_adapter: str | None
    axes: Axes
    factors: Facts = Field(default_factory=dict)
    config: Config
    server_config: Config | None
    hosts: dict[str, str]
    server_machine: MachineFacts | None
    requirement: Requirement | None
    published: list[PublishedRows] | None
    imported: Provenance | None
    effective: Effective
    threads: Threads
    usage: dict[str, int | None]
    instrument: Facts
    counters: dict[str, int]
    second_topic: dict[Literal["client", "server"], SecondTopicSeen | None] | None
    beside: WasBeside | None = None
    path: dict[Literal["client", "server"], Carried] | None
    grid: GridFacts
    ticks: str | None
    adapter_facts: AdapterFacts
    server_adapter_facts: AdapterFacts | None = None
    machine: MachineFacts
    clock: Clock
    clock_offset: ClockOffsetFacts | None
    conditions: Conditions | None
    kernel_stamps: dict[Literal["client", "server"], KernelStampsFacts] | None = None
    chain: Chain | None = None
    rig: RigOfCell | None = None
    data_crc32c: int | None = None
    warnings: list[Doubt]
    findings: list[MachineFinding] | None
    server_findings: list[MachineFinding] | None
    missing: list[tuple[int, int | None]]
    summary: Summary | None
    verdict: Verdict | None
    judged_by: JudgedBy | None
    started: str | None
    ended: str | None
    rtmeter: str

    @model_validator(mode="after")
    def _has_its_times(self) -> Self:
        if self.measurement == "timer" and self.mode is None:
            raise _contradiction("mode", "a timer cell needs a mode")
        needs_none = self.status in ("failed", "skipped") or self.measurement == "imported"
        if self.tick_ns is None and not needs_none:
            raise _contradiction("config.period_ns", "the config has neither period_ns nor timeout_ns")
        if self.error is None and self.status in ("failed", "skipped"):
            raise _contradiction("error", f"a cell that is {self.status} needs an error")
        return self

    @property
    def layout(self) -> dict[str, Any]:
        """The name of its block where that tells it apart, the axes of its campaign, its other factors, and
        the adapter, also where the campaign does not vary it in a list."""
        block = {"block": self.factors["block"]} if "block" in self.factors else {}
        levels = block | dict(self.axes) | dict(self.factors)
        return levels if "adapter" in levels else {"adapter": self.adapter} | levels

    @property
    def name(self) -> str:
        """Its id, which all its repeats share: ``wakeup-posix`` of ``wakeup-posix-r2``."""
        return without_repeat(self.id, self.axes)

    @property
    def repeat(self) -> int:
        """Which of its repeats it is, from 1."""
        return int(self.axes.get("repeat", 1))

    @property
    def is_repeat(self) -> bool:
        """Whether cells of its name beside it are its repeats: those of a campaign that has some, and every
        start of a program that records its own loop. Others happen to have one name."""
        return "repeat" in self.axes or self.measurement == "own_loop"

    @property
    def period_ns(self) -> int | None:
        """The period; None where it is not known, as of imported data."""
        return self.config.get("period_ns")

    @property
    def warm_up(self) -> int:
        """How many releases come before the measured ones."""
        return self.config.get("warm_up", 0)

    @property
    def tick_ns(self) -> int | None:
        """The period, or a one-shot's timeout."""
        shot = self.config.get("timeout_ns") if self.mode == "one_shot" else None
        return shot or self.period_ns

    @property
    def deadline_ns(self) -> int | None:
        """The deadline that it is judged by, else the one configured."""
        return self.requirement.deadline_ns if self.requirement else self.config.get("deadline_ns")

    def per_release(self, quantity: str) -> Statistics | None:
        """The quantity, per release; None where it was not measured."""
        views = self.summary.quantities.get(quantity) if self.summary else None
        return views.per_release if views else None

    @property
    def judged(self) -> Statistics | None:
        """The judged quantity, per release; None where nothing was measured."""
        return self.per_release(judged_quantity(self.meta).name)

    def n_of(self, quantity: str) -> int:
        """How many releases the quantity is known of, per release."""
        found = self.per_release(quantity)
        return found.n if found else 0

    @property
    def usable(self) -> bool:
        """Whether its samples may be judged; of a cell that was stopped in its warm-up there are none."""
        measured = self.summary is not None and (self.judged is None or self.judged.n > 0)
        return self.valid and self.error is None and measured

    @property
    def why_unusable(self) -> str:
        """Why they may not."""
        if self.error is not None:
            return f"failed: {self.error.message}"
        return "is invalid: see its warnings" if not self.valid else "measured nothing"

    @property
    def scripted(self) -> bool:
        """Whether its delays are made up, on a clock that no time passes on."""
        return self.clock.get("id") == "scripted"

    @property
    def events_recorded(self) -> bool:
        """Whether the kernel's events were asked for, to be explained."""
        return bool(self.recorded)

    @property
    def recorded(self) -> bool | Facts:
        """What was asked of a recording of the kernel's events: none, one as usual (True), or what of it is
        not as usual."""
        asked: bool | Facts = self.conditions is not None and self.conditions["asked"].get("explain", False)
        return asked

    @property
    def endured(self) -> Conditions | None:
        """Its conditions, where what the machine did can have delayed anything."""
        return None if self.scripted else self.conditions

    @property
    def virtual_machine(self) -> bool:
        """Whether it was measured in one."""
        return self.machine.get("virtual_machine") not in (None, False, "", "none")

    @property
    def meta(self) -> dict[str, Any]:
        """What rtmeter.statistics asks of a cell."""
        keys = (
            "period_ns",
            "timeout_ns",
            "deadline_ns",
            "loss_timeout_ns",
            "in_flight",
            "interface",
            "kernel_stamps",
            "quantity",
            "first_k",
            "judge",
        )
        return {
            "measurement": self.measurement,
            "mode": self.mode,
            "warm_up": self.warm_up,
            "counters": self.counters,
            "ticks": self.ticks,
            "t0_from": self.grid.get("t0_from"),
            "reported_clock": self.adapter_facts.get("reported_clock", "monotonic"),
            "matches": self.adapter_facts.get("matches", [] if self.adapter_facts else None),
            "virtual_machine": self.machine.get("virtual_machine") if self.virtual_machine else None,
        } | {key: self.config.get(key) for key in keys}
