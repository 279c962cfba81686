"""rtmeter layers: what does each middleware add to a floor?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.choices import completing_of_cells

if TYPE_CHECKING:
    from rtmeter.results.record import CellRecord

EXAMPLE = "rtmeter layers results/robot/executors/20261121T090000Z --floor posix"
DETAILS = (
    "Sets every cell against the cell of the floor with the same measurement, settings, drive and threads: "
    "cell = floor + X at each quantile. X is the shift of the quantile, from interleaved pairs where the "
    "campaign repeats its cells. Exit codes: 0, 1 error or refused."
)


def _floors(records: Sequence[CellRecord]) -> list[str]:
    return [*(record.adapter for record in records), *(record.name for record in records)]


def command(
    path: Annotated[Path, typer.Argument(help="A folder of cells.")] = Path("results"),
    floor: Annotated[
        str,
        typer.Option(
            metavar="ADAPTER|CELL",
            help="What lies below.",
            autocompletion=completing_of_cells("path", _floors),
        ),
    ] = "posix",
    confidence: Annotated[
        str | None,
        typer.Option(
            metavar="C", help="Confidence of all X of a cell together (default 95%).", show_default=False
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Compare what is refused.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Shows the layers of a run."""
    from rtmeter.api.comparisons import compared_json as to_json
    from rtmeter.cli.comparison_tables import show_layers
    from rtmeter.cli.output import print_json
    from rtmeter.cli.reading_progress import reading
    from rtmeter.cli.requirement_options import asked_of
    from rtmeter.errors import RtmeterError
    from rtmeter.judge.layers import layers
    from rtmeter.results.cells import by_name, find_cells

    asked = asked_of([], None, confidence, force)
    with reading() as read:
        found, without = layers(by_name(find_cells(path)), floor, asked, read)
    if not found:
        message = "has no other cell of the same measurement, settings, drive and threads above it"
        raise RtmeterError(message, field="--floor", value=floor, remedy="name a cell as floor of all")
    if as_json:
        print_json({"floor": floor, "cells": [to_json(one) for one in found], "without_floor": without})
    else:
        show_layers(found)
        for name in without:
            print(f"no floor of the same measurement, settings, drive and threads: {name}")
    failed = any(one.found is None for one in found)
    return exit_codes.ERROR if failed else exit_codes.PASS
