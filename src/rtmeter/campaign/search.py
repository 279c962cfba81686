"""The largest value that passes, by bisection: which value is to be tried next."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

_FEW_WAYS = 1e-3
"""How near is near enough for all ways to be gone in no time, some ten thousand of them."""

_NEAR_THE_LEAST = 64
"""So many limits above the least value are looked at for the way of a rate that takes longest."""


@dataclass(frozen=True, slots=True)
class Search:
    """Of the whole values from ``low`` to ``high`` the largest that is known to pass, and the least that is
    known not to; ``within``: how far they may lie apart, as a share of the first, to be near enough.

    What passes is taken to pass at every smaller value, too.
    """

    low: int
    high: int
    within: float = 0.0
    passes: int | None = None
    fails: int | None = None

    def next(self) -> int | None:
        """The value to try: the largest first, then between the two, at equal ratios while they are more
        than twice apart; None when it is found, or that even ``low`` does not pass."""
        if self.passes is None and self.fails is None:
            return self.high
        if self.fails is None or self.fails == self.low:
            return None
        below = self.low - 1 if self.passes is None else self.passes
        near = 1 + self.within
        if self.fails - below <= 1 or (self.passes is not None and self.fails <= near * self.passes):
            return None
        if self.passes is None and self.fails <= near * self.low:
            return self.low
        far = self.fails > 2 * max(below, 1)
        middle = math.isqrt(max(below, 1) * self.fails) if far else (below + self.fails) // 2
        return min(max(middle, below + 1), self.fails - 1)

    def narrowed(self, value: int, *, passed: bool) -> Search:
        """What is known once the value was tried."""
        return replace(self, passes=value) if passed else replace(self, fails=value)

    def left(self) -> list[list[int]]:
        """The values that are still to be tried if none passes, which are the fewest, and the most that there
        may be."""
        return [self._path(lambda _: False), self._longest()]

    def slowest(self) -> list[int]:
        """The values that are still to be tried of a rate on the way that takes longest, where each has as
        many releases: one that ends near the least value, and not always at it."""
        limits = range(self.low - 1, min(self.high, self.low + _NEAR_THE_LEAST) + 1)
        paths = [self._path(lambda value, limit=limit: value <= limit) for limit in limits]  # type: ignore[misc]
        return max(paths, key=lambda path: sum(1 / value for value in path))

    def _longest(self) -> list[int]:
        """Without ``within`` those of all but ``high`` passing; else every way is gone, unless there are very
        many: then as without, which takes no fewer."""
        if self.within < _FEW_WAYS:
            return replace(self, within=0.0)._path(lambda value: value < self.high)
        value = self.next()
        if value is None:
            return []
        ways = (self.narrowed(value, passed=passed)._longest() for passed in (True, False))
        return [value, *max(ways, key=len)]

    def _path(self, passes: Callable[[int], bool]) -> list[int]:
        path, search = [], self
        while (value := search.next()) is not None:
            path.append(value)
            search = search.narrowed(value, passed=passes(value))
        return path
