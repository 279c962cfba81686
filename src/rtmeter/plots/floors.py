"""What a report says of the floor under each middleware: middleware = floor + X."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rtmeter.results import words

QUANTILES = ("p50", "p99", "p99.9", "p99.99")


@dataclass(frozen=True, slots=True)
class X:
    """The shift of a quantile with its interval, nanoseconds; an end is NaN where the runs are too short."""

    shift_ns: float
    lower_ns: float
    upper_ns: float

    @property
    def known(self) -> bool:
        """Whether the interval has an end at all."""
        return not (math.isnan(self.lower_ns) and math.isnan(self.upper_ns))

    @property
    def interval(self) -> str:
        """From where to where it lies, in microseconds."""
        lower, upper = words.us(self.lower_ns), words.us(self.upper_ns)
        if math.isnan(self.upper_ns):
            return f"{lower} at least; too short a run for the upper end"
        if math.isnan(self.lower_ns):
            return f"{upper} at most; too short a run for the lower end"
        return f"{lower} to {upper}"


@dataclass(frozen=True, slots=True)
class FloorLayer:
    """A cell over its floor; ``pairs`` of runs, measured in turn or not; ``xs`` as QUANTILES, empty where
    ``refusal`` says why there are none."""

    cell: str
    floor: str
    transport: str | None
    floor_transport: str | None
    quantity: str
    pairs: int
    in_turn: bool
    confidence: float
    xs: tuple[X, ...]
    refusal: str | None = None

    @property
    def other_transport(self) -> bool:
        return self.transport != self.floor_transport


@dataclass(frozen=True, slots=True)
class Floor:
    """All that is known of a report's floors; ``without``: the cells that have none."""

    layers: tuple[FloorLayer, ...] = ()
    without: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.layers or self.without or self.refused)
