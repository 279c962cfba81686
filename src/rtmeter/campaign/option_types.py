"""The types of options: how each parses what people write, and how schemas and probe configs have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from rtmeter import values
from rtmeter.model import Measurement

STRICT = ConfigDict(extra="forbid", frozen=True, defer_build=True)
"""Of what people write: no key but those named, and never changed. Made ready for use as it is first used:
most commands never do."""


@dataclass(frozen=True, slots=True)
class For:
    """The measurements an option means something for; without this mark: all."""

    measurements: tuple[Measurement, ...]


Receive = Literal["spin", "spin_once", "listener", "poll", "call"]


def text(pattern: str, *, bare_number: bool = False, or_zero: bool = False) -> WithJsonSchema:
    """The schema of what is written so, or as a number, or as 0."""
    text: dict[str, Any] = {"type": "string", "pattern": pattern}
    number: dict[str, Any] = {"const": 0} if or_zero else {"type": "integer", "minimum": 0}
    return WithJsonSchema({"anyOf": [text, number]} if bare_number or or_zero else text, mode="validation")


def as_written(accepted: Any) -> BeforeValidator:
    """The schema of a key that may also be written as text, which the model itself reads."""
    return BeforeValidator(lambda given: given, json_schema_input_type=accepted)


def one_line(words: str, keys: Mapping[str, str], needs: str | None = None) -> Any:
    """The schema of what mapping() reads, or of one of the words: ``keys`` and how the value of each is
    written, of which one that matches ``needs`` is there."""
    pair = "|".join(rf"{key}=({value})" for key, value in keys.items())
    there = "" if needs is None else rf"(?=(.*,)?\s*({needs})=)"
    pattern = rf"^(({words})|{there}\s*({pair})\s*(,\s*({pair})\s*)*)$"
    return Annotated[str, WithJsonSchema({"type": "string", "pattern": pattern})]


def mapping(written: str, word: str, remedy: str) -> dict[str, Any]:
    """What one line says, ``cpu=8,stressors.timer=2``, as a mapping; a word by itself is the key ``word``."""
    if "=" not in written:
        return {word: written}
    found: dict[str, Any] = {}
    for part in written.split(","):
        key, equals, value = part.strip().partition("=")
        if not key or not equals or not value:
            raise ValueError(f"has {part.strip()!r}, which is no key=value", remedy)
        group, dot, name = key.partition(".")
        into = found.setdefault(group, {}) if dot else found
        if not isinstance(into, dict) or (name if dot else key) in into:
            raise ValueError(f"gives {key} twice", "give it once")
        into[name if dot else key] = value
    return found


def _probe(schema: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema(schema, mode="serialization")


TIME = r"\d+(\.\d+)?\s*(ns|us|µs|ms|s|min|h)"
ABOVE_0 = rf"(?!0+(\.0+)?\s*[a-zµ]){TIME}"
SIZE = r"\d+(\.\d+)?\s*(B|kB|MB|GB|KiB|MiB|GiB)?"
CPUS = r"\d+(-\d+)?(,\d+(-\d+)?)*"
"""How these are written."""

_DURATION = rf"^{TIME}$"
_SCHEDULING = {
    "type": "object",
    "properties": {"policy": {"enum": ["other", "fifo", "rr", "deadline"]}}
    | {"priority": {"type": "integer", "minimum": 1, "maximum": 99}}
    | {key: {"type": "integer", "minimum": 1} for key in ("runtime_ns", "deadline_ns", "period_ns")},
    "required": ["policy"],
    "additionalProperties": False,
}

Duration = Annotated[
    int,
    BeforeValidator(values.parse_positive_ns),
    text(rf"^{ABOVE_0}$"),
    _probe({"type": "integer", "minimum": 1}),
]
DurationOrZero = Annotated[
    int, BeforeValidator(values.parse_duration_ns), text(f"{_DURATION}|^0$", or_zero=True)
]
Size = Annotated[
    int,
    BeforeValidator(values.parse_size_bytes),
    text(rf"^{SIZE}$", bare_number=True),
    _probe({"type": "integer", "minimum": 0}),
]
PolicyOption = Annotated[
    values.Scheduling,
    BeforeValidator(values.parse_scheduling),
    PlainSerializer(values.Scheduling.to_probe),
    text(r"^(other|(fifo|rr):(?!0+$)\d{1,2}|deadline:[^/]+/[^/]+/[^/]+)$"),
    _probe(_SCHEDULING),
]
Cpus = Annotated[
    tuple[int, ...],
    BeforeValidator(values.parse_cpus),
    text(rf"^{CPUS}$", bare_number=True),
    _probe({"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}),
]
Ratio = Annotated[
    float,
    BeforeValidator(values.parse_share),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "string", "pattern": r"^\s*(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?\s*%?\s*$"},
            ]
        },
        mode="validation",
    ),
]
OptionText = Annotated[
    str,
    BeforeValidator(values.parse_option_text),
    WithJsonSchema({"type": ["string", "number", "boolean"]}, mode="validation"),
]

MISS_RATIO = Field(
    description="Share of releases allowed to miss the deadline (default: none).",
    examples=["1e-6"],
    ge=1e-15,
    lt=1,
    exclude=True,
)
"""As many releases as can be counted, without a miss, show none below 2.4e-15, at any confidence."""
CONFIDENCE = Field(
    description="Confidence of the verdict's bounds.", examples=["95%"], ge=0.5, le=1 - 1e-10, exclude=True
)
"""Up to what is told apart from certainty."""
Horizon = Annotated[
    float,
    Field(
        description="Fails if not even so many times the run without a further miss would meet the ratio.",
        examples=["10"],
        ge=1,
        lt=1e6,
        exclude=True,
    ),
]

TIMER_SLACK = Field(
    description="Timer slack of the measured thread and those that it creates, at normal policy (default: as "
    "rtmeter was started with, usually 50us).",
    examples=["1ns"],
    serialization_alias="timer_slack_ns",
)
SLEEP_OFFSET = Field(
    description="How far the sleeps of sleep_then_spin_some lie behind the timer's ticks (default: half a "
    "period).",
    examples=["100us"],
    serialization_alias="sleep_offset_ns",
)
MONITOR = Field(
    description="How often the machine is sampled meanwhile; 0: only before and after.",
    examples=["1s"],
    exclude=True,
)
PARTICIPANTS = Field(
    description="How many participants there are, a process each (default: 2).", examples=["2"], ge=2, le=1000
)
OTHERS = Field(
    description="Cold: all participants start anew at each release; present: the last joins the others, "
    "which are there already."
)
SharedClockName = Annotated[
    str,
    BeforeValidator(values.parse_shared_clock),
    WithJsonSchema({"type": "string", "pattern": "^(tai|/dev/.+)$"}),
]
INTERFACE = Field(description="What requests go over: a service is called, an action is given a goal.")
KERNEL_STAMPS = Field(
    description="Also when the kernel had each message, by its own stamps (SO_TIMESTAMPING; posix over udp)."
)
SHARED_CLOCK = Field(
    description="The clock that both hosts have in common, by which one-way legs go: tai (CLOCK_TAI), or a "
    "PTP hardware clock, /dev/ptpN (default: what the round trips tell).",
    examples=["tai"],
)
SERVER_SHARED_CLOCK = Field(
    description="What the server's host calls it (default: the same).", examples=["/dev/ptp1"], exclude=True
)
CONNECT_TIMEOUT = Field(
    description="How long the client looks for its server, a stage for those that it hears, or a "
    "participant for the others before the first release.",
    examples=["10s"],
    serialization_alias="connect_timeout_ns",
)
