"""Cells judged by their samples or by what is stored, each for itself or repeats as one run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from rtmeter.errors import RtmeterError
from rtmeter.judge.cell import judge_cell, stored_verdict
from rtmeter.judge.conditions import in_one_line
from rtmeter.judge.pooled import DEFAULT_MARGIN, judge_pooled
from rtmeter.model import Requirement, Verdict
from rtmeter.results import condition_words, store
from rtmeter.results.cells import StoredCell
from rtmeter.values import as_json

_NO_REQUIREMENT = "it has no requirement of its own, and no --deadline was given"

Reading = Callable[[], AbstractContextManager[store.Read]]
"""Who reads samples; the command line's tells how far it is."""


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """The judgement of a cell, or of its repeats together.

    ``path``: its folder, or those of all that were pooled; ``conditions``: what it holds for;
    ``verdict``: None if nothing was required; ``pooled``: what became of pooling, where it was asked for;
    ``meanwhile``: what others did to the machine.
    """

    id: str
    status: str
    measurement: str
    adapter: str
    path: str | list[str]
    conditions: list[str]
    verdict: Verdict | None
    pooled: str | None = None
    meanwhile: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """``pass``, ``fail``, ``inconclusive`` or ``error``; ``unjudged`` without a requirement."""
        return self.verdict.outcome if self.verdict else "unjudged"

    @property
    def reason(self) -> str:
        """Why, in a sentence."""
        return self.verdict.reason if self.verdict else _NO_REQUIREMENT

    def to_json(self) -> dict[str, Any]:
        """As ``rtmeter verdict --json`` prints it: times in nanoseconds, null for what is infinite or no
        number."""
        keys = ("id", "status", "measurement", "adapter", "path", "conditions", "meanwhile")
        about: dict[str, Any] = {key: getattr(self, key) for key in keys}
        about |= {} if self.pooled is None else {"pooled": self.pooled}
        unjudged = {"outcome": self.outcome, "reason": self.reason, "n": 0}
        told: dict[str, Any] = as_json(about | (asdict(self.verdict) if self.verdict else unjudged))
        return told


def verdicts(
    cells: Sequence[StoredCell],
    requirement: Requirement | None,
    *,
    pool: bool = False,
    margin: float = DEFAULT_MARGIN,
    horizon_hours: float | None = None,
    anew: bool = False,
    reading: Reading = lambda: nullcontext(store.chunks),
) -> Iterator[CellVerdict]:
    """Each cell judged by the requirement, or, without one, by its own.

    ``pool``: repeats are judged as one run where their quantiles differ by less than ``margin``, a share;
    ``horizon_hours``: once in which time the return level is passed; ``anew``: also from the samples where
    the verdict that is stored with a cell is the same. Raises RtmeterError if there is no requirement.
    """
    anew = anew or horizon_hours is not None
    if requirement is None and not any(cell.record.requirement for cell in cells):
        below = os.path.commonpath([cell.folder for cell in cells])
        message = f"is missing, and no cell of {below} has a requirement of its own"
        raise RtmeterError(message, field="deadline", remedy="give a deadline, e.g. 1ms")
    groups: dict[str, list[StoredCell]] = {}
    for cell in cells:
        groups.setdefault(cell.record.name if pool else str(cell.folder), []).append(cell)
    for name, runs in groups.items():
        asked = requirement or runs[0].record.requirement
        if asked is None or len(runs) < 2:
            yield from _each(runs, requirement, horizon_hours, anew, reading)
            continue
        with reading() as read:
            found = judge_pooled(runs, asked, margin, read, horizon_hours)
        if found.verdict is None:
            yield from _each(runs, requirement, horizon_hours, anew, reading, found.words)
            continue
        statuses = [run.record.status for run in runs]
        first = runs[0].record
        yield CellVerdict(
            name,
            "interrupted" if "interrupted" in statuses else statuses[0],
            first.measurement,
            first.adapter,
            [str(run.folder) for run in runs],
            [f"{len(runs)} runs, each", *in_one_line(first)],
            found.verdict,
            found.words,
            _meanwhile(*runs),
        )


def _each(
    cells: Sequence[StoredCell],
    requirement: Requirement | None,
    horizon_hours: float | None,
    anew: bool,
    reading: Reading,
    pooled: str | None = None,
) -> Iterator[CellVerdict]:
    for cell in cells:
        record = cell.record
        verdict = None if anew else stored_verdict(cell, requirement)
        if verdict is None and (asked := requirement or record.requirement) is not None:
            with reading() as read:
                verdict = judge_cell(record, cell.folder, asked, read, horizon_hours)
        about = (record.id, record.status, record.measurement, record.adapter, str(cell.folder))
        yield CellVerdict(*about, in_one_line(record), verdict, pooled, _meanwhile(cell))


def _meanwhile(*cells: StoredCell) -> tuple[str, ...]:
    """Of each run in a part of its own; what several had in common once."""
    told = ("; ".join(condition_words.meanwhile(cell.record.conditions)) for cell in cells)
    return tuple(dict.fromkeys(words for words in told if words))
