"""rtmeter plot: one plot of measured cells as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.choices import one_of
from rtmeter.plots.plots import KINDS

if TYPE_CHECKING:
    from rtmeter.judge.compared import Compared
    from rtmeter.plots.grammar import Spec
    from rtmeter.plots.plots import PlotOptions
    from rtmeter.results.overview import CellEntry
    from rtmeter.results.record import CellRecord

EXAMPLE = "rtmeter plot results/before results/after --kind histogram -o overlaid.svg"
DETAILS = (
    "CELLs are cells or folders of cells. Kinds: time, maxima, histogram, ccdf, triptych, against (a "
    "factor), shift (of two), waterfall (a floor and what lies on it, in this order), return-level. "
    "docs/plots.md shows each and says how to read it. The ending of FILE decides the format: .png, .svg "
    "or .pdf."
)

_COMPARING = ("shift", "waterfall")

_ONLY = {
    "quantity": ("time", "maxima", "histogram", "ccdf"),
    "by": ("time", "histogram", "ccdf", "against"),
    "over": ("against",),
    "zoom": ("time", "triptych"),
    "interval": ("maxima",),
    "at": ("waterfall",),
}
"""Options and the kinds for which they mean something."""


def command(
    kind: Annotated[
        str, typer.Option(help="Which plot.", show_default=False, **one_of("--kind", [*KINDS, *_COMPARING]))
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.", show_default=False)],
    cells: Annotated[
        list[Path] | None,
        typer.Argument(metavar="CELL...", help="What is plotted (default: results).", show_default=False),
    ] = None,
    quantity: Annotated[
        str | None,
        typer.Option(metavar="Q", help="Which quantity (default: the judged one).", show_default=False),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS[,AXIS]",
            help="A panel for each value: columns, or rows and columns.",
            show_default=False,
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            metavar="FACTOR", help="payload, period, rate, load or another axis.", show_default=False
        ),
    ] = None,
    zoom: Annotated[
        str | None,
        typer.Option(
            metavar="12s..14s", help="Show this part; the whole as a picture in it.", show_default=False
        ),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="5min",
            help="Length of an interval (default: 5min, shorter of a short run).",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="p99", help="Which quantile (default: p99).", show_default=False)
    ] = None,
    width: Annotated[int, typer.Option(min=200, max=4000, help="Width of a row of panels, pixels.")] = 900,
    height: Annotated[int, typer.Option(min=100, max=4000, help="Height of a panel, pixels.")] = 320,
) -> int:
    """Draws the picture and prints where it is."""
    from rtmeter.plots.picture import check_format, write_picture
    from rtmeter.plots.plots import PlotOptions, draw

    cells = cells or [Path("results")]
    given = {"quantity": quantity, "by": by, "over": over, "zoom": zoom, "interval": interval, "at": at}
    _check_meant(kind, given)
    check_format(out)
    asked = PlotOptions(quantity, _factors(by), over, _span(zoom), _duration(interval), width, height)
    if kind == "shift":
        spec = _shift(cells, asked)
    elif kind == "waterfall":
        spec = _waterfall(cells, at or "p99", asked)
    else:
        spec = draw(kind, [cell for path in cells for cell in _found(path)], asked)
    write_picture(spec, out)
    print(out)
    return exit_codes.PASS


def _check_meant(kind: str, given: dict[str, str | None]) -> None:
    from rtmeter.errors import RtmeterError

    for name, text in given.items():
        if text is not None and kind not in _ONLY[name]:
            raise RtmeterError(
                f"means nothing for {kind}",
                field=f"--{name}",
                value=text,
                remedy=f"it is for {' and '.join(_ONLY[name])}",
            )


def _factors(by: str | None) -> tuple[str, ...]:
    from rtmeter.errors import RtmeterError

    factors = tuple(part.strip() for part in by.split(",")) if by is not None else ()
    if len(factors) > 2 or not all(factors):
        raise RtmeterError(
            "is not one factor or two", field="--by", value=by, remedy="write e.g. load,kernel"
        )
    return factors


def _span(zoom: str | None) -> tuple[float, float] | None:
    from rtmeter.errors import RtmeterError

    if zoom is None:
        return None
    first, dots, last = zoom.partition("..")
    try:
        ends = _seconds(first) if first.strip() else 0.0, _seconds(last)
    except ValueError:
        ends = (0.0, 0.0)
    if not dots or ends[1] <= ends[0]:
        raise RtmeterError("is no span", field="--zoom", value=zoom, remedy="write e.g. 12s..14s")
    return ends


def _seconds(text: str) -> float:
    from rtmeter.values import parse_duration_ns

    return parse_duration_ns(text.strip()) / 1e9


def _duration(text: str | None) -> int | None:
    from rtmeter.errors import RtmeterError
    from rtmeter.values import parse_positive_ns

    try:
        return None if text is None else parse_positive_ns(text)
    except ValueError as error:
        message, remedy = error.args
        raise RtmeterError(message, field="--interval", value=text, remedy=remedy) from None


def _found(path: Path) -> list[CellEntry]:
    from rtmeter.results.overview import cell_entries, refuse

    found = cell_entries(path)
    refuse([cell.damage for cell in found if cell.damage])
    return found


def _compared(a: Path, b: Path, *, added: bool = False) -> Compared:
    """Two cells, or the repeats of both, compared; ``added``: what B adds to A."""
    from rtmeter.cli.reading_progress import reading
    from rtmeter.errors import RtmeterError
    from rtmeter.judge.compared import ComparisonOptions, compare_cells
    from rtmeter.judge.pairs import pair_up
    from rtmeter.results.cells import by_name, find_cells

    pairings, _, _ = pair_up(*(by_name(find_cells(path)) for path in (a, b)))
    if len(pairings) != 1:
        message = f"and {b} make {len(pairings)} pairs of cells, and one is drawn"
        raise RtmeterError(
            message, field="cell", value=str(a), remedy="name two cells, or the repeats of two"
        )
    with reading() as read:
        found = compare_cells(pairings[0], ComparisonOptions(added=added), read)
    if found.found is None:
        raise RtmeterError(f"cannot be compared: {found.refusal}", field="cell", value=pairings[0].name)
    return found


def _shift(cells: Sequence[Path], asked: PlotOptions) -> Spec:
    from rtmeter.errors import RtmeterError
    from rtmeter.plots.chart_compare import shifts
    from rtmeter.plots.heading import notes
    from rtmeter.plots.picture import grid

    if len(cells) != 2:
        remedy = "name A and B: cells, or the repeats of each"
        value = " ".join(map(str, cells))
        raise RtmeterError("a shift is between two", field="cell", value=value, remedy=remedy)
    one = _compared(*cells)
    assert one.found is not None
    title = f"Shift of {_quantity(one)}: B = {cells[1].name} less A = {cells[0].name}"
    about = [f"{100 * one.found.confidence:g} % confidence for all intervals together", *_doubts(one)]
    panel = shifts([shift for shift in one.found.shifts if one.allows(shift.quantity)], asked.height)
    return grid([[("", panel)]], title, [*about, *notes(_files(cells))], asked.width)


def _waterfall(cells: Sequence[Path], at: str, asked: PlotOptions) -> Spec:
    from rtmeter.errors import RtmeterError
    from rtmeter.plots.chart_compare import WaterfallLayer, waterfall
    from rtmeter.plots.heading import notes
    from rtmeter.plots.picture import grid

    if len(cells) < 2:
        remedy = "name the floor, then what lies on it, layer by layer"
        raise RtmeterError("a waterfall has two layers at least", remedy=remedy)
    layers: list[WaterfallLayer] = []
    found = [_compared(cells[place], cells[place + 1], added=True) for place in range(len(cells) - 1)]
    for place, one in enumerate(found):
        assert one.found is not None
        shift = next((shift for shift in one.found.shifts if shift.quantity == at), None)
        if shift is None:
            known = " or ".join(s.quantity for s in one.found.shifts if s.quantity != "miss_ratio")
            raise RtmeterError("is not compared", field="--at", value=at, remedy=f"choose {known}")
        if not (math.isfinite(shift.a) and math.isfinite(shift.b)):
            message = f"is not known of {cells[place].name} or {cells[place + 1].name}"
            raise RtmeterError(message, field="--at", value=at, remedy="choose another one, or other cells")
        if not one.allows(at):
            message = f"is the maximum of a run of {one.shortest:,} releases"
            raise RtmeterError(
                message, field="--at", value=at, remedy="choose a lower one, or measure longer"
            )
        if not layers:
            layers.append(WaterfallLayer(cells[0].name, shift.a, shift.a))
        ends = shift.lower, shift.upper
        layers.append(
            WaterfallLayer(
                cells[place + 1].name, layers[-1].total_ns + shift.difference, shift.difference, ends
            )
        )
    title = f"{at} of {_quantity(found[0])}, layer by layer"
    doubts = dict.fromkeys(doubt for one in found for doubt in _doubts(one))
    return grid(
        [[("", waterfall(layers, asked.height))]], title, [*doubts, *notes(_files(cells))], asked.width
    )


def _quantity(one: Compared) -> str:
    from rtmeter.results import words

    meta = one.pairing.pairs[0][0].record.meta
    return f"{words.judged(meta)}, per release"


def _doubts(one: Compared) -> list[str]:
    return list(dict.fromkeys(doubt.message for doubt in one.doubts if doubt.type in _NOTED))


_NOTED = {"one_run_each", "not_interleaved", "few_pairs"}


def _files(cells: Sequence[Path]) -> list[CellRecord]:
    from rtmeter.results.cells import find_cells

    return [cell.record for path in cells for cell in find_cells(path)]
