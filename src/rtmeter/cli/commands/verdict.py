"""rtmeter verdict: does what was measured meet a deadline?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.requirement_options import Confidence, CriticalityText, HorizonText, MissRatio

if TYPE_CHECKING:
    from rtmeter.api.verdicts import CellVerdict

EXAMPLE = "rtmeter verdict results --deadline 1ms --miss-ratio 1e-6 --confidence 95%"
DETAILS = (
    "Passes if the upper bound of the miss ratio is at most P; fails if the lower bound is above it, or if "
    "not even a horizon of ten times the run without a further miss would meet it; else says how much longer "
    "a run would pass. Without P any miss fails. A hard deadline besides has to stay "
    "above what is extrapolated. Without --deadline each cell is judged by its own requirement, but for what "
    "the other options say. Repeats of a "
    "cell have one verdict: their misses together, by dependence within each and by how far they lie apart. "
    "Exit codes: 0 pass, 1 error, 2 requirement not met, 3 inconclusive; of several conditions the worst, in "
    "the order 1, 2, 3, 0."
)


def command(
    path: Annotated[Path, typer.Argument(help="A cell, its repeats, or a folder of cells.")] = Path(
        "results"
    ),
    deadline: Annotated[
        str | None,
        typer.Option(
            metavar="1ms", help="Deadline of the judged quantity (default: the cell's).", show_default=False
        ),
    ] = None,
    miss_ratio: MissRatio = None,
    confidence: Confidence = None,
    criticality: CriticalityText = None,
    horizon: HorizonText = None,
    once_in: Annotated[
        str | None,
        typer.Option(
            metavar="24h",
            help="Once in which time the return level is passed (default: ten times the run).",
            show_default=False,
        ),
    ] = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Judge from the samples what was judged when it was measured.")
    ] = False,
    repeats: Annotated[
        bool, typer.Option("--repeats", help="Show each repeat below the verdict of all.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Judges cells from their samples, or says what is stored where the same would come of them."""
    from rtmeter.api.verdicts import verdicts
    from rtmeter.cli.cell_options import as_flag
    from rtmeter.cli.output import print_json
    from rtmeter.cli.reading_progress import reading
    from rtmeter.cli.requirement_options import once_in_hours, stated
    from rtmeter.errors import RtmeterError
    from rtmeter.results.cells import conditions, find_cells

    asked = stated(deadline, miss_ratio, confidence, criticality, horizon)
    level_hours = None if once_in is None else once_in_hours(once_in)
    cells = find_cells(path)
    times = Counter(group[0].record.name for group in conditions(cells))
    found: list[CellVerdict] = []
    judging = verdicts(cells, asked, horizon_hours=level_hours, anew=anew, reading=reading)
    try:
        for one in judging:
            found.append(one)
            if not as_json:
                print("\n".join(_lines(one, alone=times[one.id] < 2)))
                for repeat in one.repeats if repeats else ():
                    print(indent("\n".join(_lines(repeat, alone=True)), "    "))
    except RtmeterError as error:
        raise as_flag(error) from None
    if as_json:
        verdicts_json = [one.to_json() for one in found]
        print_json(verdicts_json[0] if len(cells) == 1 else {"cells": verdicts_json})
    elif len(found) > 1:
        _show_together(found)
    return exit_codes.worst(exit_codes.of_outcome(one.outcome) for one in found)


def _show_together(found: Sequence[CellVerdict]) -> None:
    """All conditions in a table, after what is said of each: the last thing on the screen."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from rtmeter.cli.cell_tables import STYLES
    from rtmeter.cli.columns import print_table
    from rtmeter.cli.output import console, microseconds
    from rtmeter.results.words import missed_share, share

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("condition", "verdict", "missed", "of", "share", "allowed", "worst\nus"):
        left = header in ("condition", "verdict")
        wraps = header == "condition"
        table.add_column(header, justify="left" if left else "right", no_wrap=not wraps, overflow="fold")
    for one in found:
        verdict, style = one.verdict, STYLES.get(one.outcome)
        said = f"[{style}]{one.outcome}[/]" if style else one.outcome
        row = ["-", "-", "-", "-"]
        if verdict and verdict.n:
            allowed = verdict.requirement.miss_ratio
            missed = missed_share(verdict), "none" if allowed is None else share(allowed)
            row = [verdict.missed, f"{verdict.n:,}", *missed]
        table.add_row(escape(one.id), said, *row, microseconds(one.worst_ns))
    print_table(console(), table)


def _lines(one: CellVerdict, alone: bool) -> Iterator[str]:
    """The verdict in words; with its folder unless the cell is the only one of its id."""
    from rtmeter.cli.evidence import verdict_lines

    folder = Path(one.path[0]).parent / one.id if isinstance(one.path, list) else one.path
    where = "" if alone else f" in {folder}"
    interrupted = " (interrupted)" if one.status == "interrupted" else ""
    runs = len(one.path) if isinstance(one.path, list) else 1
    line, *more = verdict_lines(one.verdict, one.worst_ns, one.next, runs) if one.verdict else [one.reason]
    yield f"{one.id}{where}{interrupted}: {one.outcome}: {line}"
    yield from more
    if one.verdict and one.verdict.n and one.verdict.support:
        if why := _why(one):
            yield f"  {'why':<17}{why}"
        for words in one.meanwhile:
            yield f"  {'meanwhile':<17}{words}"
        yield f"  {'holds for':<17}{', '.join(one.conditions)}"


def _why(one: CellVerdict) -> str | None:
    """Why its releases were late, if the cell has a trace and is judged by its own requirement."""
    from rtmeter.judge.why import why_words
    from rtmeter.results import store
    from rtmeter.results.cells import StoredCell
    from rtmeter.trace.table import FILE

    if isinstance(one.path, list) or not (Path(one.path) / FILE).is_file() or one.verdict is None:
        return None
    record = store.read_cell(Path(one.path))
    same = (
        record.requirement is not None
        and record.requirement.deadline_ns == one.verdict.requirement.deadline_ns
    )
    return why_words(StoredCell(Path(one.path), record)) if same else None
