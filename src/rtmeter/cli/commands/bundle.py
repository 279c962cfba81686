"""rtmeter bundle: the probes for a target, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.choices import one_of
from rtmeter.measure.probe.bundle import MACHINES, Arch, make_bundle

EXAMPLE = "rtmeter bundle --arch armhf -o rtmeter-armhf.tar.gz"
DETAILS = (
    "Takes every probe for that architecture that is found here, `make cross`' builds too, and says which "
    "adapters these are and what each needs there. Unpacked, its folder is named in RTMETER_PROBE_PATH here, "
    "or put into the PATH of the target (docs/targets.md)."
)


def command(
    arch: Annotated[
        Arch,
        typer.Option(help="Of the target.", show_default=False, **one_of("--arch", MACHINES)),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The tar.gz.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Writes the bundle, and says what is in it."""
    from rtmeter.cli.output import print_json

    entries = make_bundle(arch, out)
    if as_json:
        print_json({"file": str(out), "arch": arch, "adapters": entries})
    else:
        _show(out, entries)
    return exit_codes.PASS


def _show(out: Path, entries: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.table import Table

    from rtmeter.cli.output import console

    table = Table("adapter", "KiB", "libc", "needs besides", box=box.SIMPLE_HEAD, pad_edge=False)
    table.columns[1].justify = "right"
    for entry in entries:
        libc = f"glibc {entry['glibc']} or newer" if entry["glibc"] else entry["loader"] or "none"
        needs = ", ".join(entry["needs"]) or "nothing"
        table.add_row(entry["name"], f"{entry['bytes'] / 1024:,.0f}", libc, needs)
    console().print(table)
    print(f"{out}: {len(entries)} adapter{'' if len(entries) == 1 else 's'}")
