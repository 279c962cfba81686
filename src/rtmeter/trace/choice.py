"""What of the kernel's events is recorded, as it was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from rtmeter.model import TRACE_MARGIN_NS
from rtmeter.trace.events import EVERY, GROUPS


@dataclass(frozen=True, slots=True)
class TraceChoice:
    """``groups`` of trace/events.py; ``most_bytes`` of pages, of all CPUs together (None: as the recorder has
    it); ``late_ns``, of a long run: what is kept on either side of a late release."""

    groups: tuple[str, ...] = tuple(GROUPS)
    most_bytes: int | None = None
    late_ns: int = TRACE_MARGIN_NS

    @classmethod
    def of(cls, asked: Mapping[str, Any] | bool) -> Self:
        """From ``explain`` of Cell.conditions."""
        given = asked if isinstance(asked, Mapping) else {}
        return cls(
            tuple(given.get("events", GROUPS)),
            given.get("size_bytes"),
            given.get("margin_ns", TRACE_MARGIN_NS),
        )

    @property
    def left_out(self) -> tuple[str, ...]:
        """The groups that are not recorded."""
        return tuple(name for name in GROUPS if name not in self.groups)

    @property
    def events(self) -> tuple[str, ...]:
        """All that are to be recorded, where the kernel has them."""
        without = {event for name in self.left_out for event in GROUPS[name]}
        return tuple(event for event in EVERY if event not in without)
