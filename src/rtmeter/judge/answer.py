"""What a report opens with: what was asked, the answer, what limits it, what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from rtmeter.judge.asked import asked, terms
from rtmeter.judge.next_step import next_step
from rtmeter.judge.why import why_words
from rtmeter.judge.why_cells import is_traced
from rtmeter.model import Doubt, Verdict
from rtmeter.results import condition_words, words
from rtmeter.results.cells import StoredCell
from rtmeter.results.condition_words import which_cells
from rtmeter.results.overview import WORST_FIRST, CellEntry, CellOutcome
from rtmeter.results.record import CellRecord

NAMES: dict[CellOutcome, str] = {
    "error": "Error",
    "fail": "Fail",
    "inconclusive": "Inconclusive",
    "unfinished": "Not finished",
    "unjudged": "Not judged",
    "pass": "Pass",
}

_OF_MANY: dict[CellOutcome, str] = {
    "error": "failed or gave invalid data",
    "fail": "missed the requirement",
    "inconclusive": "need more evidence",
    "unfinished": "not finished",
    "unjudged": "not judged",
    "pass": "passed",
}

_INVALIDATING = {"ring_overflow", "damaged_log", "samples_do_not_add_up", "re_stamped", "too_early"}
"""Warnings that make a cell's data invalid."""

_MOST_SENTENCES = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """The opening of a report; sentences, the most important first."""

    outcome: CellOutcome
    headline: str
    asked: list[str]
    terms: list[str]
    limits: list[str]
    next: list[str]


def answer(cells: Sequence[CellEntry]) -> Answer:
    """The answer over cells sorted the worst first, of which there is at least one."""
    return Answer(
        outcome=cells[0].outcome,
        headline=_headline(cells[0]) if len(cells) == 1 else _headline_of_many(cells),
        asked=list(asked(cells)),
        terms=list(terms(cells)),
        limits=list(islice(dict.fromkeys(_limits(cells)), _MOST_SENTENCES)),
        next=_next(cells),
    )


def reason(cell: CellEntry) -> str:
    """Why the cell has its outcome, in a sentence."""
    if cell.state == "damaged":
        return f"The result cannot be read: {sentence(_and_remedy(cell)[0])}"
    if cell.record and cell.record.error and cell.state == "failed":
        error = cell.record.error
        what = " = ".join(part for part in (error.field, error.value) if part)
        return sentence(f"{what}: {error.message}" if what else error.message)
    if cell.problem:
        return sentence(cell.problem)
    assert cell.record is not None
    if not cell.record.valid:
        return f"The data are invalid: {_why_invalid(cell.record)}."
    if cell.record.verdict:
        return sentence(cell.record.verdict.reason)
    return "No deadline was asked: this cell is described, not judged."


def sentence(text: str) -> str:
    """With a full stop, and a capital, unless it begins with a name: cell.json, adapter =, a cell."""
    first = text.partition(" ")[0].rstrip(".,:")
    head, colon, _ = text.partition(": ")
    named = not {".", "_", "/"}.isdisjoint(first) or (
        bool(colon) and (" = " in head or (head == first and "-" in first))
    )
    begun = text if named else f"{text[:1].upper()}{text[1:]}"
    return begun + ("" if text.endswith((".", "?", "!")) else ".")


def _and_remedy(cell: CellEntry) -> tuple[str, str]:
    """What is wrong with a damaged cell, and what to do about it."""
    what, _, remedy = (cell.problem or "").rpartition("; ")
    return (what, remedy) if what else (remedy, "measure the cell again")


def _why_invalid(record: CellRecord) -> str:
    for doubt in record.warnings:
        if doubt.type in _INVALIDATING:
            return doubt.message
    if overflow := record.counters.get("overflow"):
        return f"{overflow} rows were lost to a full ring"
    return "rows are missing from a damaged log" if record.missing else "see its warnings"


def _headline(cell: CellEntry) -> str:
    if cell.record is None or cell.outcome in ("error", "unfinished"):
        return reason(cell)
    verdict, deadline_ns = cell.record.verdict, cell.record.deadline_ns
    n = cell.judged.n if cell.judged else 0
    if verdict is None or deadline_ns is None:
        return f"{n:,} releases measured; no deadline was asked."
    if verdict.n == 0:
        return "Nothing was measured."
    deadline = f"the deadline of {words.round_us(deadline_ns)} us"
    enough = ": not enough evidence." if verdict.outcome == "inconclusive" else "."
    if verdict.misses == 0 and verdict.n == 1:
        return f"The one release met {deadline}{enough}"
    if verdict.misses == 0:
        return f"All {verdict.n:,} releases met {deadline}{enough}"
    return f"{verdict.missed} of {verdict.n:,} releases missed {deadline}{enough}"


def _headline_of_many(cells: Sequence[CellEntry]) -> str:
    tally = Counter(cell.outcome for cell in cells)
    worst = [outcome for outcome in WORST_FIRST if tally[outcome]]
    if len(worst) == 1:
        return f"All {len(cells)} {things(cells)} {_OF_MANY[worst[0]]}."
    named = [f"{tally[outcome]} {_OF_MANY[outcome]}" for outcome in worst[:2] if outcome != "pass"]
    return f"Of {len(cells)} {things(cells)} {', '.join(named)}."


def things(cells: Sequence[CellEntry]) -> str:
    """What they are, singular if it is one: conditions, if any has repeats."""
    found = "condition" if any(cell.repeats for cell in cells) else "cell"
    return found if len(cells) == 1 else f"{found}s"


def _limits(cells: Sequence[CellEntry]) -> Iterator[str]:
    warned = shared(cells)
    for doubt, names in warned:
        if doubt.type == condition_words.NOT_IDLE:  # what was measured is not what was asked
            yield _of_cells(doubt.message, names, cells)
    yield from _maximum(cells[0], len(cells))
    for cell in cells:
        if cell.state == "interrupted":
            yield "The run was interrupted: what it measured until then is judged."
        if cell.record and (why := unfit(cell.record)):
            yield sentence(why)
    yield from _taken(cells)
    for doubt, names in warned:
        yield _of_cells(doubt.message, names, cells)


def _taken(cells: Sequence[CellEntry]) -> Iterator[str]:
    """Where others took so much of the CPUs that it limits what the numbers say, unless a warning says so."""
    found: list[tuple[float, str, str]] = []
    for cell in cells:
        if cell.record and not any(doubt.type == condition_words.NOT_IDLE for doubt in cell.record.warnings):
            share, said = condition_words.taken_much(cell.record.endured)
            if said:
                found.append((share, cell.id, said))
    if found:
        share, most, said = max(found, key=lambda one: one[0])
        of = "" if len(found) == 1 else f"up to {share:.0%} of the CPUs were taken meanwhile, in {most} "
        yield _of_cells(f"{of}{said}{'' if of else ' meanwhile'}", [cell for _, cell, _ in found], cells)


def shared(cells: Sequence[CellEntry]) -> list[tuple[Doubt, list[str]]]:
    """Each warning once, in the order of the cells, with those that have it."""
    return condition_words.told_once(
        (cell.id, doubt) for cell in cells for doubt in (cell.record.warnings if cell.record else ())
    )


def _of_cells(text: str, names: Sequence[str], cells: Sequence[CellEntry]) -> str:
    """A sentence about some cells of several."""
    if len(cells) == 1:
        return sentence(text)
    whole = len(names) == len(cells)
    which = which_cells(names, len(cells), things(cells))
    return f"{which.capitalize() if whole else which}: {text}" + (
        "" if text.endswith((".", "?", "!")) else "."
    )


def _maximum(cell: CellEntry, cells: int) -> Iterator[str]:
    """The maximum of a cell beside its deadline."""
    judged = cell.judged
    if judged is None or judged.n == 0:
        return
    if judged.max_ns == "lost":
        text = "the maximum is a release that was lost"
    else:
        deadline_ns = cell.record.deadline_ns if cell.record else None
        of = f" of {words.round_us(deadline_ns)} us allowed" if deadline_ns else ""
        at = "" if judged.max_at_k is None else f", at k = {words.count(judged.max_at_k)}"
        text = f"the maximum is {words.us(judged.max_ns)} us{of}{at}"
    if cells == 1:
        yield sentence(text)
    elif cell.outcome == "pass":
        yield f"{cell.id} comes nearest to its deadline: {text}."


def unfit(record: CellRecord) -> str | None:
    """Why a cell's numbers are unfit for absolute claims; None if they are not."""
    if record.scripted:
        return "scripted clock: the delays are made up, they test rtmeter itself"
    return condition_words.unfit(record.machine.get("virtual_machine"))


def _next(cells: Sequence[CellEntry]) -> list[str]:
    """One step, of several conditions that did not pass one for each; where all passed, what mends a doubt
    comes first."""
    steps = list(dict.fromkeys(_of_verdicts(cells)))
    if cells[0].outcome == "pass":
        return [*islice(chain(_hints(cells), steps, _besides(cells)), 1)]
    return steps[:_MOST_SENTENCES] or [*islice(chain(_hints(cells), _besides(cells)), 1)]


def _hints(cells: Sequence[CellEntry]) -> Iterator[str]:
    for doubt, names in shared(cells):
        if doubt.hint:
            yield _of_cells(f"{doubt.message.rstrip('.')}: {doubt.hint}", names, cells)


def _of_verdicts(cells: Sequence[CellEntry]) -> Iterator[str]:
    """A step for each condition, the worst first, but those that passed beside others."""
    steps: dict[str, list[str]] = {}
    for cell in cells:
        for step in _steps(cell) if cell.outcome != "pass" or cells[0].outcome == "pass" else ():
            steps.setdefault(step, []).append(cell.id)
    for step, names in steps.items():
        which = which_cells(names, len(cells), things(cells))
        yield sentence(step) if len(names) == len(cells) else f"{which}: {step}"


def _besides(cells: Sequence[CellEntry]) -> Iterator[str]:
    """What is left to do where nothing else is."""
    real = [cell for cell in cells if cell.judged and cell.record and not cell.record.scripted]
    if any(unfit(cell.record) for cell in real if cell.record):
        yield "Repeat it on the target itself before claiming absolute numbers."
    if any(cell.record and not cell.record.imported for cell in real):
        yield "Type rtmeter check on the machine: it lists what there hurts punctuality, and what mends it."


def _steps(cell: CellEntry) -> Iterator[str]:
    if cell.state == "skipped" and cell.record and cell.record.error:
        yield f"{cell.record.error.remedy}; then run the campaign with --resume."
    elif cell.outcome == "unfinished":
        yield "let the run end, or continue it with --resume."
    elif cell.outcome == "error":
        remedy = cell.record.error.remedy if cell.record and cell.record.error else None
        if cell.state == "damaged":
            remedy = _and_remedy(cell)[1]
        yield sentence(remedy or "measure the cell again")
    elif cell.outcome == "unjudged":
        yield "give a deadline (--deadline) to have it judged."
    elif cell.record and cell.record.verdict:
        yield from _after_verdict(cell, cell.record.verdict)


def _after_verdict(cell: CellEntry, verdict: Verdict) -> Iterator[str]:
    """The step that can help, after what a trace says of why releases were late."""
    runs = [StoredCell(one.folder, one.record) for one in cell.repeats or (cell,) if one.record]
    step = next_step(verdict, runs)
    if step is None:
        return
    named = (run for run in runs if f"rtmeter explain {run.folder}:" in step)
    traced = next(named, None) or next((run for run in runs if verdict.misses and is_traced(run)), None)
    why = why_words(traced) if traced else None
    yield f"{why}. {step[:1].upper()}{step[1:]}." if why else f"{step}."
