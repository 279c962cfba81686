"""Which releases of a long run keep their events: the late ones, and as many of those in time, at random."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable
from typing import NamedTuple

from rtmeter.model import TRACE_MARGIN_NS

MOST_IN_TIME = 2000
"""Releases in time that late ones are compared with."""

FEWEST_IN_TIME = 200
"""Of these at least the half stays as long as there are late ones that could go."""

LEAD_NS = 3_000_000
"""Before a release, at least: who runs, and what the timer was set to, stands there."""

TRAIL_NS = 1_000_000
"""After its stamp."""

LATE_NS = TRACE_MARGIN_NS
"""More on either side of a late one: whether a thread that ran meanwhile was inside the kernel is told by the
system calls that it entered or left last, or next."""

_MOST_LEAD_NS = 1_000_000_000


class Span(NamedTuple):
    """A release with what surrounds it."""

    k: int
    from_ns: int
    to_ns: int
    late: bool


def span_of(
    k: int,
    before_ns: int | None,
    release_ns: int,
    stamp_ns: int,
    *,
    late: bool,
    late_ns: int = LATE_NS,
) -> Span:
    """``before_ns``: the release before that was served, from where the thread's last sleep is told, unless
    that is more than a second; ``late_ns``: more on either side of a late one."""
    from_ns = release_ns - LEAD_NS
    if before_ns is not None:
        from_ns = max(min(from_ns, before_ns - TRAIL_NS), release_ns - _MOST_LEAD_NS)
    more_ns = late_ns if late else 0
    return Span(k, from_ns - more_ns, max(stamp_ns, release_ns) + TRAIL_NS + more_ns, late)


class Chooser:
    """Every release that was served passes through it once, in order of k. Each draws a number; of those in
    time the ``most`` lowest stay: a sample of all so far, each as likely as any other. thin() makes room."""

    def __init__(self, most: int = MOST_IN_TIME, seed: int = 0, late_ns: int = LATE_NS) -> None:
        self._dice, self._most, self._late_ns = random.Random(seed), most, late_ns
        self._in_time: list[tuple[float, Span]] = []
        """A heap; the highest number, negated, first."""
        self._late: list[tuple[float, Span]] = []
        self.share = 1.0
        """Of the late releases that stay."""
        self.settled_ns: int | None = None
        """No release that is yet to come asks for events before."""

    def add(self, spans: Iterable[Span]) -> None:
        """Those that are known now."""
        for span in spans:
            drawn = self._dice.random()
            if span.late:
                if drawn < self.share:
                    self._late.append((drawn, span))
            elif len(self._in_time) < self._most:
                heapq.heappush(self._in_time, (-drawn, span))
            elif self._in_time and drawn < -self._in_time[0][0]:
                heapq.heapreplace(self._in_time, (-drawn, span))
            self.settled_ns = span.from_ns - (0 if span.late else self._late_ns)

    def thin(self) -> None:
        """Half of those in time go, at random; where few are left (FEWEST_IN_TIME), half of the late ones: of
        the last two one stays."""
        if self._most > FEWEST_IN_TIME or not self._late:
            self._most = min(self._most, len(self._in_time)) // 2
            while len(self._in_time) > self._most:
                heapq.heappop(self._in_time)
        else:
            self._late.sort()
            stay = len(self._late) // 2
            self.share = self._late[stay][0]  # the lowest number of those that go
            del self._late[stay:]

    @property
    def kept(self) -> list[Span]:
        """Those that stay, in order of k."""
        return sorted(span for _, span in (*self._in_time, *self._late))
