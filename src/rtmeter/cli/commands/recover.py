"""rtmeter recover: what is whole of a sample log becomes a cell."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter recover results/cell.partial/probe.rtlog -o rescued"
DETAILS = (
    "For a log whose probe or front was killed, or that was damaged. Every whole frame is kept and what is "
    "missing is said; the cell is marked failed and invalid if anything is. The log itself is not changed. "
    "The exit code says only whether something could be read."
)


def command(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A sample log (*.rtlog), or the folder of a chain's or a discovery's.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder of the cell (default: FILE without its suffix; of a folder recovered, in it).",
            show_default=False,
        ),
    ] = None,
    server_log: Annotated[
        Path | None,
        typer.Option(
            help="The server's log of a round trip (default: server.rtlog beside FILE).", show_default=False
        ),
    ] = None,
) -> int:
    """Writes a cell and shows it."""
    from rtmeter.cli.cell_tables import show_cell
    from rtmeter.cli.refusals import refuse
    from rtmeter.errors import RtmeterError
    from rtmeter.measure.recovered import recovered
    from rtmeter.measure.team.recovered_team import recovered_team
    from rtmeter.results import store

    is_folder = log.is_dir()
    together = is_folder and (log / store.STAGES / store.TEAM).is_file()
    if is_folder and not together:
        remedy = f"give a sample log in it, e.g. {next(log.rglob('*.rtlog'), log / store.CLIENT_LOG)}"
        raise RtmeterError("is a folder", field="FILE", value=str(log), remedy=remedy)
    if together:
        refuse({"--server-log": server_log}, "means nothing for a folder", "leave it out: its logs are known")
    path = out or (log / "recovered" if together else log.with_suffix(""))
    store.check_free(path, "--out")
    with store.NewCell(path) as new:
        record = recovered_team(log, new.folder) if together else recovered(log, server_log, new.folder)
        new.finish(record)
    for first, last in record.missing:
        print(f"missing: releases {first} to {'the end, unknown' if last is None else last}")
    show_cell(record, path)
    return exit_codes.PASS
