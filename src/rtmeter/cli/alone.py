"""The machine for this command alone, and as it was before any run that was killed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rtmeter.model import Cell

WaitOption = typer.Option("--wait", help="Wait until no other rtmeter measures here, instead of refusing.")


@contextmanager
def alone(cells: Sequence[Cell], *, wait: bool) -> Iterator[None]:
    """Holds the machine's lock, and undoes first what a killed run left. Raises RtmeterError.

    Cells that all are on a scripted clock need no machine: they are not held up, and hold up nobody.
    """
    from rtmeter.conditions.restore import restore_before_a_run
    from rtmeter.host.lock import machine_lock
    from rtmeter.host.root import Root
    from rtmeter.measure import cell as runner
    from rtmeter.values import harmless

    if not runner.need_the_machine(cells):
        yield
        return
    with machine_lock(called(), wait=wait, say=tell):
        undone = [u for u in restore_before_a_run(Root()) if u.ending in ("restored", "changed_since")]
        for one in undone:
            print(harmless(f"rtmeter: after a run that was killed: {one}"), file=sys.stderr)
        yield


def called() -> str:
    """This command, for who finds the lock held."""
    return " ".join(["rtmeter", *sys.argv[1:3]])


def tell(sentence: str) -> None:
    """Says whom it waits for."""
    print(f"rtmeter: {sentence}", file=sys.stderr)
