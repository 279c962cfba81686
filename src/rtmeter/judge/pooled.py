"""Repeated runs judged as one, where they are shown to be equivalent."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rtmeter.judge.environment import differences
from rtmeter.judge.verdict import judge_run
from rtmeter.model import Requirement, Verdict
from rtmeter.results import store
from rtmeter.results.cells import StoredCell
from rtmeter.statistics.judged import JudgedRun, judged_run
from rtmeter.statistics.order import Values
from rtmeter.statistics.pooling import POOLED, Pooling, pooling

DEFAULT_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class Pool:
    """What became of pooling: the verdict of all runs together, or why there is none."""

    verdict: Verdict | None
    words: str


def judge_pooled(
    cells: Sequence[StoredCell],
    requirement: Requirement,
    margin: float,
    read: store.Read = store.chunks,
    horizon_hours: float | None = None,
) -> Pool:
    """Judges repeats (two at least) as one run if their quantiles differ by less than ``margin``, a share.

    All of them are read into memory. What refuses a bound of one run refuses that of all.
    ``horizon_hours`` as in ``judge``.
    """
    for cell in cells:
        if not cell.record.usable:
            return Pool(None, f"not pooled: {cell.folder} {cell.record.why_unusable}")
        if store.load_counted(cell.folder) is not None:
            return Pool(None, f"not pooled: {cell.folder} has no single samples")
        if unlike := differences(cells[0].record, cell.record):
            return Pool(None, f"not pooled: {unlike[0].name} differs")
    whole, parts = _joined(cells, read)
    found = pooling([part.values for part in parts], margin, requirement.confidence)
    words = f"{len(cells)} runs, {_words(found, cells)}"
    if found.outcome != "equivalent":
        return Pool(None, f"not pooled: {words}")
    virtual_machine = cells[0].record.virtual_machine
    refusals = tuple(
        replace(finding, message=f"{cell.folder}: {finding.message}")
        for cell, part in zip(cells, parts, strict=True)
        for finding in part.examine(requirement.deadline_ns).refusals
    )
    verdict = judge_run(whole, requirement, virtual_machine, refusals, horizon_hours)
    return Pool(replace(verdict, reason=f"pooled from {words}: {verdict.reason}"), f"pooled: {words}")


def _joined(cells: Sequence[StoredCell], read: store.Read) -> tuple[JudgedRun, list[JudgedRun]]:
    """The runs one after the other, and each of them as a part of that."""
    values, skipped, delays, ends = Values(), [], Values(), [0]
    for cell in cells:
        run = judged_run(cell.record.meta, read(cell.folder))
        values.append(run.values)
        skipped.append(np.zeros(len(run.values), np.bool_) if run.skipped is None else run.skipped)
        if run.delay_ns is not None:
            delays.append(run.delay_ns)
        ends.append(len(values))
    passed = np.concatenate(skipped)
    whole = replace(
        run,
        values=values.array,
        skipped=passed if passed.any() else None,
        delay_ns=delays.array if len(delays) == len(values) else None,
    )
    return whole, [_part(whole, slice(start, end)) for start, end in itertools.pairwise(ends)]


def _part(run: JudgedRun, where: slice) -> JudgedRun:
    return replace(
        run,
        values=run.values[where],
        skipped=None if run.skipped is None else run.skipped[where],
        delay_ns=None if run.delay_ns is None else run.delay_ns[where],
    )


def _words(found: Pooling, cells: Sequence[StoredCell]) -> str:
    quantiles = " and ".join(f"p{percent}" for percent in POOLED)
    within = f"within {100 * found.margin:g} % ({quantiles})"
    if found.outcome == "equivalent" or found.furthest is None:
        return f"equivalent {within}"
    first, second, quantile, lower, upper = found.furthest
    names = f"{cells[first].folder} and {cells[second].folder}"
    apart = f"{quantile} of {names} " + _by(lower, upper)
    said = {"different": f"not equivalent {within}", "not shown": f"not shown to be equivalent {within}"}
    return f"{said[found.outcome]}: {apart}"


def _by(lower: float, upper: float) -> str:
    """How far two quantiles lie apart; an end is NaN where a run is too short for it, infinite where a
    release was lost."""
    if math.isinf(lower) and math.isinf(upper):
        return "is a lost release in one of them only"
    if math.isnan(lower) or math.isnan(upper):
        return "cannot be compared: too short a run for an interval"
    low, high = ("a lost release" if math.isinf(end) else f"{100 * end:+.0f} %" for end in (lower, upper))
    return f"differs by {low} to {high}"
