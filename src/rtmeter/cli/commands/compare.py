"""rtmeter compare: is B better or worse than A?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtmeter.cli import exit_codes

EXAMPLE = "rtmeter compare results/before results/after --gate 'p99.9<+5%' --junit compare.xml"
DETAILS = (
    "Cells belong together by id, else by the values of their axes; repeats are analysed as pairs. Other "
    "measurements, periods or machines are refused unless --force. Exit codes: 0 improved or no evidence of "
    "a difference, 1 error or refused, 2 worse, 3 not enough data; with gates 0 all pass, 2 one fails, 3 one "
    "is inconclusive."
)

Side = "A cell, its repeats, or a folder of cells."


def command(
    a: Annotated[Path, typer.Argument(metavar="A", help=f"Before: {Side}", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help=f"After: {Side}", show_default=False)],
    gate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'p99.9<+5%'", help="How much larger a quantile or miss_ratio may be.", show_default=False
        ),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(
            metavar="1ms", help="Deadline of the miss ratio (default: the cells').", show_default=False
        ),
    ] = None,
    confidence: Annotated[
        str | None,
        typer.Option(
            metavar="C", help="Confidence of all intervals of all cells (default 95%).", show_default=False
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Compare what is refused.")] = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write JUnit XML too.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Compares the cells of two folders."""
    from rtmeter.api.comparisons import Comparisons, Pairs
    from rtmeter.cli.comparison_tables import code_of, only_words, show
    from rtmeter.cli.junit import write_junit
    from rtmeter.cli.output import print_json
    from rtmeter.cli.reading_progress import reading
    from rtmeter.cli.requirement_options import asked_of
    from rtmeter.results.cells import find_cells

    asked = asked_of(gate or [], deadline, confidence, force)
    pairs = Pairs.of(find_cells(a), find_cells(b), asked, str(b))
    compared, only_a, only_b = [], pairs.only_in_a, pairs.only_in_b
    for one in pairs.compared(reading):
        compared.append(one)
        if not as_json:
            show(one)
    if as_json:
        print_json(Comparisons(compared, only_a, only_b).to_json())
    else:
        print("\n".join(only_words({"A": only_a, "B": only_b})), end="\n" if only_a or only_b else "")
    if junit is not None:
        write_junit(junit, f"{a} against {b}", compared, only_a)
    lacking = [exit_codes.INCONCLUSIVE] if only_a else []
    return exit_codes.worst([*map(code_of, compared), *lacking])
