"""Values that an option can take: its help lists them, the shell completes them, another one is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from rtmeter.errors import RtmeterError

if TYPE_CHECKING:
    from rtmeter.results.record import CellRecord

Complete = Callable[[str], list[str]]
"""What was typed of a value → the values that begin with it."""


def one_of(field: str, known: Iterable[str]) -> dict[str, Any]:
    """Settings of a typer.Option or Argument that takes one of a fixed set.

    Another value is an RtmeterError that names the option and lists the choices.
    """
    choices = tuple(known)

    def parse(text: str) -> str:
        if text not in choices:
            remedy = f"choose {' or '.join(choices)}"
            raise RtmeterError("is no choice", field=field, value=text, remedy=remedy)
        return text

    return {"parser": parse, "metavar": "|".join(choices), "autocompletion": completing(choices)}


def completing(known: Iterable[str] | Callable[[], Iterable[str]]) -> Complete:
    """Completes by these values; a function is asked for them only then."""

    def complete(incomplete: str) -> list[str]:
        found = known() if callable(known) else known
        return [value for value in found if value.startswith(incomplete)]

    return complete


def completing_list(known: Iterable[str] | Callable[[], Iterable[str]]) -> Complete:
    """Completes the last of several values with commas between them."""
    complete = completing(known)

    def complete_last(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{value}" for value in complete(last)]

    return complete_last


def completing_of_cells(
    param: str, words_of: Callable[[Sequence[CellRecord]], Iterable[str]]
) -> Callable[[typer.Context, str], list[str]]:
    """Completes by the words of the cells at the path that was typed as ``param``, the first argument; by
    nothing, where these cannot be read."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from pathlib import Path

        from rtmeter.results.cells import each_cell

        typed = Path(next(iter(ctx.args), ctx.params[param]))  # click stops at an option without its value
        try:
            records = [cell.record for cell in each_cell(typed)]
        except RtmeterError:
            return []
        return completing(dict.fromkeys(words_of(records)))(incomplete)

    return complete


def probes_here() -> list[str]:
    """The adapters that are here."""
    from rtmeter.measure.probe.probes import find_probes

    return list(find_probes())


def known_adapters() -> list[str]:
    """Those, and all that rtmeter has."""
    from rtmeter.measure.probe.known_adapters import KNOWN_ADAPTERS

    return list(dict.fromkeys([*probes_here(), *KNOWN_ADAPTERS]))


def adapters() -> list[str]:
    """The adapters that are here, and cyclictest where that is."""
    import shutil

    from rtmeter.measure.cyclictest_tool import CYCLICTEST

    return [*probes_here(), *([CYCLICTEST] if shutil.which(CYCLICTEST) else [])]


def campaign_files(incomplete: str) -> list[str]:
    """YAML files and folders that begin so; at first also those of ``campaigns/``."""
    from pathlib import Path

    folder, _, start = incomplete.rpartition("/")
    above = f"{folder}/" if folder or incomplete.startswith("/") else ""
    found = []
    for path in sorted(Path(above or ".").glob("*")):
        if path.name.startswith(start) and not (path.name.startswith(".") and not start):
            if path.is_dir():
                found.append(f"{above}{path.name}/")
            elif path.suffix in (".yaml", ".yml"):
                found.append(above + path.name)
    return found + ([] if incomplete else sorted(map(str, Path("campaigns").glob("*.yaml"))))
