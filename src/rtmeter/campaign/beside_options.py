"""The options that say what is beside the two ends of a round trip."""

from pydantic import Field

BESIDE = {"subscribers": 1, "publishers": 1, "background_nodes": 0}
"""The options that say how many there are beside the two ends of a round trip, each with the number that
needs no further process."""
BACKGROUND_NODES = Field(
    description="Nodes or participants that do nothing, a process each (default: 0).",
    examples=["8"],
    ge=0,
    le=1000,
)
PUBLISHERS = Field(
    description="Publishers of the pings' topic: the client, and further ones that nobody answers, a process "
    "each (default: 1).",
    examples=["4"],
    ge=1,
    le=1000,
)
SUBSCRIBERS = Field(
    description="Subscribers of the pings: the server, and further ones, a process each (default: 1).",
    examples=["4"],
    ge=1,
    le=1000,
)
