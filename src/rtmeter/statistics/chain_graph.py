"""The graph of a chain: stages, who hears whom, and every path from a source to a sink."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from rtmeter.errors import RtmeterError

StageKind = Literal["event", "sampled", "fusion"]
"""When a stage passes on: each input at once; the newest of each input at its own releases; the newest of
each input once there is a new one of every input."""

MOST_PATHS = 1024
"""From a source to a sink; a message carries a sample for each way to the stage that sends it."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage. ``inputs``: the stages that it hears, none for a source; ``period_ns`` and ``offset_ns``
    of its releases (sources and sampled stages), ``offset_ns`` after the chain's first."""

    name: str
    kind: StageKind
    inputs: tuple[str, ...] = ()
    period_ns: int | None = None
    offset_ns: int = 0

    @property
    def is_source(self) -> bool:
        return not self.inputs


@dataclass(frozen=True)
class Graph:
    """Stages by name, each after those that it hears. Raises RtmeterError for one that is none."""

    stages: tuple[Stage, ...]
    by_name: Mapping[str, Stage] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name: dict[str, Stage] = {}
        for stage in self.stages:
            if stage.name in by_name:
                raise _wrong(stage.name, "stands twice", "give each stage a name of its own")
            by_name[stage.name] = stage
        for stage in self.stages:
            _check(stage, by_name)
        object.__setattr__(self, "by_name", by_name)
        object.__setattr__(self, "stages", tuple(_in_order(self.stages)))
        if not self.stages:
            raise RtmeterError("has no stages", field="graph", value="", remedy="give at least one stage")
        count = sum(self.ways[sink.name] for sink in self.sinks)
        if count > MOST_PATHS:
            message = f"has {count} paths from a source to a sink, more than {MOST_PATHS}"
            raise RtmeterError(
                message, field="graph", value=count, remedy="measure a part of it: fewer inputs per stage"
            )

    @property
    def sources(self) -> tuple[Stage, ...]:
        return tuple(stage for stage in self.stages if stage.is_source)

    @property
    def sinks(self) -> tuple[Stage, ...]:
        """The stages that nobody hears: their outputs are the chain's."""
        heard = {name for stage in self.stages for name in stage.inputs}
        return tuple(stage for stage in self.stages if stage.name not in heard)

    @cached_property
    def ways(self) -> dict[str, int]:
        """How many ways lead from a source to each stage: the samples that its messages carry.

        The ways are numbered by input: first those that come by the first input, in that one's order.
        """
        found: dict[str, int] = {}
        for stage in self.stages:
            found[stage.name] = sum(found[name] for name in stage.inputs) or 1
        return found

    def first_way(self, stage: Stage, source: str) -> int:
        """The number of the first of the stage's ways that come by the input ``source``."""
        before = stage.inputs[: stage.inputs.index(source)]
        return sum(self.ways[name] for name in before)

    def path_of(self, stage: Stage, way: int) -> tuple[tuple[Stage, int], ...]:
        """The stages from the source on, each with the number that the way has there."""
        if stage.is_source:
            return ((stage, way),)
        for name in stage.inputs:
            first = self.first_way(stage, name)
            if way < first + self.ways[name]:
                return (*self.path_of(self.by_name[name], way - first), (stage, way))
        raise IndexError(way)

    def paths(self) -> Iterable[tuple[tuple[Stage, int], ...]]:
        """Every path from a source to a sink."""
        for sink in self.sinks:
            for way in range(self.ways[sink.name]):
                yield self.path_of(sink, way)


def _check(stage: Stage, by_name: Mapping[str, Stage]) -> None:
    for name in stage.inputs:
        if name not in by_name:
            known = ", ".join(by_name)
            raise _wrong(f"{stage.name}.inputs", "is no stage of the graph", f"choose among {known}", name)
        if stage.inputs.count(name) > 1:
            raise _wrong(f"{stage.name}.inputs", "stands twice", "give each input once", name)
    if stage.is_source and stage.kind != "sampled":
        message = "needs inputs: a stage without any is a source, which has releases"
        raise _wrong(f"{stage.name}.kind", message, "give it inputs, or a period", stage.kind)
    if stage.kind == "sampled" and (stage.period_ns is None or stage.period_ns < 1):
        raise _wrong(f"{stage.name}.period", "is missing: it sets the releases", "give e.g. period: 10ms")
    if stage.kind != "sampled" and stage.period_ns is not None:
        message = f"means nothing for kind {stage.kind}, which passes on what comes"
        raise _wrong(f"{stage.name}.period", message, "leave it out, or choose kind sampled", stage.period_ns)
    if stage.offset_ns and stage.kind != "sampled":
        message = f"means nothing for kind {stage.kind}, which has no releases"
        raise _wrong(f"{stage.name}.offset", message, "leave it out", stage.offset_ns)
    if stage.offset_ns < 0:
        raise _wrong(
            f"{stage.name}.offset", "lies before the chain's first release", "give 0 or more", stage.offset_ns
        )
    if stage.kind == "fusion" and len(stage.inputs) < 2:
        message = "has one input: there is nothing to wait for"
        raise _wrong(f"{stage.name}.kind", message, "choose event, or give more inputs", stage.kind)


def _in_order(stages: Iterable[Stage]) -> Iterable[Stage]:
    """Each after its inputs, else as they are given."""
    done: set[str] = set()
    waiting = list(stages)
    while waiting:
        ready = [stage for stage in waiting if done.issuperset(stage.inputs)]
        if not ready:
            names = ", ".join(stage.name for stage in waiting)
            raise _wrong(
                "stages", "hear each other in a circle, or what lies behind one", "break it up", names
            )
        yield ready[0]
        done.add(ready[0].name)
        waiting.remove(ready[0])


def _wrong(field_name: str, message: str, remedy: str, value: object = None) -> RtmeterError:
    return RtmeterError(message, field=f"graph.{field_name}", value=value, remedy=remedy)
