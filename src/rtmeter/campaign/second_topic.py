"""The key ``second_topic``: non-critical traffic of the two ends of a round trip themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from rtmeter.campaign.option_types import ABOVE_0, SIZE, STRICT, Duration, Size, as_written, mapping, one_line


class SecondTopic(BaseModel):
    """Each end sends on a topic of its own, and hears the other's. Times are nanoseconds, sizes bytes."""

    model_config = STRICT

    place: Annotated[
        Literal["same_node", "same_process"],
        Field(description="On the measured node, or on another one of the same process."),
    ]
    payload: Annotated[
        Size | None,
        Field(
            description="Payload of a message (default: the round trip's).",
            examples=["128KiB"],
            ge=8,
            le=2**30,
            serialization_alias="payload_bytes",
        ),
    ] = None
    period: Annotated[
        Duration | None,
        Field(
            description="How often each end sends one (default: the round trip's).",
            examples=["1ms"],
            serialization_alias="period_ns",
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, given: Any) -> Any:
        if isinstance(given, str):
            given = mapping(given, "place", "write e.g. place=same_node,period=1ms")
        if isinstance(given, Mapping) and "place" not in given:
            raise ValueError("does not say where", "add place: same_node or place: same_process")
        return given

    def beside(self, payload: int, period: int) -> Self:
        """What is not given, as the round trip has it."""
        return self.model_copy(update={"payload": self.payload or payload, "period": self.period or period})


_PLACE = "same_node|same_process"
_SecondTopicText = one_line(_PLACE, {"place": _PLACE, "payload": SIZE, "period": ABOVE_0}, needs="place")
SecondTopicOption = Annotated[SecondTopic, as_written(SecondTopic | _SecondTopicText)]
SECOND_TOPIC = Field(
    description="Other traffic of both ends: same_node or same_process.", examples=["same_node"]
)
"""What the option is, in help and schemas."""
