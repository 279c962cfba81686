"""rtmeter export: samples for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter export results/cell --format csv -o samples.csv"
DETAILS = (
    "One row a release, warm-up included, times in nanoseconds, empty where there is none. Of a folder of "
    "cells the column `cell` tells which."
)


def command(
    path: Annotated[Path, typer.Argument(help="A cell, or a folder of cells.", show_default=False)],
    form: Annotated[
        str,
        typer.Option("--format", metavar="csv|parquet", help="What to write.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.", show_default=False)],
) -> int:
    """Writes the samples and prints where they are."""
    from rtmeter import store

    store.export(path, out, form)
    print(out)
    return exit_codes.PASS
