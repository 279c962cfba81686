"""The largest value of an option that meets a requirement: cells measured where a bisection asks for them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import yaml

from rtmeter.campaign import matrix
from rtmeter.campaign.plan import Assumed, CellPlan, plan_cell
from rtmeter.campaign.ranges import option_of
from rtmeter.campaign.rules import settle
from rtmeter.campaign.search import Search
from rtmeter.errors import RtmeterError
from rtmeter.judge.joint import judge_condition
from rtmeter.measure.probe.supervise import Stop
from rtmeter.measure.run import Run, Watcher
from rtmeter.model import Campaign, Cell, Verdict
from rtmeter.results import store
from rtmeter.results.record import CellRecord
from rtmeter.statistics.bounds import beyond_the_horizon

_OF_A_RUN = ("probe", "server", "middleware")
"""Fields of errors that say what became of a run, not what was asked."""


@dataclass(frozen=True, slots=True)
class SearchAsked:
    """What is searched for: the largest ``what`` from ``low`` to ``high`` of a cell that is otherwise
    ``given`` (options as people write them, a deadline among them). A point is ``repeat`` runs, and as many
    more as would tell, up to ``most_repeats``."""

    what: str
    low: int
    high: int
    given: Mapping[str, Any]
    repeat: int
    most_repeats: int
    within: float = 0.0

    def cells(self, value: int, runs: int) -> list[Cell]:
        """So many runs at the value, each as long as `repeat` of them need to pass, unless it is given."""
        name, text = option_of(self.what, value)
        given = dict(self.given) | {name: text}
        one = self._cell(given, value, 1)
        if not given.keys() & {"samples", "duration"}:
            needed = plan_cell(one.id, [one] * self.repeat, Assumed()).needed
            assert needed is not None, "there is a requirement"
            given["samples"] = needed.releases // self.repeat
        return [self._cell(given, value, run) for run in range(1, runs + 1)]

    def planned(self, value: int) -> CellPlan:
        """Whether the runs at the value can pass at all."""
        cells = self.cells(value, self.repeat)
        return plan_cell(cells[0].id, cells, Assumed())

    def _cell(self, given: Mapping[str, Any], value: int, run: int) -> Cell:
        options = settle(given)
        if options.requirement is None:
            remedy = "give it, e.g. --deadline 1ms"
            raise RtmeterError("is missing: nothing says what passes", field="deadline", remedy=remedy)
        axes = {self.what: value} | ({"repeat": run} if self.most_repeats > 1 else {})
        cell = matrix.cell_from(options, matrix.cell_id(options, None, axes), axes)
        return replace(cell, factors={self.what: value})

    @property
    def name(self) -> str:
        """Of the campaign that the search makes: the same if its cells are."""
        about = json.dumps([dict(self.given), self.repeat], sort_keys=True, default=str)
        digest = hashlib.sha256(about.encode()).hexdigest()[:8]
        return f"largest-{self.what}-{self.given.get('measurement')}-{self.given.get('adapter')}-{digest}"


@dataclass(frozen=True, slots=True)
class Tried:
    """A value with its runs and their verdict together. ``error``: it cannot be measured, as one of its runs
    says; one that broke in its midst, twice, leaves it ``inconclusive``."""

    value: int
    cells: tuple[str, ...]
    outcome: Literal["pass", "fail", "inconclusive", "error"]
    reason: str
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Largest:
    """What a search came to. ``outcome``: ``pass`` if ``search.passes`` is the largest that does, ``fail`` if
    even the least does not, ``inconclusive`` where the evidence at a value was not enough, ``error`` if the
    least could not be measured, ``interrupted``."""

    outcome: Literal["pass", "fail", "inconclusive", "error", "interrupted"]
    search: Search
    tried: tuple[Tried, ...]
    folder: Path


Watching = Callable[[Search, Sequence[Cell]], Watcher]
"""Told of each run that starts, with what is known until then."""


def find(asked: SearchAsked, folder: Path, stop: Stop, watching: Watching) -> Largest:
    """Measures in ``folder``, the search's run, what is not there yet.

    Raises RtmeterError if a result cannot be written, or the adapter is not here.
    """
    search = Search(asked.low, asked.high, asked.within)
    tried: list[Tried] = []
    while (value := search.next()) is not None:
        one = _try(asked, value, folder, stop, partial(watching, search))
        if one is None:
            return Largest("interrupted", search, tuple(tried), folder)
        tried.append(one)
        if one.outcome == "inconclusive":
            return Largest("inconclusive", search, tuple(tried), folder)
        search = search.narrowed(value, passed=one.outcome == "pass")
    if search.passes is not None:
        return Largest("pass", search, tuple(tried), folder)
    return Largest("error" if tried[-1].outcome == "error" else "fail", search, tuple(tried), folder)


def begun(asked: SearchAsked, out: Path, *, resume: bool) -> Path:
    """The folder of a new run, or of the last one of the same search."""
    if not resume:
        return Run.start(out, Campaign(asked.name, (), source=_source(asked, ())), 1.0).folder
    folder = store.latest_run(out, asked.name)
    if folder is None:
        remedy = (
            "search without --resume, or name its results with --out; repeats and options must be the same"
        )
        raise RtmeterError("finds no such search", field="--resume", value=str(out), remedy=remedy)
    return folder


def _try(
    asked: SearchAsked, value: int, folder: Path, stop: Stop, watching: Callable[[Sequence[Cell]], Watcher]
) -> Tried | None:
    """The value, measured run by run until nothing that is left can change what is said; None if it was
    interrupted."""
    planned = asked.planned(value)
    if planned.outcome == "never":
        assert planned.needed is not None, "there is a requirement"
        reason = f"{planned.releases:,} releases cannot pass, it takes {planned.needed.releases:,}"
        return Tried(value, (), "inconclusive", reason)
    records: list[CellRecord] = []
    runs = asked.repeat
    while len(records) < runs:
        cell = asked.cells(value, len(records) + 1)[-1]
        _note(asked, folder, cell)
        last = _measured(asked, folder, cell, stop, watching)
        if last is not None and _is_broken(last) and not _is_refused(last):
            last = _measured(asked, folder, cell, stop, watching)
        if last is None:
            return None
        records.append(last)
        ids = tuple(record.id for record in records)
        if _is_broken(last):
            reason = str(last.error.as_error) if last.error else "its data are invalid"
            return Tried(value, ids, "error" if _is_refused(last) else "inconclusive", reason)
        if len(records) < runs and not _lost_already(records, runs * planned.releases // asked.repeat):
            continue
        verdict = judge_condition(records, [r.verdict for r in records if r.verdict is not None])
        runs = _runs_that_tell(verdict, records, asked) if len(records) == runs else len(records)
    return Tried(value, ids, verdict.outcome, verdict.reason, verdict)


def _measured(
    asked: SearchAsked,
    folder: Path,
    cell: Cell,
    stop: Stop,
    watching: Callable[[Sequence[Cell]], Watcher],
) -> CellRecord | None:
    """The run's record, measured unless it is there and whole; None if it was interrupted."""
    if not Run(folder, Campaign(asked.name, (cell,))).measure(stop, watching([cell])):
        return None
    record = store.read_cell(folder / cell.id)
    if record.status == "skipped":
        assert record.error is not None, "the reason why"
        raise record.error.as_error
    return None if record.status == "interrupted" or stop.asked else record


def _is_broken(record: CellRecord) -> bool:
    return record.error is not None or record.verdict is None or not record.valid


def _is_refused(record: CellRecord) -> bool:
    """Whether the value cannot be measured: nothing was, for a reason that was told. A probe that died or
    hung, an end that did not answer, or data that are invalid, say nothing of the value."""
    return record.error is not None and record.summary is None and record.error.field not in _OF_A_RUN


def _lost_already(records: Sequence[CellRecord], releases: int) -> bool:
    """Whether all runs together fail whatever the others measure: not even the horizon has room for what
    missed."""
    verdicts = [record.verdict for record in records if record.verdict is not None]
    required, misses = verdicts[0].requirement, sum(one.misses for one in verdicts)
    return beyond_the_horizon(misses, releases, required.miss_ratio or 0, required.horizon)


def _runs_that_tell(verdict: Verdict, records: Sequence[CellRecord], asked: SearchAsked) -> int:
    """How many runs there have to be: those that are there, or with as many further ones as the verdict says
    would pass, if so many are allowed."""
    have = len(records)
    if verdict.outcome != "inconclusive" or not verdict.more_samples:
        return have
    wanted = have + -(-verdict.more_samples // max(1, verdict.n // have))
    return wanted if wanted <= asked.most_repeats else have


def _note(asked: SearchAsked, folder: Path, cell: Cell) -> None:
    """Puts the cell into the run's own list, and its value into the campaign that would measure the same."""
    about = store.read_run(folder)
    if cell.id in about.cells:
        return
    cells = [*about.cells, cell.id]
    values = [int(one.rpartition(f"-{asked.what}-")[2].partition("-")[0]) for one in cells]
    store.write_run(folder, about.changed(cells=cells), _source(asked, values))


def _source(asked: SearchAsked, values: Sequence[int]) -> str:
    name = option_of(asked.what, 1)[0]
    texts = list(dict.fromkeys(option_of(asked.what, value)[1] for value in values))
    block = dict(asked.given)
    if texts:
        block |= {name: texts}
        if not block.keys() & {"samples", "duration"}:  # as many as every value has
            block["samples"] = asked.cells(values[0], 1)[0].config["samples"]
    about = {"name": asked.name, "repeat": asked.repeat, "cells": [block]}
    return yaml.safe_dump(about, sort_keys=False, allow_unicode=True)
