"""The key ``graph``: the stages of a chain, as a YAML file or in place (docs/chain.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from rtmeter.campaign import yaml_lines
from rtmeter.campaign.option_types import STRICT, Duration, DurationOrZero
from rtmeter.campaign.wrong import as_rtmeter_error
from rtmeter.errors import RtmeterError
from rtmeter.statistics.chain_graph import Graph, Stage, StageKind
from rtmeter.values import slug

_HEAD, _SAMPLE = 8, 16
"""Bytes of a message: its head, and each sample that it carries (spec/probe.md)."""

_LONGEST_NAME = 200
"""Of a stage or a process, which names a file."""

_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_]{{,{_LONGEST_NAME - 1}}}")
SEPARATOR = " > "
"""Between the stages of a path."""


def _inputs(given: Any) -> Any:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError("is no list of stages", "write the name of a stage, or several: [a, b]")
    return tuple(names)


class StageOption(BaseModel):
    """A stage. Times are nanoseconds."""

    model_config = STRICT

    inputs: Annotated[
        tuple[str, ...],
        BeforeValidator(_inputs),
        Field(description="The stages that it hears; a stage without any is a source."),
    ] = ()
    period: Annotated[
        Duration | None,
        Field(description="Period of its releases; without one it passes on at once.", examples=["10ms"]),
    ] = None
    offset: Annotated[
        DurationOrZero, Field(description="From the chain's first release to its own.", examples=["5ms"])
    ] = 0
    fusion: Annotated[bool, Field(description="Passes on once there is a new one of every input.")] = False
    process: Annotated[
        str | None, Field(description="Stages of one name share a process (default: one each).")
    ] = None
    re_stamps: Annotated[
        bool, Field(description="Puts its own time for the sample's: planted, to be found out.")
    ] = False

    @property
    def kind(self) -> StageKind:
        if self.fusion:
            return "fusion"
        return "sampled" if self.period is not None or not self.inputs else "event"


class _GraphFile(BaseModel):
    model_config = STRICT

    stages: Annotated[dict[str, StageOption], Field(description="The stages by name.", min_length=1)]
    judge: Annotated[
        str | None,
        Field(description="The path that is judged (default: the first of the longest).", examples=["a > b"]),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, given: Any) -> Any:
        if isinstance(given, str):
            try:
                given = yaml_lines.read(Path(given), "graph").data
            except RtmeterError as error:
                at = [] if error.where is None else [error.where, *([error.field] if error.field else [])]
                raise ValueError(": ".join([*at, error.message]), error.remedy) from None
        stages = given.get("stages") if isinstance(given, Mapping) else None
        if not isinstance(stages, Mapping) or not stages:
            raise ValueError("has no stages", "give a mapping with the key stages (docs/chain.md)")
        return {**given, "stages": {name: {} if of is None else of for name, of in stages.items()}}

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        for name in self.stages:
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"has a stage {name!r}", "name stages by letters, digits and _, a letter first"
                )
        for name, stage in self.stages.items():
            process = stage.process or name
            if slug(process) != process or len(process) > _LONGEST_NAME:
                raise ValueError(
                    f"has the stage {name} in a process {process!r}", "name it by letters, digits, . _ and -"
                )
            if stage.re_stamps and not stage.inputs:
                raise ValueError(f"has the source {name} with re_stamps", "give it to a stage that hears one")
            if stage.fusion and stage.period is not None:
                raise ValueError(f"has the stage {name} with period and fusion", "give one of the two")
        try:
            self.judged  # noqa: B018
        except RtmeterError as error:
            about = (error.field or "graph").removeprefix("graph").lstrip(".")
            value = "" if error.value is None else f" ({error.value})"
            raise ValueError(f"{about}{value} {error.message}".strip(), error.remedy) from None
        except RecursionError:
            raise ValueError("has too long a path", "measure a part of it") from None
        return self

    @property
    def graph(self) -> Graph:
        return Graph(tuple(Stage(n, s.kind, s.inputs, s.period, s.offset) for n, s in self.stages.items()))

    @property
    def judged(self) -> tuple[str, ...]:
        """The stages of the path that is judged. Raises RtmeterError if there is no such path."""
        paths = [tuple(stage.name for stage, _ in path) for path in self.graph.paths()]
        if self.judge is None:
            return max(paths, key=len)
        asked = tuple(part.strip() for part in self.judge.split(">"))
        if asked not in paths:
            some = "; ".join(SEPARATOR.join(path) for path in paths[:5])
            message = "is no path from a source to a stage that nobody hears"
            raise RtmeterError(message, field="graph.judge", value=self.judge, remedy=f"choose e.g. {some}")
        return asked

    @property
    def period_ns(self) -> int:
        """Of the source of the path that is judged."""
        period = self.stages[self.judged[0]].period
        assert period is not None, "a source has one"
        return period

    @property
    def payload_bytes(self) -> int:
        """The least payload that holds what a message carries."""
        return _HEAD + _SAMPLE * max(self.graph.ways.values())

    @model_serializer
    def _as_config(self) -> dict[str, Any]:
        """As a cell's config has it: read again by graph_of()."""
        stages = [
            {
                "name": stage.name,
                "kind": stage.kind,
                "inputs": list(stage.inputs),
                "period_ns": stage.period_ns,
                "offset_ns": stage.offset_ns,
                "process": self.stages[stage.name].process or stage.name,
                "re_stamps": self.stages[stage.name].re_stamps,
            }
            for stage in self.graph.stages
        ]
        return {"stages": stages, "judged": list(self.judged)}


_STAGE_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "kind": {"enum": ["event", "sampled", "fusion"]},
        "inputs": {"type": "array", "items": {"type": "string"}},
        "period_ns": {"type": ["integer", "null"], "minimum": 1},
        "offset_ns": {"type": "integer", "minimum": 0},
        "process": {"type": "string"},
        "re_stamps": {"type": "boolean"},
    },
    "required": ["name", "kind", "inputs", "period_ns", "offset_ns", "process", "re_stamps"],
    "additionalProperties": False,
}
_SCHEMA = {
    "type": "object",
    "properties": {
        "stages": {"type": "array", "items": _STAGE_SCHEMA, "minItems": 1},
        "judged": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    },
    "required": ["stages", "judged"],
    "additionalProperties": False,
}

ChainGraph = Annotated[
    _GraphFile,
    WithJsonSchema({"type": "string"}, mode="validation"),
    WithJsonSchema(_SCHEMA, mode="serialization"),
]
GRAPH = Field(description="The stages of a chain, a YAML file (docs/chain.md).", examples=["graph.yaml"])
"""What the option is, in help and schemas."""


def graph_at(text: str, where: str) -> None:
    """Raises RtmeterError if the text of a graph file is none that can be measured."""
    try:
        _GraphFile.model_validate(yaml.safe_load(text))
    except ValidationError as error:
        wrong = as_rtmeter_error(error, _GraphFile.model_fields)
        raise RtmeterError(wrong.message, where=where, field="graph", remedy=wrong.remedy) from None


def graph_of(config: Mapping[str, Any]) -> Graph:
    """The graph in a cell's config."""
    stages = config["graph"]["stages"]
    return Graph(
        tuple(Stage(s["name"], s["kind"], tuple(s["inputs"]), s["period_ns"], s["offset_ns"]) for s in stages)
    )
