"""rtmeter restore: puts back what a run that was killed had changed of the machine."""

from __future__ import annotations

from typing import Annotated

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.alone import WaitOption

EXAMPLE = "sudo rtmeter restore"
DETAILS = (
    "A run undoes its settings when it ends, also at Ctrl-C or SIGTERM; after kill -9 the next run does it, "
    "or this. A value that someone else has changed since is left as it is. It may be repeated. Other hosts "
    "that a run had changed are put back over SSH. Folders beside results that attach --all or --ros2 was "
    "killed with are removed, and named: nothing in them is a result."
)


def command(
    on: Annotated[
        str | None,
        typer.Option(
            metavar="ssh://USER@HOST", help="Put back a target, by the journal there.", show_default=False
        ),
    ] = None,
    set_aside: Annotated[
        bool,
        typer.Option(
            "--set-aside", help="Keep a journal that cannot be undone under another name: runs go on then."
        ),
    ] = False,
    wait: Annotated[bool, WaitOption] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what became of each change as JSON.")
    ] = False,
) -> int:
    """Exit code 0: the machines are known to be as they were found, but for what others changed."""
    from rtmeter.cli.alone import called, tell
    from rtmeter.cli.output import print_json
    from rtmeter.conditions.component import restore_there
    from rtmeter.conditions.journal import hosts
    from rtmeter.conditions.restore import restore
    from rtmeter.host.lock import machine_lock
    from rtmeter.host.root import Root
    from rtmeter.host.scratch import remove_left
    from rtmeter.values import harmless

    if on is not None:
        from rtmeter.conditions.target import parse_on, restore_on

        done = restore_on(parse_on(on), set_aside=set_aside, say=tell if wait else None)
        print_json(done.to_json()) if as_json else print(*map(harmless, done.lines()), sep="\n")
        return exit_codes.PASS if done.whole else exit_codes.ERROR
    root = Root()
    with machine_lock(called(), wait=wait, say=tell):
        here = restore(root, set_aside=set_aside)
        there = {host: restore_there(host, root, set_aside=set_aside) for host in hosts()}
    removed = remove_left()
    if as_json:
        of_hosts = {host: done.to_json() for host, done in there.items()}
        print_json(here.to_json() | {"hosts": of_hosts, "folders": removed})
    else:
        for line in removed:
            print(harmless(line))
        for line in here.lines():
            print(harmless(line))
        for host, done in there.items():
            for line in done.lines():
                print(harmless(f"{host}: {line}"))
    return exit_codes.PASS if all(done.whole for done in (here, *there.values())) else exit_codes.ERROR
