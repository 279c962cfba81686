"""rtmeter summary: counts and quantiles of what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter summary results --json"
DETAILS = (
    "PATH is a cell or a folder of cells. Every quantity is shown per release (what verdicts go by), as "
    "served, and, for closed-loop round trips, corrected for coordinated omission."
)


def command(
    path: Annotated[Path, typer.Argument(help="A cell, or a folder of cells.")] = Path("results"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Shows what is stored; the exit code says only whether it could be read."""
    from rtmeter.api.summaries import cell_summary
    from rtmeter.cli.cell_tables import show_cell, show_cells
    from rtmeter.cli.output import print_json
    from rtmeter.results import store

    folders = store.cell_folders(path)
    records = [store.read_cell(folder) for folder in folders]
    if store.is_cell(path):
        if as_json:
            print_json(cell_summary(records[0], path))
        else:
            show_cell(records[0], path)
    elif as_json:
        print_json({"cells": [cell_summary(r, f) for r, f in zip(records, folders, strict=True)]})
    else:
        show_cells(records, [str(folder.relative_to(path)) for folder in folders])
    return exit_codes.PASS
