"""rtmeter explain: why was a release late?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter explain --events events.csv --releases releases.csv --thread 4711"
DETAILS = (
    "Splits the time from each release to its stamp into segments by the kernel's events (who ran, "
    "interrupts, where the thread waited), which sum to its lateness exactly; names the cause of each late "
    "release, and ranks causes by the lateness that they carry. What the events do not tell is unknown, and "
    "said."
)


def command(
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
    top: Annotated[int, typer.Option(metavar="N", min=0, help="Show those of the N latest.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Explains the late releases."""
    from rtmeter.cli.explanations import show_explanation
    from rtmeter.cli.output import print_json
    from rtmeter.errors import RtmeterError
    from rtmeter.explain.causes import chosen, explain
    from rtmeter.explain.document import explanation_json
    from rtmeter.explain.scripted import read_events, read_releases

    given = {"--events": events, "--releases": releases, "--thread": thread}
    missing = [option for option, value in given.items() if value is None]
    if events is None or releases is None or thread is None:
        raise RtmeterError("is missing", field=missing[0], remedy=f"give {', '.join(given)}")
    trace = read_events(events)
    if len(trace) and thread not in trace.tid and thread not in trace.target:
        remedy = "give the id of the thread that stamps, as the column tid has it"
        raise RtmeterError("occurs in no event", field="--thread", value=thread, remedy=remedy)
    found = explain(trace, read_releases(releases), thread)
    shown = chosen(found, release, top)
    if as_json:
        print_json(explanation_json(found, found.releases if release is None else shown))
    else:
        show_explanation(found, shown)
    return exit_codes.PASS
