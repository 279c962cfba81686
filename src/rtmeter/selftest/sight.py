"""Whether a measurement saw a disturbance where it was planted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtmeter.model import SERVED

Window = tuple[int, int]
"""From when to when a disturbance lasted: CLOCK_MONOTONIC, nanoseconds."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A disturbance: its name, what was done in words, how late a release must have been at least, and the
    finding that is to name it with whether it did (None: none can).

    ``windows``: when; empty if it could not be planted, and ``problem`` says why.
    """

    name: str
    done: str
    at_least_ns: int = 0
    finding: str | None = None
    was_named: bool | None = None
    windows: tuple[Window, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Sight:
    """What the measurement made of it: the largest lateness of the releases it was planted at, and of all
    others; None where there was none."""

    planted: Planted
    late_ns: int | None
    elsewhere_ns: int | None

    @property
    def outcome(self) -> str:
        """``seen``, ``not seen``, ``not named``, or ``not planted``."""
        if not self.planted.windows:
            return "not planted"
        if self.late_ns is None or self.late_ns < self.planted.at_least_ns:
            return "not seen"
        return "not named" if self.planted.was_named is False else "seen"


def sights(
    columns: Mapping[str, NDArray[np.int64]], period_ns: int, planted: Sequence[Planted]
) -> list[Sight]:
    """What a wake-up measurement saw of each; ``columns``: release_ns, wake_ns and status of a sample log,
    each of shape (releases,). Warm-up releases do not count."""
    measured = columns["status"] == SERVED
    release_ns = columns["release_ns"][measured]
    latency_ns = columns["wake_ns"][measured] - release_ns
    disturbed = np.zeros(len(release_ns), dtype=bool)
    at = []
    for one in planted:
        here = np.zeros(len(release_ns), dtype=bool)
        for begin_ns, end_ns in one.windows:
            here |= (release_ns >= begin_ns - period_ns) & (release_ns <= end_ns)
        at.append(here)
        disturbed |= here
    elsewhere_ns = _largest(latency_ns[~disturbed])
    return [
        Sight(one, _largest(latency_ns[here]), elsewhere_ns) for one, here in zip(planted, at, strict=True)
    ]


def _largest(values: NDArray[np.int64]) -> int | None:
    return int(values.max()) if len(values) else None
