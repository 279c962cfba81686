"""rtmeter verdict: does what was measured meet a deadline?"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.requirement_options import Confidence, CriticalityText, HorizonText, MissRatio
from rtmeter.values import visible

if TYPE_CHECKING:
    from rtmeter.api.verdicts import CellVerdict

EXAMPLE = "rtmeter verdict results --deadline 1ms --miss-ratio 1e-6 --confidence 95%"
DETAILS = (
    "Passes if the upper bound of the miss ratio is at most P; fails if the lower bound is above it, or if "
    "not even a horizon of ten times the run without a further miss would meet it; else says how much longer "
    "a run would pass. Without P any miss fails. A hard deadline besides has to stay "
    "above what is extrapolated. Without --deadline each cell is judged by its own requirement, but for what "
    "the other options say. Of more than three conditions there is a row each, the worst first, and each "
    "reason and step once; of one alone, or with --repeats, the whole verdict. Repeats of a "
    "cell have one verdict: their misses together, by dependence within each and by how far they lie apart. "
    "Exit codes: 0 pass, 1 error, 2 requirement not met, 3 inconclusive, or cells of the run "
    "not measured; of several conditions the worst, in "
    "the order 1, 2, 3, 0."
)

_MOST_NAMES = 3


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
        bool, typer.Option("--repeats", help="Show each repeat below the verdict of all, whole.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Judges cells from their samples, or says what is stored where the same would come of them."""
    from rtmeter.api.verdicts import verdicts
    from rtmeter.cli.cell_options import as_flag
    from rtmeter.cli.many_verdicts import MOST_WHOLE, show_table
    from rtmeter.cli.output import print_json
    from rtmeter.cli.reading_progress import reading
    from rtmeter.cli.requirement_options import once_in_hours, stated
    from rtmeter.errors import RtmeterError
    from rtmeter.results.cells import conditions, find_cells
    from rtmeter.results.overview import not_measured

    asked = stated(deadline, miss_ratio, confidence, criticality, horizon)
    level_hours = None if once_in is None else once_in_hours(once_in)
    cells = find_cells(path)
    lacking = [folder.name for folder in not_measured(path)]
    times = Counter(group[0].record.name for group in conditions(cells))
    many = sum(times.values()) > MOST_WHOLE and not repeats
    found: list[CellVerdict] = []
    judging = verdicts(cells, asked, horizon_hours=level_hours, anew=anew, reading=reading)
    try:
        for one in judging:
            found.append(one)
            if not as_json and not many:
                print("\n".join(_lines(one, alone=times[one.id] < 2)))
                for repeat in one.repeats if repeats else ():
                    print(indent("\n".join(_lines(repeat, alone=True)), "    "))
    except RtmeterError as error:
        raise as_flag(error) from None
    if as_json:
        verdicts_json = [one.to_json() for one in found]
        whole = {"cells": verdicts_json} | ({"not_measured": lacking} if lacking else {})
        print_json(verdicts_json[0] if len(cells) == 1 and not lacking else whole)
    elif many:
        options = {"--deadline": deadline, "--miss-ratio": miss_ratio, "--confidence": confidence}
        options |= {"--criticality": criticality, "--horizon": horizon, "--once-in": once_in}
        given = [part for flag, text in options.items() if text is not None for part in (flag, text)]
        _show_many(found, given + ["--anew"] * anew)
    elif len(found) > 1:
        show_table(_named(found))
    if lacking and not as_json:
        whose = "its" if len(lacking) == 1 else "their"
        print(visible(f"not measured: {_some(lacking)}; {whose} question is open: go on with --resume"))
    open_still = [exit_codes.INCONCLUSIVE] if lacking else []
    return exit_codes.worst([*(exit_codes.of_outcome(one.outcome) for one in found), *open_still])


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return f"{len(names):,} planned cell{'s' * (len(names) != 1)}, {', '.join(names[:_MOST_NAMES])}{more}"


def _show_many(found: Sequence[CellVerdict], options: Sequence[str]) -> None:
    """Of many conditions a row each, the worst first, what is said of them, and how to see one whole."""
    from rtmeter.cli.many_verdicts import show_table, told_together, worst_first

    named = _named(worst_first(found))
    show_table(named)
    why = {name: words for name, one in named.items() if (words := _why(one))}
    print("\n".join(told_together(named, why)))
    first = str(_folder(next(iter(named.values()))))
    print(f"  {'whole verdict':<17}of one alone: {shlex.join(['rtmeter', 'verdict', first, *options])}")


def _lines(one: CellVerdict, alone: bool) -> Iterator[str]:
    """The verdict in words; with its folder unless the cell is the only one of its id."""
    from rtmeter.cli.evidence import verdict_lines

    runs = len(one.path) if isinstance(one.path, list) else 1
    line, *more = verdict_lines(one.verdict, one.worst_ns, one.next, runs) if one.verdict else [one.reason]
    yield f"{_name(one, alone)}: {one.outcome}: {line}"
    yield from more
    if one.verdict and one.verdict.n and one.verdict.support:
        if why := _why(one):
            yield f"  {'why':<17}{why}"
        for words in one.meanwhile:
            yield f"  {'meanwhile':<17}{words}"
        yield f"  {'holds for':<17}{', '.join(one.conditions)}"


def _named(found: Sequence[CellVerdict]) -> dict[str, CellVerdict]:
    times = Counter(one.id for one in found)
    return {_name(one, alone=times[one.id] < 2): one for one in found}


def _name(one: CellVerdict, alone: bool) -> str:
    where = "" if alone else f" in {_folder(one)}"
    return f"{one.id}{where}{' (interrupted)' if one.status == 'interrupted' else ''}"


def _folder(one: CellVerdict) -> Path:
    """What its whole verdict is asked by."""
    return Path(one.path[0]).parent / one.id if isinstance(one.path, list) else Path(one.path)


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
