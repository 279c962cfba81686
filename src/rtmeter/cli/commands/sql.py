"""rtmeter sql: a question that no other command asks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter sql \"SELECT cell, n, p99_ns, max_ns FROM cells WHERE view = 'per_release' ORDER BY n\""
DETAILS = (
    "Answers one SELECT, by DuckDB, from two tables: cells (a row a cell, quantity and view; times in ns) "
    "and samples (a row a release, with its cell). Nothing else is read, and nothing is written but FILE; "
    'docs/notebook.md lists the columns.\n\n[bold]Example:[/bold] [cyan]rtmeter sql "SELECT cell, '
    'max(wake_ns - release_ns) FROM samples GROUP BY cell" results/robot --csv[/cyan]'
)


def command(
    query: Annotated[str, typer.Argument(metavar="SELECT", help="One statement.", show_default=False)],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...", help="A cell, or a folder of cells (default: results).", show_default=False
        ),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write a file instead: .parquet or .csv.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Prints what the SELECT finds."""
    from rtmeter.cli.answers import shown_as
    from rtmeter.results.cell_table import names_of
    from rtmeter.results.cells import find_cells
    from rtmeter.results.query import answering

    show = shown_as(csv, out, as_json)
    cells = [cell for path in paths or [Path("results")] for cell in find_cells(path)]
    with answering(names_of(cells), query) as answer:
        show(answer)
    return exit_codes.PASS
