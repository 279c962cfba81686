"""The kernel's stamps of messages: by CLOCK_REALTIME in a sample log, by the stamps' clock afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rtmeter.model import ABSENT
from rtmeter.statistics.quantities import Columns
from rtmeter.statistics.shared_clock import ConstantOffset

_SUFFIX = "_realtime_ns"


class KernelStamps:
    """Those of a log with these columns; ``offset``: CLOCK_REALTIME less CLOCK_MONOTONIC, None if that was
    not one number throughout."""

    def __init__(self, columns: Sequence[str], meta: Mapping[str, Any]) -> None:
        self._columns = tuple(columns)
        self.offset = offset_of(meta.get("realtime_clock"))

    @property
    def names(self) -> tuple[str, ...]:
        """The log's columns by the names that they have once told by its own clock."""
        return tuple(map(_told, self._columns))

    def told(self, columns: Columns) -> dict[str, Any]:
        """The columns by these names, int64 of shape (rows,); ABSENT where there is no offset."""
        return {_told(name): self._values(name, values) for name, values in columns.items()}

    def _values(self, name: str, values: Any) -> Any:
        if not name.endswith(_SUFFIX):
            return values
        return np.full_like(values, ABSENT) if self.offset is None else self.offset.to_own(values)


def offset_of(clock: object) -> ConstantOffset | None:
    """By ``realtime_clock`` of what a probe says (spec/probe.md)."""
    readings = clock.get("readings", ()) if isinstance(clock, Mapping) else ()
    return ConstantOffset.of(readings)


def _told(name: str) -> str:
    return name.removesuffix(_SUFFIX) + "_ns" if name.endswith(_SUFFIX) else name
