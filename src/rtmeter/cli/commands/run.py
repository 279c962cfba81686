"""rtmeter run: every cell of a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtmeter.cli.alone import WaitOption
from rtmeter.cli.choices import campaign_files

if TYPE_CHECKING:
    from rtmeter.model import Cell

EXAMPLE = "rtmeter run campaigns/demo.yaml --only 'measurement==wakeup' --scale 0.1"
DETAILS = (
    "What the campaign will start and change is said first. --dry-run ends there, with the order, the time "
    "and what is missing here (exit codes: 0 nothing, 1 cells would fail, 3 cells would be skipped). "
    "Each cell is stored when it ends, under OUT/machine/campaign/run/. Ctrl-C and SIGTERM end cleanly and "
    "keep what was measured; --resume goes on with what is missing, failed or interrupted. --rigs measures "
    "all cells on each of many machines at once (docs/rigs.md)."
)


def command(
    campaign: Annotated[
        Path,
        typer.Argument(
            help="Campaign file (spec/campaign.md).", show_default=False, autocompletion=campaign_files
        ),
    ],
    scale: Annotated[float, typer.Option(help="Multiplies the measured releases of every cell.")] = 1.0,
    only: Annotated[
        str | None, typer.Option(metavar="EXPR", help="Run the cells that EXPR chooses.", show_default=False)
    ] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="component=ssh://USER@HOST",
            help="Where round trips' servers run.",
            show_default=False,
        ),
    ] = None,
    rigs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Measure on all machines of this file at once, over ssh (docs/rigs.md).",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the campaign's last run.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Say what would run, how long, and what is missing; change and measure nothing."
        ),
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the results.")] = Path("results"),
    metrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep OpenMetrics text in FILE meanwhile, for node_exporter's textfile collector.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[bool, WaitOption] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summaries as JSON.")] = False,
) -> int:
    """Runs the campaign; the exit code is its worst cell's."""
    from rtmeter.campaign.file import read_campaign
    from rtmeter.campaign.rigs import read_rigs
    from rtmeter.cli.announce import announce
    from rtmeter.cli.campaigns import measure_campaign, tell_of
    from rtmeter.cli.cell_options import component
    from rtmeter.cli.output import print_json
    from rtmeter.cli.refusals import refuse
    from rtmeter.measure.run import Run

    if rigs is not None:
        message, remedy = "is of one machine's run, not of --rigs", "leave it out"
        refuse({"--metrics": metrics}, message, remedy)
        refuse({"--wait": wait}, message, f"{remedy}: the patience of a rig says how long it is waited for")
    if dry_run:
        remedy = "leave it out: nothing is measured"
        refuse({"--metrics": metrics, "--wait": wait}, "means nothing with --dry-run", remedy)
    machines = () if rigs is None else read_rigs(rigs)
    planned = read_campaign(campaign, scale=scale, only=only, host=component(hosts), rigs=machines)
    if dry_run:
        from rtmeter.cli.preview import Preview, show_preview

        cells: Sequence[Cell] = planned.cells
        if resume:
            run = Run.last(out, planned, scale)
            tell_of(run)
            cells = run.remaining()
        announce(planned)
        preview = Preview.of(planned, cells)
        print_json(preview.to_json()) if as_json else show_preview(preview)
        return preview.exit_code
    return measure_campaign(planned, out, scale, resume=resume, metrics=metrics, wait=wait, as_json=as_json)
