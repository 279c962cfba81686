"""What was asked, in words for who did not measure: the campaign's own, the requirement, its terms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rtmeter.errors import RtmeterError
from rtmeter.results import store, words
from rtmeter.results.overview import CellEntry
from rtmeter.results.record import CellRecord
from rtmeter.statistics.quantities import kind

_MOST_QUESTIONS = 3

_TERMS = {
    "wakeup": "Wake-up latency: how late a sleeping thread runs after its release, the moment it should run.",
    "timer/periodic": "Timer latency: how late a timer calls after its release, the moment it should call.",
    "timer/one_shot": "Lateness: how long after its timeout a timer calls. A release: a shot that was armed.",
    "roundtrip": "Response: from the release, the moment a message should be sent, until its reply is there.",
    "request": "Response: from the release, the moment a service should be called, until its answer.",
    "loop": "Completion: from the release, the moment a job should begin, until the thread sleeps again.",
    "cycle": "Completion: from the release, the moment a cycle should begin, until its response is there.",
    "chain": "Reaction: from a sample's release until an output rests on the next sample, or a later one.",
    "discovery": "Time to first: from the last participant's start until a message has come over every pair.",
    "own_loop": "Completion: from the release, the moment a job should begin, until its work is done.",
}

_ANY = "Release: the moment at which a thread, timer, message or cycle should begin."

_CELL = "Cell: one measurement, under conditions of its own."


def asked(cells: Sequence[CellEntry]) -> Iterator[str]:
    """What the campaign was for, and the question to each cell, but few."""
    if description := _description(cells):
        yield description
    questions = list(dict.fromkeys(_question(cell.record) for cell in cells if cell.record))
    yield from questions[:_MOST_QUESTIONS]
    if not questions:
        yield "Not known: no cell.json can be read."
    more = len(questions) - _MOST_QUESTIONS
    if more > 0:
        yield f"And {more} more, as each cell states."


def terms(cells: Sequence[CellEntry]) -> Iterator[str]:
    """What the words mean that the answer cannot do without."""
    kinds = {kind(cell.record.meta) for cell in cells if cell.record} & _TERMS.keys()
    if kinds:
        yield _TERMS[kinds.pop()] if len(kinds) == 1 else _ANY
    if len(cells) > 1:
        yield _CELL


def _description(cells: Sequence[CellEntry]) -> str:
    """The campaign's description of itself, if all cells are of one run."""
    runs = {cell.folder.parent for cell in cells}
    if len(runs) > 1:
        return ""
    try:
        return store.read_run(runs.pop()).description
    except RtmeterError:
        return ""


def _question(record: CellRecord) -> str:
    asked, name = record.requirement, words.judged(record.meta)
    if kind(record.meta) in _TERMS:
        name = re.split(r"[,(]", name)[0].strip()
    if asked is None:
        return f"What values does the {name} take? No deadline was given."
    within = f"within {words.round_us(asked.deadline_ns)} us"
    if asked.miss_ratio is None:
        return f"Is the {name} of every release {within}?"
    sure = f"{100 * asked.confidence:.10g} % confidence"
    missing = f"at most {words.one_in(asked.miss_ratio)} releases"
    return f"Is the {name} {within}, but for {missing}, with {sure}?"
