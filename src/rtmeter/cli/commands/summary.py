"""rtmeter summary: counts and quantiles of what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter summary results --json"
DETAILS = (
    "PATH is a cell or a folder of cells; repeats of a cell are one condition, a line each. Every quantity "
    "is shown per release (what verdicts go by), as "
    "served, and, for closed-loop round trips, corrected for coordinated omission."
)


def command(
    path: Annotated[Path, typer.Argument(help="A cell, or a folder of cells.")] = Path("results"),
    repeats: Annotated[bool, typer.Option("--repeats", help="Show each repeat below its condition.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Shows what is stored; the exit code says only whether it could be read."""
    from rtmeter.cli.cell_tables import show_cell, show_cells
    from rtmeter.cli.output import print_json
    from rtmeter.cli.refusals import refuse
    from rtmeter.results import store
    from rtmeter.results.cells import each_cell

    if as_json:
        refuse({"--repeats": repeats}, "means nothing with --json", "leave it out: each repeat is there")
    if store.is_cell(path):
        refuse({"--repeats": repeats}, "means nothing for one cell", "leave it out, or give a folder")
        record = store.read_cell(path)
        if as_json:
            from rtmeter.api.summaries import cell_summary

            print_json(cell_summary(record, path))
        else:
            show_cell(record, path)
    elif as_json:
        from rtmeter.api.summaries import cell_summary  # and not for the table: it costs a second

        print_json({"cells": [cell_summary(cell.record, cell.folder) for cell in each_cell(path)]})
    else:
        runs = {folder.parent for folder in store.cell_folders(path)}
        below = runs.pop() if len(runs) == 1 else path  # of one run it need not be said of each which it is
        cells = ((cell.record, str(cell.folder.relative_to(below))) for cell in each_cell(path))
        show_cells(cells, repeats=repeats)
    return exit_codes.PASS
