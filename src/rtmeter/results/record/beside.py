"""What was beside the two ends of a round trip, and what became of the pings there."""

from __future__ import annotations

from pydantic import Field

from rtmeter.results.record.parts import RecordPart


class SubscriberSeen(RecordPart):
    """One subscriber of the pings: how many of those that were sent it received, and how many not; how many
    came again, and how many damaged (of the server null, where it does not count them)."""

    name: str
    received: int
    lost: int
    duplicate: int | None
    corrupted: int | None


class PublisherSeen(RecordPart):
    """One further publisher: how many messages it sent, how many of them the subscribers received in all, and
    how many not; how many came again, and how many damaged; and the ``identity`` that these hold."""

    name: str
    sent: int
    received: int
    lost: int
    duplicate: int
    corrupted: int
    identity: str


class NodeSeen(RecordPart):
    """One background node: how many threads its middleware had in its process, when all was set up."""

    name: str
    threads: int


class WasBeside(RecordPart):
    """What ran from before the client began until it had ended. With further subscribers how many pings were
    ``sent``, over measured releases, what each subscriber received of them (the server, unless it is a part
    of the client, and the further ones), and the ``identity`` that these hold. Of the further ``publishers``
    what became of all that each sent, from when all subscribers had heard it until the client had ended. The
    ``background_nodes``, and how many other participants or nodes the client's middleware ``knew`` before it
    began; null if it does not say. On a scripted clock background nodes and further publishers are in the
    client's process, and only counted."""

    sent: int | None = None
    subscribers: list[SubscriberSeen] = Field(default_factory=list)
    publishers: list[PublisherSeen] = Field(default_factory=list)
    identity: str | None = None
    background_nodes: list[NodeSeen] = Field(default_factory=list)
    knew: int | None = None
