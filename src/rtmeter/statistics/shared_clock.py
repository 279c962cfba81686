"""The clocks of two hosts by a third that both have read: CLOCK_TAI, or a PTP hardware clock.

Each host read it together with its own clock again and again. Between two readings the one is taken to run
steadily by the other; how wrong that is at most, the readings themselves tell. Whether the third clock shows
the same on both hosts at the same time they cannot tell: that is what synchronised it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from rtmeter.model import ABSENT
from rtmeter.statistics.clock_offset import MOST_DRIFT
from rtmeter.statistics.quantities import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """A host's ``own`` clock and the ``other`` one at the same moments, shape (readings,), ascending; each
    was read within ``spans`` nanoseconds around the own one."""

    own: Ints
    other: Ints
    spans: Ints

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Self | None:
        """[own, other, span] a reading; None if there are fewer than two, or time did not go on: a clock was
        set, or the probe was killed."""
        if len(rows) < 2:
            return None
        own, other, spans = np.array(rows, dtype=np.int64).T
        passed, ahead = np.diff(own), np.diff(other - own)
        is_steady = np.abs(ahead) <= MOST_DRIFT * passed + spans[:-1] + spans[1:]
        return cls(own, other, spans) if (passed > 0).all() and is_steady.all() else None

    def to_other(self, stamps: Ints) -> Ints:
        """Stamps of the own clock by the other; ABSENT where it was not read before and after."""
        return _told(stamps, self.own, self.other)

    def to_own(self, stamps: Ints) -> Ints:
        """Stamps of the other clock by the own one; likewise."""
        return _told(stamps, self.other, self.own)

    @property
    def error_ns(self) -> float:
        """How far a stamp brought from one to the other is off at most: by half the time that a reading took,
        and by what the clocks did between two readings. A clock that bends by some amount at a reading
        (compared with the line between its neighbours) may have done all of it, twice that, before."""
        ahead = (self.other - self.own - (self.other[0] - self.own[0])).astype(np.float64)
        share = (self.own[1:-1] - self.own[:-2]) / (self.own[2:] - self.own[:-2])
        bent = np.abs(ahead[1:-1] - ahead[:-2] - share * (ahead[2:] - ahead[:-2]))
        return float(self.spans.max() / 2 + 2 * bent.max(initial=0.0))


@dataclass(frozen=True, slots=True)
class ConstantOffset:
    """A clock that shows what another shows and ``offset_ns`` more, nowhere further from the truth than
    ``error_ns``: as CLOCK_REALTIME and CLOCK_MONOTONIC, which the kernel derives from one counter."""

    offset_ns: int
    error_ns: float

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Self | None:
        """Of readings as Readings.of() takes them, each of which bounds the offset from both sides; None if
        none fits all of them: one of the clocks was set."""
        if not len(rows):
            return None
        own, other, spans = np.array(rows, dtype=np.int64).T
        first = own - spans // 2
        least, most = int((other - first - spans).max()), int((other - first).min())
        return cls((least + most) // 2, (most - least) / 2 + 1) if least <= most else None

    def to_own(self, stamps: Ints) -> Ints:
        """Stamps of the clock as the other would have shown them; ABSENT stays."""
        return np.where(stamps == ABSENT, ABSENT, stamps - self.offset_ns)


@dataclass(frozen=True, slots=True)
class SharedClock:
    """The clock that is called ``name``, as the two hosts of a round trip read it."""

    name: str
    client: Readings
    server: Readings

    def to_client(self, stamps: Ints) -> Ints:
        """Stamps of the server's clock as the client's would have shown them; ABSENT stays, and stands where
        the clock was not read before and after."""
        return self.client.to_own(self.server.to_other(stamps))

    @property
    def error_ns(self) -> float:
        """How far a stamp is off at most if the clock shows the same on both hosts."""
        return self.client.error_ns + self.server.error_ns + 1

    def line(self) -> tuple[int, int, float]:
        """The server's clock less the client's: (at the client's first reading, how much), and how that
        grows until its last one, seconds a second."""
        ends = self.client.own[[0, -1]]
        theirs = np.interp(
            self.client.other[[0, -1]] - self.server.other[0],
            self.server.other - self.server.other[0],
            self.server.own - self.server.own[0],
        )
        first, last = (round(float(value)) for value in theirs)
        drift = (last - first) / int(ends[1] - ends[0]) - 1
        return int(ends[0]), first + int(self.server.own[0] - ends[0]), drift


def _told(stamps: Ints, here: Ints, there: Ints) -> Ints:
    """What the clock ``there`` showed when ``here`` showed the stamps, by readings of both."""
    ahead = (there - here - (there[0] - here[0])).astype(np.float64)  # floats shall not lose nanoseconds
    inside = (stamps != ABSENT) & (stamps >= here[0]) & (stamps <= here[-1])
    at = np.where(inside, stamps - here[0], 0).astype(np.float64)
    moved = np.interp(at, (here - here[0]).astype(np.float64), ahead)
    told = stamps + (there[0] - here[0]) + np.rint(moved).astype(np.int64)
    return np.where(inside, told, ABSENT)
