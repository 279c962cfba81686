"""rtmeter measure: one cell from options."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.alone import WaitOption, alone
from rtmeter.cli.cell_options import as_flag, collect, with_cell_options
from rtmeter.errors import RtmeterError

if TYPE_CHECKING:
    from rtmeter.results.record import Failure

EXAMPLE = (
    "rtmeter measure wakeup --adapter posix --period 1ms --duration 10s --scheduling fifo:80 --deadline 1ms"
)
DETAILS = (
    "Times and sizes are written with their unit: 400us, 10ms, 128KiB. With --deadline the exit code is the "
    "verdict. Ctrl-C ends the run and keeps what was measured. --payload, --rate, --period, --subscribers, "
    "--publishers, --background-nodes and --participants also take a range, 16B..8MiB or 10..10kHz (1, 2 "
    "and 5 of each decade, sizes four times each other; 16B..8MiB/5: five values), or a list, 500,128KiB: a "
    "sweep, each value a cell of a campaign, whose file is in its folder. "
    "`rtmeter plot --kind against` shows where it breaks, `rtmeter plan --find-max` searches for it."
)


@with_cell_options
def command(
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder for the cell (default: one under results/); of a sweep that of runs."
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(metavar="500Hz", help="The period, as releases in a second.", show_default=False),
    ] = None,
    wait: Annotated[bool, WaitOption] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    **given: Any,
) -> int:
    """Measures, stores and shows the cell."""
    from rtmeter.api.summaries import cell_summary
    from rtmeter.campaign import matrix
    from rtmeter.campaign.file import resolve_script
    from rtmeter.campaign.ranges import SWEPT, is_range
    from rtmeter.campaign.rules import settle
    from rtmeter.cli.campaigns import measure_campaign
    from rtmeter.cli.cell_tables import show_cell
    from rtmeter.cli.interrupt import stopping
    from rtmeter.cli.output import print_doubts, print_json
    from rtmeter.cli.progress import progress_for
    from rtmeter.cli.sweeps import at_rate, sweep
    from rtmeter.measure import cell as runner
    from rtmeter.results import store

    try:
        raw = resolve_script(collect(given), Path.cwd())
    except RtmeterError as error:
        raise as_flag(error) from None
    if is_range(rate) or any(is_range(raw.get(name)) for name in SWEPT):
        planned = sweep(raw, rate)
        return measure_campaign(planned, out or Path("results"), wait=wait, as_json=as_json)
    try:
        options = settle(at_rate(raw, rate))
        cell = matrix.cell_from(options, matrix.cell_id(options, None, {}), {})
        runner.source_of(cell).check()
    except RtmeterError as error:
        raise as_flag(error, rate) from None
    with ExitStack() as stack:
        stack.enter_context(alone([cell], wait=wait))
        path = out or stack.enter_context(store.own_run_folder(Path("results"), "measure")) / cell.id
        stop, progress = stack.enter_context(stopping([cell])), stack.enter_context(progress_for([cell]))
        store.check_free(path, "--out")
        progress.follow(path.name, lambda _: path)
        record = runner.run_cell(cell, path, stop, progress.watch(0, cell), keep_empty=False)
    if record.error is not None:
        print_doubts(record.warnings, record.error)
        raise as_flag(error_of(record.error, path), rate)
    if record.status == "interrupted" and not path.exists():
        raise RtmeterError("interrupted before anything was measured", remedy="run it again")
    if as_json:
        print_json(cell_summary(record, path))
    else:
        show_cell(record, path)
        if record.events_recorded:
            from rtmeter.judge.why import why_words
            from rtmeter.judge.why_cells import to_explain
            from rtmeter.results.cells import StoredCell

            stored = StoredCell(path, record)
            print(why_words(stored) or "nothing is late that could be explained")
            if to_explain([stored]) is not None:
                print(f"  rtmeter explain {shlex.quote(str(path))}")
    return exit_codes.of_cell(record)


def error_of(failure: Failure, path: Path) -> RtmeterError:
    """Why the cell failed; ``where`` is its folder if there is something in it to look at."""
    error = failure.as_error
    error.where = str(path) if path.exists() else None
    return error
