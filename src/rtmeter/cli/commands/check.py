"""rtmeter check: what on this machine hurts punctuality, and what mends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.alone import WaitOption, called, tell
from rtmeter.cli.choices import one_of
from rtmeter.machine import Workload

if TYPE_CHECKING:
    from rtmeter.machine import Finding, Intent
    from rtmeter.selftest import Sight

_Value = TypeVar("_Value")

EXAMPLE = "rtmeter check --cpus 1 --scheduling fifo:80"
DETAILS = (
    "Reads settings, changes none. Grades are those of the kernel's real-time documentation. Exit codes: "
    "0 nothing above medium, 1 error, 2 something fatal or high, 3 something that may be fatal or high "
    "cannot be read. With --self-test: 0 every disturbance was seen, 2 one was not, 3 one could not be made."
)

_GRADES = {"fatal": "bold red", "high": "red", "unknown": "magenta", "medium": "yellow", "info": "cyan"}
_OUTCOMES = {"seen": "green", "not seen": "red", "not named": "red", "not planted": "magenta"}
_SERIOUS = ("fatal", "high")


def command(
    workload: Annotated[
        str,
        typer.Option(
            help="A loop, or round trips: then the network counts too.",
            **one_of("--workload", get_args(Workload)),
        ),
    ] = "cyclic",
    cpus: Annotated[
        str | None,
        typer.Option(metavar="0,2-3", help="CPUs that are to be measured on.", show_default=False),
    ] = None,
    scheduling: Annotated[
        str, typer.Option(metavar="fifo:80", help="Policy and priority of the measured thread.")
    ] = "fifo:80",
    self_test: Annotated[
        bool,
        typer.Option("--self-test", help="Disturb the machine for some seconds: is each disturbance seen?"),
    ] = False,
    on: Annotated[
        str | None, typer.Option(metavar="ssh://USER@HOST", help="Look at a target.", show_default=False)
    ] = None,
    wait: Annotated[bool, WaitOption] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Looks at the machine as it is now."""
    from rtmeter.cli.output import print_json
    from rtmeter.cli.refusals import refuse
    from rtmeter.host.root import Root
    from rtmeter.machine import Intent, findings, parse_workload
    from rtmeter.values import parse_cpus, parse_scheduling

    intent = Intent(
        cpus=None if cpus is None else _given("--cpus", cpus, parse_cpus),
        scheduling=_given("--scheduling", scheduling, parse_scheduling),
        workload=_given("--workload", workload, parse_workload),
    )
    if self_test:
        refuse({"--on": on}, "cannot be had with --self-test", "leave one of the two out")
        return _self_test(intent, wait, as_json)
    refuse({"--wait": wait}, "means nothing without --self-test", "leave it out: nothing is held to look")
    if on is None:
        found = findings(Root(), intent)
    else:
        from rtmeter.conditions.target import parse_on, reached

        with reached(parse_on(on)) as root:
            found = findings(root, intent)
    if as_json:
        print_json(_summary(found, intent))
    else:
        _show(found, intent)
    return exit_code(found)


def exit_code(found: Sequence[Finding]) -> int:
    """FAIL for what is fatal or high, INCONCLUSIVE for what may be, else PASS."""
    if any(finding.grade in _SERIOUS for finding in found):
        return exit_codes.FAIL
    if any(finding.at_worst in _SERIOUS for finding in found):
        return exit_codes.INCONCLUSIVE
    return exit_codes.PASS


def _self_test(intent: Intent, wait: bool, as_json: bool) -> int:
    from rtmeter import selftest
    from rtmeter.cli.output import print_json
    from rtmeter.host.lock import machine_lock

    with machine_lock(called(), wait=wait, say=tell):
        seen = selftest.self_test(intent)
    if as_json:
        print_json({"self_test": [asdict(sight) | {"outcome": sight.outcome} for sight in seen]})
    else:
        for sight in seen:
            _show_sight(sight)
    return exit_codes.of_self_test(sight.outcome for sight in seen)


def _show_sight(sight: Sight) -> None:
    from rtmeter.cli.output import console, microseconds

    out, planted, style = console(), sight.planted, _OUTCOMES[sight.outcome]
    out.print(f"[{style}]{sight.outcome}[/{style}]  [bold]{planted.name}[/bold]")
    if planted.problem:
        out.print(f"    {planted.problem}", markup=False)
        return
    late, else_ = microseconds(sight.late_ns), microseconds(sight.elsewhere_ns)
    out.print(f"    {planted.done}", markup=False)
    out.print(f"    largest lateness then {late} us, at other times {else_} us", markup=False)
    if planted.finding:
        out.print(f"    {'named' if planted.was_named else 'not named'} by {planted.finding}", markup=False)


def _given(option: str, text: str, parse: Callable[[object], _Value]) -> _Value:
    from rtmeter.errors import RtmeterError

    try:
        return parse(text)
    except ValueError as error:
        message, remedy = error.args
        raise RtmeterError(message, field=option, value=text, remedy=remedy) from None


def _summary(found: Sequence[Finding], intent: Intent) -> dict[str, Any]:
    return {
        "workload": intent.workload,
        "cpus": None if intent.cpus is None else list(intent.cpus),
        "scheduling": str(intent.scheduling),
        "counts": _counts(found),
        "findings": [finding.to_json() for finding in found],
    }


def _counts(found: Sequence[Finding]) -> dict[str, int]:
    counts = Counter[str](finding.grade for finding in found)
    return {grade: counts[grade] for grade in _GRADES}


def _show(found: Sequence[Finding], intent: Intent) -> None:
    """Grade and name beside what was found, why it matters, and what mends it."""
    from rich.padding import Padding
    from rich.text import Text

    from rtmeter.cli.output import console

    out = console()
    where = "any CPU" if intent.cpus is None else f"CPU {','.join(map(str, intent.cpus))}"
    counts = ", ".join(f"{count} {grade}" for grade, count in _counts(found).items() if count)
    what = f"{intent.workload} workload at {intent.scheduling} on {where}"
    out.print(f"{what}: {counts or 'nothing found'}", markup=False)
    for finding in found:
        heading = Text.assemble((finding.grade, _GRADES[finding.grade]), "  ", (finding.id, "bold"))
        lines = [Text(finding.value), Text(f"{finding.why} [{finding.source}]", "dim")]
        lines += [Text.assemble("mend: ", (finding.fix, "green"))] if finding.fix else []
        out.print(Text(), heading, *(Padding(line, (0, 0, 0, 4)) for line in lines), sep="\n")
