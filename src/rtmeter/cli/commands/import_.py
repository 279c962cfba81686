"""rtmeter import: files of other tools as cells."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.choices import one_of
from rtmeter.cli.requirement_options import Confidence, CriticalityText, HorizonText, MissRatio
from rtmeter.importers import FORMATS

EXAMPLE = "rtmeter import cyclictest.json --deadline 100us --miss-ratio 1e-4"
DETAILS = (
    "Each series of a file (a thread, a CPU) becomes a cell that summary, verdict, report and compare take. "
    "Nothing is written unless all files can be read. With --deadline the exit code is the worst verdict."
)


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of other tools.")],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="The files' format (default: told by each file).",
            show_default=False,
            **one_of("--format", FORMATS),
        ),
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(metavar="1ms", help="Period, if the file does not say it.", show_default=False),
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(metavar="1ms", help="Judge by this deadline.", show_default=False)
    ] = None,
    miss_ratio: MissRatio = None,
    confidence: Confidence = None,
    criticality: CriticalityText = None,
    horizon: HorizonText = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the cells (default: one under results/).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Stores the cells and shows them."""
    from rtmeter.api.summaries import cell_summary
    from rtmeter.campaign import matrix
    from rtmeter.cli.cell_options import as_flag
    from rtmeter.cli.cell_tables import show_cell, show_cells
    from rtmeter.cli.output import print_json
    from rtmeter.cli.requirement_options import required
    from rtmeter.errors import RtmeterError
    from rtmeter.importers import cells as imported
    from rtmeter.results import store

    asked = required(deadline, miss_ratio, confidence, criticality, horizon)
    try:
        period_ns = None if period is None else matrix.parse_fact("period", period)
    except RtmeterError as error:
        raise as_flag(error) from None
    imports = imported.read_files(files, form, period_ns)
    machine = imported.machine_of(imports)
    own = store.own_run_folder(Path("results"), imported.CAMPAIGN, machine)
    with nullcontext(out) if out else own as folder:
        store.check_free(folder, "--out")
        records = [imported.write_import(one, folder, asked) for one in imports]
        imported.write_run(imports, folder)
    if as_json:
        cells = [cell_summary(record, folder / record.id) for record in records]
        print_json({"run": str(folder), "cells": cells})
    elif len(records) == 1:
        show_cell(records[0], folder / records[0].id)
    else:
        show_cells((record, record.id) for record in records)
        print(f"stored in {folder}")
    return exit_codes.worst(exit_codes.of_cell(record) for record in records)
