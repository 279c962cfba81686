"""rtmeter explain: why was a release late?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.choices import completing_list

if TYPE_CHECKING:
    from rtmeter.explain.causes import Explanation

EXAMPLE = "rtmeter explain results/robot/measure/20261121T090000Z --top 5"
_PRIORITY = 80
"""Of the thread that --self-test plants causes for."""

DETAILS = (
    "Splits the time from each release to its stamp into segments by the kernel's events (who ran, "
    "interrupts, where the thread waited), which sum to its lateness exactly; names the cause of each late "
    "release, and ranks causes by the lateness that they carry. What the events do not tell is unknown, and "
    "said. PATH is a cell that was measured with --explain, or a folder of several: then each has a row, "
    "the one with most lateness first, which is explained below; or --events, --releases and --thread give "
    "a trace of your own."
)


def _plants() -> list[str]:
    from rtmeter.selftest.blamed import chosen

    return [plant.name for plant in chosen((), _PRIORITY)]


def command(
    path: Annotated[
        Path | None,
        typer.Argument(help="A cell measured with --explain, or a folder of them.", show_default=False),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="The kernel's events, in order of time.", show_default=False),
    ] = None,
    releases: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="k, release_ns, stamp_ns, late.", show_default=False),
    ] = None,
    thread: Annotated[
        int | None, typer.Option(metavar="TID", min=1, help="The thread that stamps.", show_default=False)
    ] = None,
    release: Annotated[
        int | None, typer.Option(metavar="K", help="Show this release's segments.", show_default=False)
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(
            metavar="1ms", help="Late is what is later (default: the cell's deadline).", show_default=False
        ),
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", min=0, help="Show those of the N latest.")] = 3,
    self_test: Annotated[
        bool,
        typer.Option("--self-test", help="Plant causes of lateness here: is each named? Needs root."),
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="With --self-test: only these plants.",
            show_default=False,
            autocompletion=completing_list(_plants),
        ),
    ] = None,
    times: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="With --self-test: how often each (3; slow ones once, unless --only names them).",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Explains the late releases."""
    from rtmeter.cli.explanations import show_explanation
    from rtmeter.cli.output import print_json
    from rtmeter.cli.refusals import refuse
    from rtmeter.cli.requirement_options import stated
    from rtmeter.errors import RtmeterError
    from rtmeter.explain.causes import chosen
    from rtmeter.explain.document import explanation_json

    cells_own = {"--release": release, "--deadline": deadline}
    scripts_own = {"--events": events, "--releases": releases, "--thread": thread}
    if self_test:
        remedy = "leave it out: causes are planted and measured anew"
        refuse({"PATH": path, **scripts_own, **cells_own}, "contradicts --self-test", remedy)
        return _self_test(only, times, as_json)
    refuse({"--only": only, "--times": times}, "goes with --self-test", "leave it out")
    deadline_ns = stated(deadline, None, None, None).get("deadline_ns")
    if path is None and deadline is not None:
        remedy = "say in the file of the releases which are late"
        raise RtmeterError("is of a cell", field="--deadline", value=deadline, remedy=remedy)
    if path is None:
        cell, found = None, _scripted(events, releases, thread, names=not as_json)
    else:
        refuse(scripts_own, "contradicts PATH", "give a cell, or a trace of your own")
        from rtmeter.judge.explained import explained
        from rtmeter.results.cells import find_cells

        cells = find_cells(path)
        if len(cells) > 1:
            from rtmeter.cli.explained_cells import explain_cells

            return explain_cells(path, cells, release, top, deadline_ns, as_json=as_json)
        cell = explained(cells[0], release, deadline_ns=deadline_ns)
        found = cell.found
    shown = chosen(found, release, top)
    if as_json:
        print_json(explanation_json(found, found.releases if release is None else shown))
    else:
        show_explanation(found, shown, cell)
    return exit_codes.PASS


def _self_test(only: str | None, times: int | None, as_json: bool) -> int:
    from dataclasses import asdict

    from rtmeter.cli.alone import called, tell
    from rtmeter.cli.explanations import planting, show_blamed
    from rtmeter.cli.interrupt import ending
    from rtmeter.cli.output import print_json
    from rtmeter.conditions.restore import restore_before_a_run
    from rtmeter.host.lock import machine_lock
    from rtmeter.host.root import Root
    from rtmeter.machine import Intent
    from rtmeter.selftest.blamed import TIMES, blame
    from rtmeter.values import Scheduling

    intent = Intent(cpus=None, scheduling=Scheduling("fifo", _PRIORITY))
    names = only.split(",") if only is not None else ()
    with ending(), machine_lock(called(), wait=False, say=tell), planting() as say:
        restore_before_a_run(Root())
        found = blame(intent, times or TIMES, names, say)
    if as_json:
        print_json({"self_test": [asdict(one) | {"outcome": one.outcome} for one in found]})
    else:
        for one in found:
            show_blamed(one)
    return exit_codes.of_self_test(one.outcome for one in found)


def _scripted(events: Path | None, releases: Path | None, thread: int | None, *, names: bool) -> Explanation:
    """``names``: what another thread did on a message's path has its name, which the definition of a key has
    not."""
    from rtmeter.errors import RtmeterError
    from rtmeter.explain.causes import explain
    from rtmeter.explain.scripted import read_events, read_releases

    given = {"--events": events, "--releases": releases, "--thread": thread}
    missing = [option for option, value in given.items() if value is None]
    if events is None or releases is None or thread is None:
        remedy = f"give {', '.join(given)}, or a cell"
        raise RtmeterError("is missing", field=missing[0], remedy=remedy)
    trace = read_events(events)
    if len(trace) and thread not in trace.tid and thread not in trace.target:
        remedy = "give the id of the thread that stamps, as the column tid has it"
        raise RtmeterError("occurs in no event", field="--thread", value=thread, remedy=remedy)
    return explain(trace, read_releases(releases), thread, names=names)
