"""Clocks that were set while a tool measured: the level of the latencies steps, and stays there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rtmeter.statistics.quantities import Ints

STEP_NS = 100_000_000
"""No delay is that sudden, and no release that early."""

_BLOCK = 32
_ACROSS = 3
"""Of so many blocks at most the neighbours two apart differ because of one step."""
_BEYOND = 10


@dataclass(frozen=True, slots=True)
class Step:
    """A jump of ``by_ns`` at about sample ``at``; ``stays``: what follows keeps its level up to the next one,
    and what was before it never comes again."""

    at: int
    by_ns: float
    stays: bool


def steps(samples: Ints) -> Iterator[Step]:
    """The steps of samples in order, shape (n,): from one block of them to the next but one, by more than
    STEP_NS and by far more than elsewhere. What goes on to rise or fall is none."""
    if len(samples) < 2 * _BLOCK:
        return
    whole = len(samples) // _BLOCK
    medians = np.median(samples[: whole * _BLOCK].reshape(whole, _BLOCK), axis=1)
    medians = np.append(medians, np.median(samples[-_BLOCK:]))  # the last one, which may overlap
    jumps = medians[2:] - medians[:-2]  # a block with the step in it lies between
    large = np.abs(jumps) > STEP_NS
    if not large.all():
        large &= np.abs(jumps) > _BEYOND * np.median(np.abs(jumps[~large]))
    signs = np.sign(jumps) * large
    edges = np.flatnonzero(np.diff(signs, prepend=0, append=0))
    runs = [(first, end) for first, end in pairwise(edges) if signs[first]]
    ends = [*(int(first + 1) * _BLOCK for first, _ in runs), len(samples)]
    starts = [0, *(min((end + 1) * _BLOCK, len(samples) - _BLOCK) for _, end in runs)]
    parts = [samples[start:end] for start, end in zip(starts, ends, strict=True)]
    for number, (first, end) in enumerate(runs):
        if end - first > _ACROSS:
            continue
        by_ns = max(jumps[first:end], key=abs)
        before, after = parts[number : number + 2]
        stays = _flat(after, by_ns) and min(_apart(before, after), _apart(before, parts[-1])) > STEP_NS
        yield Step(ends[number], float(by_ns), stays)


def _apart(before: Ints, after: Ints) -> float:
    return abs(float(np.median(after) - np.median(before))) if len(before) else 0.0


def _flat(part: Ints, by_ns: float) -> bool:
    """Whether both halves have one level: their medians differ by little beside the step, or beside how the
    values scatter. Of what falls back steadily they differ by as much as half of all values do."""
    if len(part) < _BLOCK:
        return False
    first, last = (float(np.median(half)) for half in np.array_split(part, 2))
    lower, upper = np.quantile(part, (0.25, 0.75))
    return bool(abs(last - first) <= max(abs(by_ns) / 100, (upper - lower) / 2))
