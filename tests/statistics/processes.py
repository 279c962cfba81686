"""Stationary processes of known truth: marginal distribution, extremal index, and what is planted in them.

Values are int64 nanoseconds of the size of a latency, shape (n,). Each marginal comes as a quantile
function of the upper tail, so that a miss ratio's deadline and a return level are known exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import expon, genpareto
from scipy.stats.distributions import rv_frozen

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Generator = np.random.Generator

SCALE_NS = 50_000.0


def exponential(tail: Floats) -> Floats:
    """The value in ns that is exceeded with probability ``tail``; likewise below."""
    return -SCALE_NS * np.log(tail)


def lognormal(tail: Floats) -> Floats:
    return SCALE_NS * np.exp(-0.5 * ndtri(tail))


def pareto(tail: Floats) -> Floats:
    """Generalised Pareto with shape 0.2."""
    return SCALE_NS / 0.2 * (tail**-0.2 - 1)


def two_modes(tail: Floats) -> Floats:
    """95 in 100 exponential; 5 in 100 from a second mode, far beyond it: 1 ms and more."""
    slow = 0.05
    body = -SCALE_NS * np.log(np.clip((tail - slow) / (1 - slow), 1e-12, None))
    late = 1e6 - 2 * SCALE_NS * np.log(np.minimum(tail / slow, 1))
    return np.where(tail < slow, late, np.minimum(body, 1e6))


MARGINALS: dict[str, Callable[[Floats], Floats]] = {
    "exponential": exponential,
    "lognormal": lognormal,
    "pareto": pareto,
    "two_modes": two_modes,
}


@dataclass(frozen=True)
class Process:
    """A stationary process: a marginal and how its extremes cluster (1: independent)."""

    marginal: str
    extremal_index: float = 1.0

    @property
    def name(self) -> str:
        return self.marginal if self.extremal_index == 1 else f"{self.marginal}, {self.extremal_index}"

    def level_ns(self, tail: float) -> float:
        """The value exceeded with probability ``tail``."""
        return float(MARGINALS[self.marginal](np.array([tail]))[0])

    def draw(self, generator: Generator, n: int) -> Ints:
        tail = (
            1 - generator.random(n)
            if self.extremal_index == 1
            else armax_tail(generator, n, self.extremal_index)
        )
        return np.asarray(np.rint(MARGINALS[self.marginal](tail)), dtype=np.int64)


SECOND: dict[str, rv_frozen] = {
    "5 times": expon(scale=5 * SCALE_NS),
    "10 times": expon(scale=10 * SCALE_NS),
    "heavy": genpareto(0.2, scale=3 * SCALE_NS),
    "1 ms later": expon(1e6, SCALE_NS),
}
"""What the second cause of lateness draws: exponential with a larger scale, Pareto with shape 0.2 and three
times the scale, or an exponential mode of its own."""


@dataclass(frozen=True)
class RareCause:
    """Independent exponential values, a ``share`` of them drawn from another cause instead."""

    kind: str
    share: float

    @property
    def name(self) -> str:
        return f"{self.kind}, 1 in {round(1 / self.share):,}"

    def level_ns(self, tail: float) -> float:
        """The value exceeded with probability ``tail``."""
        body, second = expon(scale=SCALE_NS), SECOND[self.kind]

        def beyond(value: float) -> float:
            return float((1 - self.share) * body.sf(value) + self.share * second.sf(value)) - tail

        return float(brentq(beyond, 0, 1e9))

    def draw(self, generator: Generator, n: int) -> Ints:
        values = SCALE_NS * generator.standard_exponential(n)
        late = np.flatnonzero(generator.random(n) < self.share)
        values[late] = SECOND[self.kind].isf(1 - generator.random(len(late)))
        return np.asarray(np.rint(values), dtype=np.int64)


@dataclass(frozen=True)
class Load:
    """Load that comes for ``on`` releases and goes for ``off``, on average, over independent exponential
    values: while it is there, some are 10 ms late, so many in ``RUN`` releases, on average."""

    RUN: ClassVar[int] = 20_000

    on: int
    off: int
    misses: float = 200

    @property
    def name(self) -> str:
        few = "" if self.misses == 200 else f", {self.misses:g} misses"
        return f"slow load, on for {self.on:,} of {self.RUN:,} releases and off for {self.off:,}{few}"

    @property
    def ratio(self) -> float:
        return self.misses / self.RUN

    def draw(self, generator: Generator) -> Ints:
        cycle = self.on + self.off
        spells = max(8, 4 * self.RUN // self.on)
        lengths = generator.exponential(np.tile([self.on, self.off], spells)).astype(np.int64)
        on = np.repeat(np.tile([True, False], spells), lengths)
        start = generator.integers(0, max(1, len(on) - self.RUN))  # far into it: as it is at any time
        on = np.resize(on[start:], self.RUN)
        values = Process("exponential").draw(generator, self.RUN)
        values[on & (generator.random(self.RUN) < self.ratio * cycle / self.on)] = 10_000_000
        return values


def armax_tail(generator: Generator, n: int, theta: float) -> Floats:
    """Upper-tail probabilities of X_t = max((1 - theta) X_(t-1), theta Z_t), Z unit Frechet: extremal
    index theta, geometric clusters (Beirlant et al., Statistics of Extremes, 2004, section 10.3)."""
    decay = np.log1p(-theta)
    steps = np.log(theta) - np.log(generator.standard_exponential(n))
    steps[0] -= np.log(theta)
    t = np.arange(n) * decay
    log_x = np.maximum.accumulate(steps - t) + t
    return np.asarray(-np.expm1(-np.exp(-log_x)), dtype=np.float64)


INDEPENDENT = tuple(Process(name) for name in MARGINALS)
CLUSTERED = tuple(
    Process(name, theta) for name in ("exponential", "lognormal", "pareto") for theta in (0.3, 0.4, 0.5)
)
