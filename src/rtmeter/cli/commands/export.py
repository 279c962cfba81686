"""rtmeter export: measured cells for other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter export results/cell --format csv -o samples.csv"
DETAILS = (
    "csv, parquet and json hold one row a release, warm-up included, times in nanoseconds, nothing where "
    "there is none; of imported histograms a row a bin. Of a folder of cells the column `cell` tells which. "
    "hdr is an HdrHistogram log and cyclictest-hist a histogram in microseconds, both of the judged quantity "
    "per release; ros1-timer-log and ros2-timer-… are the files of the 2014 and 2020 timer tools, of one "
    "quantity of one cell, as served. What such a file cannot hold is said."
)


def command(
    path: Annotated[Path, typer.Argument(help="A cell, or a folder of cells.", show_default=False)],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="csv, parquet, json, hdr, cyclictest-hist, perfetto, mcap, markdown, ros1-timer-log, "
            "ros2-timer-series, ros2-timer-hist or ros2-timer-topn.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.", show_default=False)],
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
