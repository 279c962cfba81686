"""rtmeter attach: the loop of a program that runs, or is started, as it is."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.alone import WaitOption, alone
from rtmeter.cli.callback_table import show_callbacks
from rtmeter.cli.cell_options import as_flag, collect, flag, with_cell_options
from rtmeter.cli.commands.measure import error_of
from rtmeter.cli.refusals import refuse
from rtmeter.errors import RtmeterError

if TYPE_CHECKING:
    from rtmeter.measure.programs.looking import ThreadSeen
    from rtmeter.model import Cell

EXAMPLE = "sudo rtmeter attach --pid 4711 --thread control_loop --duration 10min --deadline 1ms"
DETAILS = (
    "The program is neither changed nor stopped: the kernel tells when its timers were due, when it woke and "
    "when it slept again. Without --thread, a table of its threads; with a duration or a deadline besides, "
    "the only periodic one is measured, with --all each of them. A program that is to be started comes after "
    "all options: rtmeter attach --duration 10s -- ./controller --rate 1000. The deadline is for the work "
    "(completion); --judge latency asks for the wake-up."
)
_OPTIONS = (
    *("pid", "thread", "period", "duration", "samples", "warm_up", "scheduling", "cpus", "judge"),
    *("deadline", "miss_ratio", "confidence", "criticality", "horizon"),
    *("conditions", "load", "traffic", "monitor", "strict", "explain", "on"),
)
_LOOKS = ("pid", "warm_up", "scheduling", "cpus", "on")
"""Those that say which threads are looked at, and how they are started."""

_MEASURES = ("duration", "samples", "deadline")
"""With one of these a program is measured without a thread being named."""


def command(
    *,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="The program to start.", show_default=False),
    ] = None,
    everyone: Annotated[
        bool, typer.Option("--all", help="Measure every periodic thread, a cell each.")
    ] = False,
    ros2: Annotated[
        bool, typer.Option("--ros2", help="A ROS 2 program's callbacks by node and topic, a cell each.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder for the cell, with --all for all (default: under results/)."
        ),
    ] = None,
    wait: Annotated[bool, WaitOption] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    **given: Any,
) -> int:
    """Looks at the program, or measures, stores and shows it."""
    from rtmeter.campaign import matrix
    from rtmeter.campaign.rules import ATTACHED, settle

    try:
        asked = collect(given) | {"measurement": "loop", "adapter": ATTACHED}
        if words:
            asked["command"] = shlex.join(words)
        elif "pid" not in asked:
            remedy = "give that of the program, or, after all options, -- and the command that starts it"
            raise RtmeterError("is missing", field="--pid", remedy=remedy)
        options = settle(asked)
        cell = matrix.cell_from(options, matrix.cell_id(options, None, {}), {})
        if (everyone or ros2) and "thread" in asked:
            remedy, field = "give one of the two", "--ros2" if ros2 else "--all"
            raise RtmeterError("contradicts --thread", field=field, value="yes", remedy=remedy)
        measures = any(name in asked for name in _MEASURES)
        only_look = not measures and not ((everyone and not ros2) or "thread" in asked)
        if only_look:
            others = {flag(name): value for name, value in given.items() if name not in _LOOKS}
            remedy = "give a --duration too: then it is measured; or leave it out"
            refuse(others | {"--out": out}, "means nothing where threads are only looked at", remedy)
        if ros2:
            return _run_by_name(cell, only_look=only_look, out=out, wait=wait, as_json=as_json)
        return _run(cell, everyone=everyone, only_look=only_look, out=out, wait=wait, as_json=as_json)
    except RtmeterError as error:
        raise _as_told(error) from None


def _as_told(error: RtmeterError) -> RtmeterError:
    """Its own options by the names that they have here."""
    if error.field == "command":
        error.field = "-- COMMAND"
    return as_flag(error)


def _run(cell: Cell, *, everyone: bool, only_look: bool, out: Path | None, wait: bool, as_json: bool) -> int:
    from rtmeter.cli.interrupt import stopping
    from rtmeter.measure.programs.attached import ByAttaching
    from rtmeter.measure.programs.attached_all import Together
    from rtmeter.results import store

    source = ByAttaching(cell)
    source.check()
    with ExitStack() as stack:
        stack.enter_context(alone([cell], wait=wait))
        stop = stack.enter_context(stopping([cell]))
        if only_look:
            seen = stack.enter_context(Together(cell, stop)).look()
            _show_threads(seen, as_json=as_json)
            return exit_codes.PASS
        path = out or stack.enter_context(store.own_run_folder(Path("results"), "attach"))
        if not everyone:
            path = path if out else path / cell.id
            store.check_free(path, "--out")
            return _measured([(cell, path, source)], stop, as_json=as_json)
        together = stack.enter_context(Together(cell, stop))
        cells = [(one, path / one.id, own) for one, own in together.sources()]
        return _measured(cells, stop, together.recording, as_json=as_json)


def _run_by_name(cell: Cell, *, only_look: bool, out: Path | None, wait: bool, as_json: bool) -> int:
    from rtmeter.cli.interrupt import stopping
    from rtmeter.measure.programs.attached import ByAttaching
    from rtmeter.measure.programs.named import ByName
    from rtmeter.results import store

    ByAttaching(cell).check()
    with ExitStack() as stack:
        stack.enter_context(alone([cell], wait=wait))
        stop = stack.enter_context(stopping([cell]))
        if only_look:
            named = stack.enter_context(ByName(cell, stop))
            show_callbacks(named.called(), named.found.lacking, as_json=as_json)
            return exit_codes.PASS
        path = out or stack.enter_context(store.own_run_folder(Path("results"), "attach"))
        store.check_free(path, "--out")
        named = stack.enter_context(ByName(cell, stop))
        cells = [(one, path / one.id, own) for one, own in named.sources()]
        return _measured(cells, stop, named.recording, as_json=as_json)


def _measured(cells: list[tuple[Cell, Path, Any]], stop: Any, recording: Any = None, *, as_json: bool) -> int:
    """Measures each, shows it, and returns the worst of what they come to; ``recording``: see run_cell()."""
    from rtmeter.api.summaries import cell_summary
    from rtmeter.cli.cell_tables import show_cell
    from rtmeter.cli.output import print_doubts, print_json
    from rtmeter.measure import cell as runner

    records = []
    for cell, path, source in cells:
        own = {"source": source, "recording": recording}
        record = runner.run_cell(cell, path, stop, lambda _: None, keep_empty=len(cells) > 1, **own)
        records.append((record, path))
        if record.error is not None and len(cells) == 1:
            print_doubts(record.warnings, record.error)
            raise error_of(record.error, path)
    if as_json:
        cells_json = [cell_summary(record, path) for record, path in records]
        print_json({"cells": cells_json} if len(cells) > 1 else cells_json[0])
    else:
        for record, path in records:
            show_cell(record, path)
            _show_why(record, path)
    return exit_codes.worst(exit_codes.of_cell(record) for record, _ in records)


def _show_why(record: Any, path: Path) -> None:
    if record.events_recorded:
        from rtmeter.judge.why import why_words
        from rtmeter.results.cells import StoredCell

        print(why_words(StoredCell(path, record)) or "nothing is late that could be explained")


def _show_threads(seen: list[ThreadSeen], *, as_json: bool) -> None:
    from rtmeter.cli.columns import print_table
    from rtmeter.cli.output import console, print_json
    from rtmeter.measure.programs.looking import LOOK_S, words
    from rtmeter.results.words import us
    from rtmeter.values import format_cpus, visible

    if as_json:
        print_json({"seconds": LOOK_S, "threads": [one.to_json() for one in seen]})
        return
    from rich.table import Table

    table = Table()
    for head in (
        "thread",
        "id",
        "policy",
        "CPUs",
        "woken by",
        "period\nus",
        "jitter\nus",
        "CPU\n%",
        "periodic",
    ):
        table.add_column(head)
    for one in seen:
        period = one.loop.period_ns if one.loop and one.periodic else None
        table.add_row(
            visible(one.task.name),
            str(one.task.tid),
            one.task.scheduling,
            format_cpus(one.cpus),
            visible(words(one)),
            us(period),
            us(one.jitter_ns),
            f"{100 * one.busy_share:.1f}",
            "yes" if one.periodic else "no",
        )
    print_table(console(), table)
    console().print(
        f"In {LOOK_S:g} s; jitter: p99 less p50 of the distances of wake-ups. Measure one with --thread, "
        "or each periodic one with --all.",
        markup=False,
    )


command = with_cell_options(command, _OPTIONS)
