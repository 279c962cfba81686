"""The key ``explain``: how the kernel's events are recorded while a cell is measured."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from rtmeter.campaign.option_types import ABOVE_0, SIZE, STRICT, Duration, Size, mapping, one_line, text
from rtmeter.model import TRACE_BYTES, TRACE_MARGIN_NS

EVENTS = ("interrupts", "softirqs", "timers", "system_calls", "page_faults", "new_threads", "lent_priorities")
"""What may be left out of a recording (trace/events.py)."""

_ON, _OFF = (True, "true", "yes", "on"), (False, "false", "no", "off")
_REMEDY = "write e.g. size=1GiB,margin=50ms,events=interrupts+timers"


def _parse_events(written: Any) -> tuple[str, ...]:
    remedy = f"choose among {', '.join(EVENTS)}, joined by +"
    if not isinstance(written, str | list | tuple):
        raise ValueError("is no list of events", remedy)
    names = written.split("+") if isinstance(written, str) else written
    for name in names:
        if name not in EVENTS:
            raise ValueError(f"has {name!r}, which the kernel is not asked for", remedy)
    return tuple(name for name in EVENTS if name in names)


Events = Annotated[tuple[str, ...], BeforeValidator(_parse_events), text(r"^[a-z_]+(\+[a-z_]+)*$")]


class ExplainAsked(BaseModel):
    """What of the kernel's events is recorded. Times are nanoseconds, sizes bytes."""

    model_config = STRICT

    events: Annotated[
        Events,
        Field(
            description="Which events besides switches and wakings (default: all): what is left out cannot "
            "be told, and costs nothing.",
            examples=["interrupts+timers"],
        ),
    ] = EVENTS
    size: Annotated[
        Size,
        Field(
            description="Room for the kernel's pages while it records (default: 256MiB).",
            examples=["1GiB"],
            ge=16 << 20,
            le=2**40,
        ),
    ] = TRACE_BYTES
    margin: Annotated[
        Duration,
        Field(
            description="Of a long run: how much is kept on either side of a late release (default: 20ms).",
            examples=["50ms"],
            le=10**10,
        ),
    ] = TRACE_MARGIN_NS

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, given: Any) -> Any:
        if given in _ON:
            return {}
        if isinstance(given, str):
            given = mapping(given, "events", _REMEDY)
        return given

    def asked(self) -> dict[str, Any] | bool:
        """As Cell.conditions has it: True, or what is not as it is by default."""
        found: dict[str, Any] = {}
        if self.events != EVENTS:
            found["events"] = list(self.events)
        if self.size != TRACE_BYTES:
            found["size_bytes"] = self.size
        if self.margin != TRACE_MARGIN_NS:
            found["margin_ns"] = self.margin
        return found or True


def _unless_off(given: Any) -> Any:
    return None if given in _OFF else given


_EVENT = "|".join(EVENTS)
_SOME = rf"({_EVENT})(\+({_EVENT}))*"
_SWITCH = "|".join(word for word in (*_ON, *_OFF) if isinstance(word, str))
_ExplainText = one_line(f"{_SWITCH}|{_SOME}", {"events": _SOME, "size": SIZE, "margin": ABOVE_0})
ExplainOption = Annotated[
    ExplainAsked | None,
    BeforeValidator(_unless_off, json_schema_input_type=bool | ExplainAsked | _ExplainText | None),
]
EXPLAIN = Field(
    description="Record the kernel's events meanwhile, for rtmeter explain; needs root.",
    examples=[True],
    exclude=True,
)
"""What the option is, in help and schemas."""

EXPLAIN_WITH = Field(
    description="The same, with size=1GiB, margin=50ms, or events=interrupts+timers.", examples=["size=1GiB"]
)
"""What the command line has beside it."""
