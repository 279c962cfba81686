"""rtmeter verdict: does what was measured meet a deadline?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter verdict results --deadline 1ms --miss-ratio 1e-6"
DETAILS = (
    "Passes if the upper bound of the miss ratio is at most P, fails if the lower bound is above it, else "
    "says how many further samples would pass. Without P any miss fails. Exit codes: 0 pass, 1 error, "
    "2 requirement not met, 3 inconclusive; of several cells the worst, in the order 1, 2, 3, 0."
)


def command(
    path: Annotated[Path, typer.Argument(help="A cell, or a folder of cells.", show_default=False)],
    deadline: Annotated[
        str, typer.Option(metavar="1ms", help="Deadline of the judged quantity.", show_default=False)
    ],
    miss_ratio: Annotated[
        str | None,
        typer.Option(metavar="P", help="Share of releases allowed to miss it.", show_default=False),
    ] = None,
    confidence: Annotated[str, typer.Option(metavar="C", help="Confidence of the bounds.")] = "0.95",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Judges each cell anew from its samples."""
    from rtmeter import matrix, store
    from rtmeter.cli.given import as_flag
    from rtmeter.cli.output import print_json
    from rtmeter.errors import RtmeterError
    from rtmeter.model import Requirement
    from rtmeter.record import judge_cell

    try:
        requirement = Requirement(
            matrix.parse_fact("deadline", deadline),
            None if miss_ratio is None else matrix.parse_fact("miss_ratio", miss_ratio),
            matrix.parse_fact("confidence", confidence),
        )
    except RtmeterError as error:
        raise as_flag(error) from None
    verdicts: list[dict[str, Any]] = []
    for folder in store.find_cells(path):
        record = store.load_cell(folder)
        verdict = judge_cell(record, folder, requirement)
        about = {key: record[key] for key in ("id", "measurement", "adapter")} | {"path": str(folder)}
        verdicts.append(about | asdict(verdict))
        if not as_json:
            print(f"{record['id']}: {verdict.outcome}: {verdict.reason}")
    if as_json:
        print_json(verdicts[0] if store.is_cell(path) else {"cells": verdicts})
    return exit_codes.worst(exit_codes.of_outcome(v["outcome"]) for v in verdicts)
