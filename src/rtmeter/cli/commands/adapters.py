"""rtmeter adapters: what can be measured here, and what the others need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.choices import completing, known_adapters

EXAMPLE = "rtmeter adapters rcl"
DETAILS = (
    "Probes are looked for in RTMETER_PROBE_PATH, the installed package, this checkout's builds, colcon "
    "workspaces (AMENT_PREFIX_PATH, CMAKE_PREFIX_PATH) and PATH; the first one of a name wins."
)


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="One adapter (default: all).",
            show_default=False,
            autocompletion=completing(known_adapters),
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="ssh://USER@HOST", help="List what a target can be measured with.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Lists the probes found and the known adapters that are missing."""
    from rtmeter.cli.output import print_json
    from rtmeter.errors import RtmeterError
    from rtmeter.measure.probe import probes
    from rtmeter.measure.probe.known_adapters import KNOWN_ADAPTERS

    if on is not None:
        from rtmeter.conditions.target import parse_on
        from rtmeter.measure.probe.places import adapters_there

        url, names = parse_on(on), list(probes.find_probes())
        _check_known(name, names)
        on_target = adapters_there(url, names if name is None else [name])
        print_json({"on": on, "adapters": on_target}) if as_json else _show_there(on_target)
        return exit_codes.PASS if any("error" not in entry for entry in on_target) else exit_codes.ERROR
    found: list[dict[str, Any]] = []
    there = probes.find_probes()
    _check_known(name, [*there, *KNOWN_ADAPTERS])
    for one, path in there.items():
        if name not in (None, one):
            continue
        entry: dict[str, Any] = {"name": one, "path": str(path)}
        try:
            found.append(entry | probes.describe(one, path).facts)
        except RtmeterError as error:
            found.append(entry | {"error": error.to_json()})
    missing = [
        {"name": one, "middleware": known.middleware, "remedy": probes.remedy_for(one)}
        for one, known in KNOWN_ADAPTERS.items()
        if one not in there and name in (None, one)
    ]
    if as_json:
        print_json({"adapters": found, "missing": missing})
    else:
        _show(found, missing)
        if not there:
            print("no probe was found: build rtmeter with `make`, or set RTMETER_PROBE_PATH")
    return exit_codes.ERROR if any("error" in entry for entry in found) else exit_codes.PASS


def _check_known(name: str | None, known: Sequence[str]) -> None:
    from rtmeter.errors import RtmeterError, did_you_mean

    if name is not None and name not in known:
        remedy = did_you_mean(name, known) or f"name one of {', '.join(sorted(set(known)))}"
        raise RtmeterError("is no adapter", field="adapter", value=name, remedy=remedy)


def _show_there(found: list[dict[str, Any]]) -> None:
    """Each adapter of this machine, and why it is not to be had there, if so."""
    from rich import box
    from rich.table import Table

    from rtmeter.cli.columns import print_table
    from rtmeter.cli.output import console
    from rtmeter.values import visible

    table = Table("adapter", "there", box=box.SIMPLE_HEAD, pad_edge=False)
    for entry in found:
        error = entry.get("error")
        words = f"{error['message']}; {error['remedy']}" if error else "can be measured"
        table.add_row(entry["name"], visible(words))
    print_table(console(), table)


def _show(found: list[dict[str, Any]], missing: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from rtmeter.cli.columns import print_table
    from rtmeter.cli.output import console
    from rtmeter.values import visible

    out = console()
    table = Table("adapter", "middleware", "version", "measures", box=box.SIMPLE_HEAD, pad_edge=False)
    for entry in found:
        if "error" in entry:
            broken = Text("broken", style="red")
            table.add_row(visible(entry["name"]), broken, "", visible(entry["error"]["message"]))
        else:
            measures = ", ".join(entry.get("measures", ()))
            about = (entry.get(key, "") for key in ("name", "middleware", "middleware_version"))
            table.add_row(*map(visible, (*about, measures)))
    if found:
        print_table(out, table)
    for entry in found:
        drives, options = entry.get("drives", {}), entry.get("option", {})
        words = [f"--drive {'|'.join(names)} ({measurement})" for measurement, names in drives.items()]
        words += [f"--receive {'|'.join(names)} ({of})" for of, names in entry.get("receives", {}).items()]
        if places := entry.get("second_topic"):
            words.append(f"--second-topic {'|'.join(places)} (roundtrip)")
        for what in entry.get("beside", ()):
            name, _, needs = what.partition(" ")
            words.append(f"--{name.replace('_', '-')} (roundtrip{', with ' + needs if needs else ''})")
        if wire := entry.get("wire"):
            words.append(f"--server-adapter NAME, one that speaks {wire}, too")
        words += [f"--option {key}={meaning}" for key, meaning in options.items()]
        if words:
            out.print(f"{entry['name']}:", *(f"  {visible(line)}" for line in words), sep="\n", markup=False)
    lacking = Table("not here", "middleware", "to have it", box=box.SIMPLE_HEAD, pad_edge=False)
    for entry in missing:
        lacking.add_row(entry["name"], entry["middleware"], entry["remedy"])
    if missing:
        print_table(out, lacking)
