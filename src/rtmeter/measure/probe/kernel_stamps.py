"""What the kernel's stamps of a round trip's messages are worth."""

from __future__ import annotations

from typing import Any

from rtmeter.model import Doubt
from rtmeter.samples.kernel_stamps import offset_of
from rtmeter.samples.meta import LogMeta


def facts(client: LogMeta, server: LogMeta | None) -> dict[str, dict[str, Any]] | None:
    """``kernel_stamps`` of cell.json; None where nobody asked for any."""
    found = {}
    for end, meta in (("client", client), ("server", server)):
        if meta is not None and meta.realtime_clock:
            offset = offset_of(meta.realtime_clock)
            found[end] = {
                "offset_ns": offset.offset_ns if offset else None,
                "error_ns": offset.error_ns if offset else None,
            }
    return found or None


def doubts(found: dict[str, dict[str, Any]] | None) -> list[Doubt]:
    """Of an end whose CLOCK_REALTIME was set: what the kernel stamped by it is not told."""
    return [
        Doubt(
            "kernel_stamps_refused",
            f"CLOCK_REALTIME of the {end} was set while it was measured: the kernel's stamps are not stated",
            "end what steps the clock (ntpdate, chronyc makestep, date), then measure again",
        )
        for end, one in (found or {}).items()
        if one["offset_ns"] is None
    ]
