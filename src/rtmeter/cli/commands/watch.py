"""rtmeter watch: a run that was started elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter watch results"
DETAILS = (
    "Shows what a run, or one cell, has measured so far: from another terminal, or after the connection "
    "to the machine was lost. It reads the run's files and changes nothing. It ends with the run; Ctrl-C "
    "ends the watching only."
)


def command(
    path: Annotated[
        Path, typer.Argument(help="A run's folder, a cell's, or results: the run that began last.")
    ] = Path("results"),
    every: Annotated[str, typer.Option(metavar="TIME", help="How often to look.")] = "1s",
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
    metrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep OpenMetrics text in FILE, for node_exporter's textfile collector.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Looks until the run is over."""
    import threading

    from rtmeter.cli.output import console
    from rtmeter.cli.screen import line, screen
    from rtmeter.errors import RtmeterError
    from rtmeter.live import metrics as openmetrics
    from rtmeter.live.run import FollowedRun
    from rtmeter.results.overview import refuse
    from rtmeter.values import parse_positive_ns

    try:
        pause_s = parse_positive_ns(every) / 1e9
    except ValueError as error:
        raise RtmeterError(str(error.args[0]), field="--every", value=every, remedy="give e.g. 1s") from None
    run, out, pause = FollowedRun.at(path), console(), threading.Event()
    live = None
    if out.is_terminal and not once:
        from rich.live import Live

        live = Live(console=out, auto_refresh=False)
        live.start()
    said = ""
    try:
        while True:
            state = run.state()
            if metrics is not None:
                openmetrics.write(metrics, state)
            if live is not None:
                live.update(screen(state, out), refresh=True)
            elif once and out.is_terminal:
                out.print(screen(state, out))
            elif (words := line(state)) != said:
                print(words, flush=True)
                said = words
            if once or state.over:
                refuse(state.damage)
                return exit_codes.PASS
            pause.wait(pause_s)
    except KeyboardInterrupt:
        print("rtmeter: the run goes on", file=sys.stderr)
        return exit_codes.PASS
    finally:
        if live is not None:
            live.stop()
