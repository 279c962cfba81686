"""rtmeter report: one HTML file of measured cells."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter report results -o report.html"
DETAILS = "PATH is a cell or a folder of cells. The file is whole in itself: it opens without a network."


def command(
    path: Annotated[Path, typer.Argument(help="A cell, or a folder of cells.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The file to write (default: PATH/report.html).", show_default=False
        ),
    ] = None,
) -> int:
    """Writes the report and prints where it is."""
    from rtmeter import report
    from rtmeter.cli.floors import floor_of
    from rtmeter.cli.reading import reading

    with reading() as read:
        floor = floor_of(path, read)
    print(report.write(path, out or path / "report.html", floor))
    return exit_codes.PASS
