"""rtmeter compare: is B better or worse than A?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.choices import completing_of_cells

if TYPE_CHECKING:
    from rtmeter.judge.compared import ComparisonOptions
    from rtmeter.results.record import CellRecord

EXAMPLE = "rtmeter compare results/before results/after --gate 'p99.9<+5%' --junit compare.xml"
DETAILS = (
    "Cells belong together by id, else by the values of their axes; repeats are analysed as pairs. Other "
    "measurements, periods or machines are refused unless --force. With --factor the cells of one campaign "
    "are compared, matched over all its other factors. Exit codes: 0 better or no difference, 1 error or "
    "refused, 2 worse, 3 not told (too few repeats to show even a halving) or too short a run; with gates 0 "
    "all pass, 2 one fails, 3 one is inconclusive."
)

Side = "A cell, its repeats, or a folder of cells."


def _factors(records: Sequence[CellRecord]) -> list[str]:
    from rtmeter.judge.layouts import factors_of, varying

    return varying([factors_of(record) for record in records])


def command(
    a: Annotated[Path, typer.Argument(metavar="A", help=f"Before: {Side}")] = Path("results"),
    b: Annotated[
        Path | None,
        typer.Argument(metavar="B", help=f"After: {Side} Not with --factor.", show_default=False),
    ] = None,
    factor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What each level of a factor of A's campaign does: scheduling, load, variant, block.",
            show_default=False,
            autocompletion=completing_of_cells("a", _factors),
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="The factor's level to compare with (default: measured first).",
            show_default=False,
        ),
    ] = None,
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
    from rtmeter.cli.output import heard, print_json
    from rtmeter.cli.reading_progress import reading
    from rtmeter.cli.refusals import refuse
    from rtmeter.cli.requirement_options import asked_of
    from rtmeter.errors import RtmeterError
    from rtmeter.results.cells import find_cells

    asked = asked_of(gate or [], deadline, confidence, force)
    if factor is not None:
        of_two = {"B": b, "--gate": gate or [], "--junit": junit}
        refuse(of_two, "is not for --factor", "leave it out, or --factor, which looks at A alone")
        return _effects_of(a, factor, reference, asked, as_json)
    if reference is not None:
        raise RtmeterError(
            "says nothing without --factor", field="--reference", value=reference, remedy="add --factor"
        )
    if b is None:
        remedy = "name the cells to compare with, or give --factor NAME for the factors of one campaign"
        raise RtmeterError("is missing", field="B", remedy=remedy)
    pairs = Pairs.of(find_cells(a), find_cells(b), asked, str(b))
    compared, only_a, only_b = [], pairs.only_in_a, pairs.only_in_b
    for one in pairs.compared(reading):
        compared.append(one)
        if not as_json:
            with heard():
                show(one)
    with heard():
        if as_json:
            print_json(Comparisons(compared, only_a, only_b).to_json())
        else:
            print("\n".join(only_words({"A": only_a, "B": only_b})), end="\n" if only_a or only_b else "")
    if junit is not None:
        write_junit(junit, f"{a} against {b}", compared, only_a)
    lacking = [exit_codes.INCONCLUSIVE] if only_a else []
    return exit_codes.worst([*map(code_of, compared), *lacking])


def _effects_of(
    path: Path, factor: str, reference: str | None, asked: ComparisonOptions, as_json: bool
) -> int:
    from rtmeter.api.factors import effects_json
    from rtmeter.cli.factor_tables import code_of, show_effects
    from rtmeter.cli.output import print_json
    from rtmeter.cli.reading_progress import reading
    from rtmeter.judge.factors import FactorOptions, factor_effects
    from rtmeter.results.cells import find_cells

    options = FactorOptions(factor, reference, asked.deadline_ns, asked.confidence, asked.force)
    with reading() as read:
        found = factor_effects(find_cells(path), options, read)
    print_json(effects_json(found)) if as_json else show_effects(found)
    return code_of(found)
