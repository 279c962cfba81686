"""rtmeter check-adapter: does an adapter keep the contract?"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.choices import completing, probes_here

if TYPE_CHECKING:
    from rtmeter.selftest.adapter import Result

EXAMPLE = "rtmeter check-adapter posix"
DETAILS = (
    "Runs the built probe of the adapter again and again, for a tenth of a second each, in every way that it "
    "lists: one line for each check. Measures nothing, needs no quiet machine, changes none. "
    "Exit codes: 0 every check passed or does not apply, 1 error, 2 a check failed."
)
_STYLES = {"pass": "green", "fail": "bold red", "not applicable": "dim"}


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The adapter.",
            show_default=False,
            autocompletion=completing(probes_here),
        ),
    ],
    only: Annotated[
        str, typer.Option(metavar="WORD", help="Only checks whose name contains this.", show_default=False)
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Checks it, from describe to its end."""
    from rtmeter.cli.output import console, print_json
    from rtmeter.measure.probe import probes
    from rtmeter.selftest.adapter import check_adapter

    probe = probes.find(name)
    results: list[Result] = []
    with _Lines(silent=as_json) as lines:
        for result in check_adapter(probe, only, lines.began):
            results.append(result)
            lines.show(result)
    counts = Counter(result.outcome for result in results)
    if as_json:
        checks = [asdict(result) for result in results]
        print_json({"adapter": name, "probe": str(probe.path), "counts": dict(counts), "checks": checks})
    else:
        console().print(f"{name}: " + ", ".join(f"{counts[word]} {word}" for word in _STYLES), markup=False)
    return exit_codes.FAIL if counts["fail"] else exit_codes.PASS


class _Lines:
    """A line for each check when it is over, and on a terminal the one that runs."""

    def __init__(self, *, silent: bool) -> None:
        from rich.console import Console

        from rtmeter.cli.output import console

        self._out, self._silent = console(), silent
        self._status = Console(stderr=True).status("")

    def __enter__(self) -> _Lines:
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def began(self, name: str) -> None:
        self._status.update(f"checking {name}")

    def show(self, result: Result) -> None:
        from rich.markup import escape

        if self._silent:
            return
        style = _STYLES[result.outcome]
        self._out.print(
            f"[{style}]{result.outcome:<14}[/{style}]  [bold]{escape(result.name)}[/bold]", highlight=False
        )
        self._out.print(f"    {result.reason}", markup=False, highlight=False)
        if result.remedy:
            self._out.print(f"    mend: {result.remedy}", markup=False, highlight=False, style="yellow")
