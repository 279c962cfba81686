"""rtmeter verdict: does what was measured meet a deadline?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.required import Class, Confidence, MissRatio

if TYPE_CHECKING:
    from rtmeter.model import Requirement, Verdict
    from rtmeter.results.cells import StoredCell

EXAMPLE = "rtmeter verdict results --deadline 1ms --miss-ratio 1e-6 --confidence 95%"
DETAILS = (
    "Passes if the upper bound of the miss ratio is at most P, fails if the lower bound is above it, else "
    "says how much longer a run would pass. Without P any miss fails. A hard deadline besides has to stay "
    "above what is extrapolated. Without --deadline each cell is judged by its own requirement. Exit codes: "
    "0 pass, 1 error, 2 requirement not met, 3 inconclusive; of several cells the worst, in the order 1, 2, "
    "3, 0."
)

_NO_REQUIREMENT = "it has no requirement of its own, and no --deadline was given"
_UNJUDGED: dict[str, Any] = {"outcome": "unjudged", "reason": _NO_REQUIREMENT, "n": 0}

Found = tuple[dict[str, Any], "Verdict | None"]
"""What a verdict is about, and it; None where nothing was asked of the cell."""


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
    criticality: Class = None,
    pool: Annotated[
        bool, typer.Option("--pool", help="Judge repeats as one run where they are equivalent.")
    ] = False,
    margin: Annotated[
        str | None,
        typer.Option(
            metavar="10%",
            help="By how much quantiles of repeats that are pooled may differ.",
            show_default=False,
        ),
    ] = None,
    once_in: Annotated[
        str | None,
        typer.Option(
            metavar="24h",
            help="Once in which time the return level is passed (default: ten times the run).",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Judges each cell anew from its samples."""
    from rtmeter.cli.output import print_json
    from rtmeter.cli.required import once_in_hours, required, share
    from rtmeter.errors import RtmeterError
    from rtmeter.judge.pooled import DEFAULT_MARGIN
    from rtmeter.results.cells import find_cells

    asked = required(deadline, miss_ratio, confidence, criticality)
    if margin is not None and not pool:
        raise RtmeterError(
            "means nothing without --pool", field="--margin", value=margin, remedy="add --pool"
        )
    within = share("--margin", margin) if margin else DEFAULT_MARGIN
    horizon = None if once_in is None else once_in_hours(once_in)
    cells = find_cells(path)
    if asked is None and not any(cell.record.requirement for cell in cells):
        message = f"is missing, and no cell of {path} has a requirement of its own"
        raise RtmeterError(message, field="--deadline", remedy="give a deadline, e.g. --deadline 1ms")
    times = Counter(cell.record.id for cell in cells)
    verdicts: list[dict[str, Any]] = []
    for about, verdict in _pooled(cells, asked, within, horizon) if pool else _each(cells, asked, horizon):
        verdicts.append(about | (asdict(verdict) if verdict else _UNJUDGED))
        if not as_json:
            print("\n".join(_lines(about, verdict, alone=times[about["id"]] < 2)))
    if as_json:
        print_json(verdicts[0] if len(cells) == 1 else {"cells": verdicts})
    return exit_codes.worst(exit_codes.of_outcome(found["outcome"]) for found in verdicts)


def _each(
    cells: Sequence[StoredCell], asked: Requirement | None, horizon_hours: float | None
) -> Iterator[Found]:
    from rtmeter.cli.reading import reading
    from rtmeter.judge.cell import judge_cell

    for cell in cells:
        requirement = asked or cell.record.requirement
        if requirement is None:
            yield _about(cell), None
            continue
        with reading() as read:
            verdict = judge_cell(cell.record, cell.folder, requirement, read, horizon_hours)
        yield _about(cell), verdict


def _pooled(
    cells: Sequence[StoredCell], asked: Requirement | None, margin: float, horizon_hours: float | None
) -> Iterator[Found]:
    from rtmeter.cli.reading import reading
    from rtmeter.judge.pooled import judge_pooled

    groups: dict[str, list[StoredCell]] = {}
    for cell in cells:
        groups.setdefault(cell.record.name, []).append(cell)
    for name, runs in groups.items():
        requirement = asked or runs[0].record.requirement
        if requirement is None or len(runs) < 2:
            yield from _each(runs, asked, horizon_hours)
            continue
        with reading() as read:
            pool = judge_pooled(runs, requirement, margin, read, horizon_hours)
        if pool.verdict is None:
            each = _each(runs, asked, horizon_hours)
            yield from ((about | {"pooled": pool.words}, verdict) for about, verdict in each)
            continue
        about = _about(runs[0]) | {"id": name, "path": [str(run.folder) for run in runs]}
        about["conditions"].insert(0, f"{len(runs)} runs, each")
        interrupted = any(run.record.status == "interrupted" for run in runs)
        about |= {"status": "interrupted"} if interrupted else {}
        yield about | {"pooled": pool.words}, pool.verdict


def _about(cell: StoredCell) -> dict[str, Any]:
    from rtmeter.judge.conditions import in_one_line

    about = {key: getattr(cell.record, key) for key in ("id", "status", "measurement", "adapter")}
    return about | {"path": str(cell.folder), "conditions": in_one_line(cell.record)}


def _lines(about: dict[str, Any], verdict: Verdict | None, alone: bool) -> Iterator[str]:
    """The verdict in words; with its folder unless the cell is the only one of its id."""
    from rtmeter.cli.evidence import evidence_lines

    where = "" if alone or isinstance(about["path"], list) else f" in {about['path']}"
    interrupted = " (interrupted)" if about["status"] == "interrupted" else ""
    outcome, reason = (
        (verdict.outcome, verdict.reason) if verdict else (_UNJUDGED["outcome"], _UNJUDGED["reason"])
    )
    yield f"{about['id']}{where}{interrupted}: {outcome}: {reason}"
    if (pooled := about.get("pooled", "")).startswith("not"):
        yield f"  {'pooling':<17}{pooled}"
    if verdict and (lines := evidence_lines(verdict)):
        yield from lines
        yield f"  {'holds for':<17}{', '.join(about['conditions'])}"
