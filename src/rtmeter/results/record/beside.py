"""What was beside the two ends of a round trip, and what became of the pings there."""

from __future__ import annotations

from rtmeter.results.record.parts import RecordPart


class SubscriberSeen(RecordPart):
    """One subscriber of the pings: how many of those that were sent it received, and how many not; how many
    came again, and how many damaged (of the server null, where it does not count them)."""

    name: str
    received: int
    lost: int
    duplicate: int | None
    corrupted: int | None


class Beside(RecordPart):
    """How many pings were ``sent``, over measured releases, and what each subscriber received of them: the
    server, unless it is a part of the client, and the further ones; and the ``identity`` that these hold."""

    sent: int
    subscribers: list[SubscriberSeen]
    identity: str
