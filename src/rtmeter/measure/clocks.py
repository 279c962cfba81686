"""Whether the two ends of a round trip read the same clock and, if not, what the one says of the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rtmeter.model import ABSENT, Doubt
from rtmeter.samples import LogReader, exchanges
from rtmeter.statistics.clock_offset import ClockOffset, Exchanges
from rtmeter.statistics.quantities import Ints
from rtmeter.values import format_duration

_READS = ("boot_id", "time_namespace")
"""Facts of a machine by which processes are known to read the same CLOCK_MONOTONIC."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """The server's clock as seen from the client's: the same one, another by ``offset``, or (None)
    another that cannot be compared."""

    same: bool
    offset: ClockOffset | None = None

    def to_client(self, stamps: Ints) -> Ints:
        """The server's stamps as the client's clock would have shown them; ABSENT where that is not known."""
        if self.same:
            return stamps
        return np.full_like(stamps, ABSENT) if self.offset is None else self.offset.to_ours(stamps)

    def facts(self) -> dict[str, Any]:
        """``clock_offset`` of cell.json."""
        return {"same_clock": self.same} | (asdict(self.offset) if self.offset else {})

    def doubts(self) -> list[Doubt]:
        """What the one-way legs of a round trip are worth."""
        if self.same:
            return []
        if self.offset is None:
            message = "the clocks of client and server have no steady offset: one-way legs are not stated"
            return [Doubt("one_way_refused", message, "was a clock set, or did nothing come back?")]
        within = format_duration(round(self.offset.error_ns))
        message = f"client and server have clocks of their own: ping and pong are known to within {within}"
        return [Doubt("clock_offset", message, "their offset follows from the round trips themselves")]


def compare(client_log: Path, server_log: Path) -> Clocks:
    """The clocks of the two logs. Raises RtmeterError if one cannot be read."""
    client, server = (LogReader(log).header.get("machine", {}) for log in (client_log, server_log))
    if _known(client) == _known(server):
        return Clocks(same=True)
    found = Exchanges()
    for stamps in exchanges(client_log, server_log):
        found.add(*stamps)
    return Clocks(same=False, offset=found.offset())


def _known(machine: Mapping[str, Any]) -> list[Any]:
    return [machine.get(key) for key in _READS]
