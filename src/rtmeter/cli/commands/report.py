"""rtmeter report: one HTML file of measured cells."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter report results -o report.html"
DETAILS = (
    "PATH is a cell or a folder of cells; several make one report, such as a campaign's results of two "
    "kernels. The file is whole in itself: it opens without a network."
)


def command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...", help="A cell, or a folder of cells (default: results).", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The file to write (default: PATH/report.html).", show_default=False
        ),
    ] = None,
) -> int:
    """Writes the report and prints where it is."""
    from rtmeter import report
    from rtmeter.cli.reading_progress import reading
    from rtmeter.cli.report_floor import floor_of
    from rtmeter.errors import RtmeterError
    from rtmeter.judge.run_factors import effects_of_runs
    from rtmeter.results import store
    from rtmeter.results.overview import refuse

    paths = paths or [Path("results")]
    if out is None and (len(paths) > 1 or store.repeats_of(paths[0])):
        raise RtmeterError("is missing: the report is of several paths", field="--out", remedy="add -o FILE")
    with reading() as read:
        floor = floor_of(paths, read)
        effects = list(effects_of_runs(paths, read))
    damage: list[RtmeterError] = []
    print(report.write(paths, out or paths[0] / "report.html", floor, damage, effects))
    refuse(damage)
    return exit_codes.PASS
