"""rtmeter site: a static site over all results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter site results -o site"
DETAILS = (
    "A first page with the latest verdict of every cell on every machine, a page of history a cell, any two "
    "cells side by side, and the report of each campaign's latest run. Plain files: open index.html, or copy "
    "the folder to any web server. Called again, it makes anew what changed."
)


def command(
    context: typer.Context,
    results: Annotated[Path, typer.Argument(help="A folder of results.")] = Path("results"),
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the site.")] = Path("site"),
    archive: Annotated[
        str | None,
        typer.Option("--archive", help="The page of a fleet, of this archive instead.", show_default=False),
    ] = None,
    reports: Annotated[
        bool, typer.Option("--reports/--no-reports", help="Make the reports of the latest runs too.")
    ] = True,
) -> int:
    """Writes the site and prints where its first page is."""
    from rtmeter.cli.progress import showing
    from rtmeter.cli.report_floor import floor_of
    from rtmeter.errors import RtmeterError
    from rtmeter.report import site
    from rtmeter.results import store
    from rtmeter.results.overview import refuse

    if archive is not None:
        _refuse_what_is_not_heeded(context)
        print(_fleet(archive, out))
        return exit_codes.PASS
    floors = (lambda path: floor_of([path], store.chunks)) if reports else None
    with showing() as show:
        damage: list[RtmeterError] = []
        first = site.write(results, out, floors, lambda words: show(words, 0.0, "during"), damage)
    print(first)
    refuse(damage)
    return exit_codes.PASS


def _refuse_what_is_not_heeded(context: typer.Context) -> None:
    """Raises RtmeterError for what was given beside --archive and is of a site of results only."""
    from rtmeter.errors import RtmeterError

    for name, field in (("results", "RESULTS"), ("reports", "--reports/--no-reports")):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            message = "is not for the page of a fleet, which is of the archive alone"
            raise RtmeterError(message, field=field, remedy="leave out that or --archive")


def _fleet(archive: str, out: Path) -> Path:
    from rtmeter.archive.engine import need_archive

    need_archive()
    from rtmeter.archive.tables import archive_at
    from rtmeter.report import fleet, site

    first = fleet.write(archive_at(archive), out)
    site.forget(out, first.name)
    return first
