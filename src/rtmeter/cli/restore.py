"""rtmeter restore: puts back what a run that was killed had changed of the machine."""

from __future__ import annotations

from typing import Annotated

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.alone import Wait

EXAMPLE = "sudo rtmeter restore"
DETAILS = (
    "A run undoes its settings when it ends, also at Ctrl-C or SIGTERM; after kill -9 the next run does it, "
    "or this. A value that someone else has changed since is left as it is. It may be repeated."
)


def command(
    set_aside: Annotated[
        bool,
        typer.Option(
            "--set-aside", help="Keep a journal that cannot be undone under another name: runs go on then."
        ),
    ] = False,
    wait: Annotated[bool, Wait] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what became of each change as JSON.")
    ] = False,
) -> int:
    """Exit code 0: the machine is known to be as it was found, but for what others changed."""
    from rtmeter.cli.alone import called, tell
    from rtmeter.cli.output import print_json
    from rtmeter.conditions.restore import restore
    from rtmeter.machine_lock import machine_lock
    from rtmeter.root import Root

    with machine_lock(called(), wait=wait, on_wait=tell):
        restored = restore(Root(), set_aside=set_aside)
    if as_json:
        print_json(restored.to_json())
    else:
        for line in (*restored.unknown, *map(str, restored.endings)):
            print(line)
        if restored.kept is not None:
            print(f"the journal is kept as {restored.kept}")
        elif not restored.endings:
            print("nothing was to be put back")
    return exit_codes.PASS if restored.whole else exit_codes.ERROR
