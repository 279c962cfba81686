"""rtmeter graph: another tool's graph as the YAML of a chain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter graph sierra_nevada.json -o sierra_nevada.yaml"
DETAILS = (
    "Reads the topologies of iRobot's ros2-performance (JSON) and the reference system of Autoware "
    "(autoware_system_builder.hpp, with the timing header of the same checkout). What a chain does not have "
    "is left out, and said at the top of the file; measure it with rtmeter measure chain --graph."
)


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The other tool's file.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The YAML file (default: printed).", show_default=False)
    ] = None,
    timing: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Times of Autoware's nodes (default: system/timing/default.hpp beside it).",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Writes the graph, once it is known to be one."""
    from rtmeter.campaign.chain_option import graph_at
    from rtmeter.errors import RtmeterError
    from rtmeter.importers import graphs

    text = graphs.read(file, timing).yaml()
    graph_at(text, str(file))
    if out is None:
        print(text, end="")
        return exit_codes.PASS
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        remedy = "choose a folder that exists and can be written"
        raise RtmeterError(f"cannot be written: {error.strerror}", where=str(out), remedy=remedy) from None
    print(out)
    return exit_codes.PASS
