"""rtmeter export: measured cells for other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.choices import one_of
from rtmeter.exports import FORMATS, OF_QUANTITY

EXAMPLE = "rtmeter export results/cell --format csv -o samples.csv"
DETAILS = (
    "csv, parquet and json hold one row a release, warm-up included, times in nanoseconds, nothing where "
    "there is none; of imported histograms a row a bin. Of a folder of cells the column `cell` tells which. "
    "hdr is an HdrHistogram log and cyclictest-hist a histogram in microseconds, both of the judged quantity "
    "per release; ros1-timer-log and ros2-timer-… are the files of the 2014 and 2020 timer tools, of one "
    "quantity of one cell, as served. What such a file cannot hold is said."
)


def command(
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="The format of the file.",
            show_default=False,
            **one_of("--format", [*FORMATS, *OF_QUANTITY]),
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.", show_default=False)],
    path: Annotated[Path, typer.Argument(help="A cell, or a folder of cells.")] = Path("results"),
    quantity: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="What to write, of the formats of timer tools.", show_default=False
        ),
    ] = None,
) -> int:
    """Writes the cells and prints where they are."""
    from rtmeter.exports import export

    for note in export(path, out, form, quantity):
        print(f"rtmeter: {note}", file=sys.stderr)
    print(out)
    return exit_codes.PASS
