"""An explanation as text: the causes in a table, and the segments of the releases asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from rtmeter.cli.columns import print_table
from rtmeter.cli.output import console, doubt_words, microseconds
from rtmeter.explain.causes import Explained, Explanation, Ranked
from rtmeter.explain.segments import UNKNOWN
from rtmeter.explain.words import words_of, words_of_cause, words_of_one
from rtmeter.judge.mends import mends, mends_of_trace
from rtmeter.judge.why import stampless_words
from rtmeter.values import format_duration, harmless

if TYPE_CHECKING:
    from rtmeter.judge.explained import CellExplanation
    from rtmeter.selftest.blamed import Blamed


@contextmanager
def planting() -> Iterator[Callable[[str, int, int], None]]:
    """Tells on a terminal which plant is made, how many are to come, and how long they will take."""
    from rich.console import Console

    status, began = Console(stderr=True).status("starting what disturbs"), time.monotonic()

    def say(name: str, done: int, of: int) -> None:
        left_s = (time.monotonic() - began) / done * (of - done) if done else 0
        left = f", {timedelta(seconds=int(left_s))} left" if done else ""
        status.update(f"planting {name}, {done + 1} of {of}{left}")

    with status:
        yield say


def show_blamed(one: Blamed) -> None:
    """A planted cause: how often it was named."""
    out = console()
    out.print(f"{one.outcome}  {one.name}: {one.done}", markup=False)
    problem = f"{one.problem}; " if one.problem else ""
    word = "blamed on a plant" if one.outcome.endswith("blamed") else "named first"
    out.print(f"    {problem}{one.hit} late releases, {one.first} of them {word}", markup=False)
    for key in one.others:
        out.print(f"    other: {words_of(key)}", markup=False)


def limit_words(cell: CellExplanation) -> str:
    """What counts as late, what it is compared with, and what cannot be explained."""
    limit = format_duration(cell.late_after_ns)
    said = f"late: beyond the deadline of {limit}" if cell.by_deadline else ""
    said = said or f"no deadline: the latest hundredth counts as late, beyond {limit}"
    said += f"; compared with {cell.compared:,} of {cell.in_time:,} in time"
    said += ", chosen at random" if cell.compared < cell.in_time else ""
    said += f"; {cell.unrecorded:,} late ones were not recorded" if cell.unrecorded else ""
    late = sum(each.release.late for each in cell.found.releases)
    verdict = cell.cell.record.verdict
    judged = verdict is not None and verdict.requirement.deadline_ns == cell.late_after_ns
    if judged and (missed := stampless_words(cell.cell.record, late)):
        return said + missed
    unserved = f"; {cell.unserved:,} releases without a stamp, skipped or lost, are not explained"
    return said + (unserved if cell.unserved else "")


def show_explanation(
    found: Explanation, releases: Sequence[Explained], cell: CellExplanation | None = None
) -> None:
    """The causes of the late releases, then the segments of some; of a cell also what mends a cause."""
    from rich.table import Table

    out = console()
    if cell is not None:
        out.print(limit_words(cell), markup=False, soft_wrap=True)
        for doubt in cell.cell.record.warnings:
            if doubt.type.startswith("trace_"):
                out.print(f"{doubt.type}: {doubt_words(doubt)}", markup=False, soft_wrap=True)
    late = [each.release for each in found.releases if each.release.late]
    lateness_ns = sum(release.lateness_ns for release in late)
    stamped = " with a stamp" if cell is not None and cell.unserved else ""
    total = len(found.releases) if cell is None else len(late) + cell.in_time
    out.print(
        f"{len(late):,} of {total:,} releases{stamped} are late; their lateness is "
        f"{microseconds(lateness_ns)} us, of which {microseconds(found.unknown_ns)} us unknown",
        markup=False,
    )
    if found.causes:
        table = Table("cause", "late releases", "their lateness\nus", "share")
        rows = list(found.causes)
        if all(row.key != UNKNOWN for row in rows):
            rows.append(Ranked(UNKNOWN, 0, 0))
        for row in rows:
            ns = row.lateness_ns
            share = f"{100 * ns / lateness_ns:.0f} %" if lateness_ns else "-"
            table.add_row(words_of_cause(row), f"{row.releases:,}", microseconds(ns), share)
        print_table(out, table)
    for line in _advice(found.causes, cell):
        out.print(line, markup=False, soft_wrap=True)
    has_in_time = any(not each.release.late for each in found.releases)
    for each in releases:
        for line in _lines(each, has_in_time=has_in_time):
            out.print(line, markup=False, soft_wrap=True)


def _advice(causes: Iterable[Ranked], cell: CellExplanation | None) -> Iterator[str]:
    """What mends some of the causes, each once, with those that it holds for; of how many nothing is known
    that does. Without a cell: by what the trace tells."""
    holds_for: dict[str, list[Ranked]] = {}
    rest = 0
    for cause in causes:
        see = mends(cause, cell.cell.record) if cell else mends_of_trace(cause, _SOME_CPUS)
        if see:
            holds_for.setdefault(see, []).append(cause)
        else:
            rest += cause.releases
    for see, mended in holds_for.items():
        others = f" and {len(mended) - 1:,} more causes" if len(mended) > 2 else ""
        others = others or "".join(f" and {words_of_cause(cause)}" for cause in mended[1:])
        late = sum(cause.releases for cause in mended)
        releases = f"{late:,} late release{'s' * (late != 1)}"
        yield f"{words_of_cause(mended[0])}{others} ({releases}){see}"
    if rest:
        releases = f"{rest:,} {'other ' * bool(holds_for)}late release{'s' * (rest != 1)}"
        who = "neither rtmeter check nor the trace tells" if cell else "the trace does not tell"
        yield f"of {releases} {who} what mends them"


_SOME_CPUS = 2
"""Of the machine of a trace without a cell, which does not tell how many there are."""


def _lines(each: Explained, *, has_in_time: bool) -> Iterable[str]:
    release = each.release
    faults = f", {each.faults:,} page faults" if each.faults else ""
    yield ""
    yield f"release {release.k}: {microseconds(release.lateness_ns)} us after its time{faults}"
    if each.cause is not None:
        of = (
            "what is more than in releases in time" if has_in_time else "it; none was in time to compare with"
        )
        share = f"{100 * each.cause.share:.0f} % of {of}"
        yield f"  cause: {words_of_one(each.cause)} ({share})"
    for segment in each.segments:
        from_ns = segment.start_ns - release.release_ns
        times = f"{microseconds(from_ns):>12} {microseconds(segment.end_ns - segment.start_ns):>12}"
        said = words_of_one(segment)
        yield harmless(f"{times} us  {said}")
