"""Whether the two ends of a round trip read the same clock and, if not, what the one says of the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rtmeter.model import ABSENT, Doubt
from rtmeter.results.condition_words import BY_ROUND_TRIPS
from rtmeter.samples import LogReader, exchanges
from rtmeter.statistics.clock_offset import ClockOffset, Exchanges
from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.shared_clock import Readings, SharedClock
from rtmeter.values import format_duration

_READS = ("boot_id", "time_namespace")
"""Facts of a machine by which processes are known to read the same CLOCK_MONOTONIC."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """The server's clock as seen from the client's: the same one, another by the clock that both have in
    common (``shared``), or by ``offset``, as the round trips tell it, or (None) another that cannot be
    compared.

    Where it goes by a shared clock: the least time that a message took on its way by it, and how many came
    back. ``objection``: why the one that was asked for is not heeded, as (type, message).
    """

    same: bool
    offset: ClockOffset | None = None
    shared: SharedClock | None = None
    least_leg_ns: int | None = None
    exchanges: int = 0
    objection: tuple[str, str] | None = None

    def to_client(self, stamps: Ints) -> Ints:
        """The server's stamps as the client's clock would have shown them; ABSENT where that is not known."""
        if self.same:
            return stamps
        if self.shared is not None:
            return self.shared.to_client(stamps)
        return np.full_like(stamps, ABSENT) if self.offset is None else self.offset.to_ours(stamps)

    def facts(self) -> dict[str, Any]:
        """``clock_offset`` of cell.json."""
        found: dict[str, Any] = {"same_clock": self.same}
        told = asdict(self.offset) if self.offset else {}
        if self.shared is None:
            return found | ({"by": BY_ROUND_TRIPS} if told else {}) | told
        origin_ns, offset_ns, drift = self.shared.line()
        found |= {"by": self.shared.name, "origin_ns": origin_ns, "offset_ns": offset_ns, "drift": drift}
        found |= {"error_ns": self.shared.error_ns, "exchanges": self.exchanges}
        return found | {"witness": {"exchanges": self.exchanges, "least_leg_ns": self.least_leg_ns} | told}

    def doubts(self) -> list[Doubt]:
        """What the one-way legs of a round trip are worth."""
        if self.same:
            return []
        found = []
        if self.objection is not None:
            hint = "they go by the round trips; synchronise both hosts (ptp4l, phc2sys), then measure again"
            found.append(Doubt(*self.objection, hint))
        if self.shared is not None:
            found.append(self._doubt_of_shared(self.shared))
        elif self.offset is None:
            message = "the clocks of client and server have no steady offset: one-way legs are not stated"
            found.append(Doubt("one_way_refused", message, "was a clock set, or did nothing come back?"))
        else:
            within = format_duration(round(self.offset.error_ns))
            message = (
                f"client and server have clocks of their own: ping and pong are known to within {within}"
            )
            found.append(
                Doubt("clock_offset", message, "their offset follows from the round trips themselves")
            )
        return found

    def _doubt_of_shared(self, shared: SharedClock) -> Doubt:
        within = format_duration(round(shared.error_ns))
        message = f"ping and pong go by {shared.name} of both hosts: reading it adds up to {within}"
        if self.offset is not None:
            limit = format_duration(round(self.offset.error_ns))
            message += f"; the round trips, which know the offset to within {limit}, bear it out"
        hint = "how far it differs between the hosts is not in that: see what ptp4l and phc2sys log"
        return Doubt("shared_clock", message, hint)


def compare(client_log: Path, server_log: Path) -> Clocks:
    """The clocks of the two logs. Raises RtmeterError if one cannot be read."""
    client, server = (LogReader(log).meta for log in (client_log, server_log))
    if _known(client) == _known(server):
        return Clocks(same=True)
    shared, objection = _shared(client.get("shared_clock"), server.get("shared_clock"))
    found, legs = Exchanges(), []
    for stamps in exchanges(client_log, server_log):
        found.add(*stamps)
        if shared is not None:
            legs += _least_legs(shared, *stamps)
    offset, least_ns = found.offset(), min(legs, default=None)
    if shared is not None and least_ns is not None and least_ns < -shared.error_ns:
        early = format_duration(-least_ns)
        message = f"by {shared.name} of both hosts a message came {early} before it was sent: they differ"
        shared, objection = None, ("shared_clock_contradicted", message)
    if shared is None:
        return Clocks(same=False, offset=offset, objection=objection)
    return Clocks(False, offset, shared, least_ns, found.count)


def _shared(client: object, server: object) -> tuple[SharedClock | None, tuple[str, str] | None]:
    """The clock that both have in common, if one was asked for; else why it cannot be heeded."""
    if not isinstance(client, Mapping) or not isinstance(server, Mapping):
        return None, None
    names = [str(one.get("id")) for one in (client, server)]
    here, there = (Readings.of(one.get("readings", ())) for one in (client, server))
    if here is not None and there is not None:
        return SharedClock(" and ".join(dict.fromkeys(names)), here, there), None
    whose = f"{names[0]} of the client" if here is None else f"{names[1]} of the server"
    return None, ("shared_clock_refused", f"{whose} was set while it was measured, or not read to the end")


def _least_legs(
    shared: SharedClock, sent: Ints, server_received: Ints, server_sent: Ints, received: Ints
) -> list[int]:
    """Of both ways the shortest time by the shared clock, where there is one."""
    arrived, left = shared.to_client(server_received), shared.to_client(server_sent)
    both = ((arrived - sent)[arrived != ABSENT], (received - left)[left != ABSENT])
    return [int(legs.min()) for legs in both if len(legs)]


def _known(meta: Mapping[str, Any]) -> list[Any]:
    machine = meta.get("machine", {})
    return [machine.get(key) for key in _READS]
