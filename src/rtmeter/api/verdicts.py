"""Conditions judged by their samples or by what is stored: a cell, or all repeats of one together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

from rtmeter.errors import RtmeterError
from rtmeter.judge.cell import judge_cell, stored_verdict
from rtmeter.judge.conditions import in_one_line
from rtmeter.judge.joint import judge_condition
from rtmeter.judge.next_step import next_step
from rtmeter.judge.points import worst_of
from rtmeter.model import Requirement, Verdict
from rtmeter.results import condition_words, store
from rtmeter.results.cells import StoredCell, conditions
from rtmeter.values import as_json

_NO_REQUIREMENT = "it has no requirement of its own, and no --deadline was given"

Reading = Callable[[], AbstractContextManager[store.ReadSamples]]
"""Who reads samples; the command line's tells how far it is."""


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """The judgement of a condition: of a cell, or of all its repeats together.

    ``path``: its folder, or those of all repeats; ``conditions``: what it holds for; ``verdict``: None if
    nothing was required; ``meanwhile``: what others did to the machine; ``worst_ns``: the maximum of the
    judged quantity, None where none is known; ``next``: the one step that can help, None after a pass;
    ``of_repeats``: makes ``repeats``, which of many cells nobody may ask for.
    """

    id: str
    status: str
    measurement: str
    adapter: str
    path: str | list[str]
    conditions: list[str]
    verdict: Verdict | None
    meanwhile: tuple[str, ...] = ()
    worst_ns: float | str | None = None
    next: str | None = None
    of_repeats: Callable[[], tuple[CellVerdict, ...]] = tuple

    @property
    def repeats(self) -> tuple[CellVerdict, ...]:
        """Of each repeat its own; the cell alone has none."""
        return self.of_repeats()

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
        keys = ("id", "status", "measurement", "adapter", "path", "conditions", "meanwhile", "worst_ns")
        about: dict[str, Any] = {key: getattr(self, key) for key in (*keys, "next")}
        if repeats := self.repeats:
            about["repeats"] = [one.to_json() for one in repeats]
        unjudged = {"outcome": self.outcome, "reason": self.reason, "n": 0}
        document: dict[str, Any] = as_json(about | (asdict(self.verdict) if self.verdict else unjudged))
        return document


def verdicts(
    cells: Sequence[StoredCell],
    asked: Mapping[str, Any],
    *,
    horizon_hours: float | None = None,
    anew: bool = False,
    reading: Reading = lambda: nullcontext(store.chunks),
) -> Iterator[CellVerdict]:
    """Each condition judged by what is asked (fields of ``Requirement``), without a deadline by its own
    requirement, but for the fields that are asked: repeats of a cell are one.

    ``horizon_hours``: once in which time the return level is passed; ``anew``: also from the samples where
    the verdict that is stored with a cell is the same. Raises RtmeterError if there is no requirement.
    """
    anew = anew or horizon_hours is not None
    if "deadline_ns" not in asked and not any(cell.record.requirement for cell in cells):
        below = os.path.commonpath([cell.folder for cell in cells])
        message = f"is missing, and no cell of {below} has a requirement of its own"
        raise RtmeterError(message, field="deadline", remedy="give a deadline, e.g. 1ms")
    for runs in conditions(cells):
        each = [_judged(run, asked, horizon_hours, anew, reading) for run in runs]
        if len(each) == 1 or len({verdict.requirement if verdict else None for verdict in each}) > 1:
            yield from _of_each(runs, each)
        else:
            yield _of_all(runs, each)


def _judged(
    cell: StoredCell,
    asked: Mapping[str, Any],
    horizon_hours: float | None,
    anew: bool,
    reading: Reading,
) -> Verdict | None:
    """The verdict of one run; None if nothing is required of it."""
    own = cell.record.requirement
    required = Requirement(**asked) if "deadline_ns" in asked else own and replace(own, **asked)
    verdict = None if anew else stored_verdict(cell, required)
    if verdict is None and required is not None:
        with reading() as read:
            verdict = judge_cell(cell.record, cell.folder, required, read, horizon_hours)
    return verdict


def _of_all(runs: Sequence[StoredCell], each: Sequence[Verdict | None]) -> CellVerdict:
    """Of the repeats of a cell, by the verdict of each."""
    first, statuses = runs[0].record, [run.record.status for run in runs]
    known = [verdict for verdict in each if verdict is not None]
    worst = [one for run in runs if (one := worst_of(run.record)) is not None]
    verdict = judge_condition([run.record for run in runs], known) if known else None
    return CellVerdict(
        first.name,
        next((status for status in statuses if status != "complete"), "complete"),
        first.measurement,
        first.adapter,
        [str(run.folder) for run in runs],
        [f"{len(runs)} runs, each", *in_one_line(*(run.record for run in runs))],
        verdict,
        _meanwhile(*runs),
        "lost" if "lost" in worst else max((one for one in worst if not isinstance(one, str)), default=None),
        _next(verdict, runs),
        lambda: tuple(_of_each(runs, each)),
    )


def _of_each(runs: Sequence[StoredCell], each: Sequence[Verdict | None]) -> Iterator[CellVerdict]:
    for run, verdict in zip(runs, each, strict=True):
        record = run.record
        about = (record.id, record.status, record.measurement, record.adapter, str(run.folder))
        yield CellVerdict(
            *about, in_one_line(record), verdict, _meanwhile(run), worst_of(record), _next(verdict, [run])
        )


def _next(verdict: Verdict | None, runs: Sequence[StoredCell]) -> str | None:
    return None if verdict is None or verdict.outcome == "pass" else next_step(verdict, runs)


def _meanwhile(*cells: StoredCell) -> tuple[str, ...]:
    """What a run tells; of several runs the one of which others took most, by name."""
    in_words = [(cell.record, "; ".join(condition_words.meanwhile(cell.record.endured))) for cell in cells]
    known = [(record, said) for record, said in in_words if said]
    if len({said for _, said in known}) < 2:
        return tuple(said for _, said in known[:1])
    most, said = max(known, key=lambda one: condition_words.taken_much(one[0].endured)[0])
    return (f"at most, in {most.id}: {said}",)
