"""rtmeter plan --find-max: the largest rate, payload or number that passes, measured for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rtmeter.campaign.ranges import COUNTED, SEARCHED, ends, in_words, named
from rtmeter.cli import exit_codes
from rtmeter.cli.alone import WaitOption, alone
from rtmeter.cli.cell_options import as_flag, collect, optional_measurement, with_cell_options
from rtmeter.cli.choices import one_of
from rtmeter.errors import RtmeterError
from rtmeter.model import Cell

if TYPE_CHECKING:
    from rtmeter.campaign.search import Search
    from rtmeter.cli.progress import ProgressEvent, Show
    from rtmeter.measure.largest import SearchAsked
    from rtmeter.results.record import CellRecord

OPTION = "--find-max"

EXAMPLE = "rtmeter plan --find-max rate --adapter posix --deadline 2ms --miss-ratio 1e-3 --rate 10..10kHz"
DETAILS = (
    "This measures, where `plan` without --find-max only reckons: the largest value first, then by "
    "bisection, each with as many releases, in --repeat runs, as it takes to pass; a value that is left "
    "undecided gets more runs, up to --most-repeats. Each run is a cell, stored under OUT; --resume measures "
    "only what is not there yet. What passes is taken to pass at every smaller value. The options of "
    "`rtmeter measure` hold for every cell. Exit codes: 0 found, 1 error, 2 not even the smallest passes, 3 "
    "inconclusive."
)


@optional_measurement("roundtrip")
@with_cell_options
def command(
    *,
    find_max: Annotated[
        str, typer.Option(OPTION, help="What is searched for.", **one_of(OPTION, tuple(SEARCHED)))
    ],
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="10..10kHz",
            help=f"Where to search, or the rate of all cells (default {SEARCHED['rate']}; --payload, "
            f"--subscribers, --publishers, --background-nodes alike: {', '.join([*SEARCHED.values()][1:])}).",
            show_default=False,
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(metavar="5%", help="Near enough (default: to the Hz, to the byte).", show_default=False),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Runs of each value.")] = 3,
    most_repeats: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Runs of a value that is undecided, at most (default: 10, or --repeat).",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the last such search.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the results.")] = Path("results"),
    wait: Annotated[bool, WaitOption] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    **given: Any,
) -> int:
    """Measures what the search asks for; prints a line for each value, and the answer."""
    from rtmeter.cli.find_max_tables import find_max_json, show_largest
    from rtmeter.cli.interrupt import stopping
    from rtmeter.cli.output import print_json
    from rtmeter.cli.progress import showing
    from rtmeter.cli.requirement_options import share
    from rtmeter.measure import largest
    from rtmeter.measure.cell import source_of

    options, text = _options(find_max, rate, given)
    low, high = ends(find_max, text)
    near = 0.0 if within is None else share("--within", within)
    most = max(repeat, 10) if most_repeats is None else most_repeats
    if most < repeat:
        message, remedy = f"is less than --repeat {repeat}", "give it more, or --repeat less"
        raise RtmeterError(message, field="--most-repeats", value=most, remedy=remedy)
    asked = largest.SearchAsked(find_max, low, high, options, repeat, most, near)
    try:
        cells = [asked.cells(value, 1)[0] for value in (low, high)]
        for cell in cells if find_max in COUNTED else cells[:1]:  # one further decides for all
            source_of(cell).check()
    except RtmeterError as error:
        raise as_flag(error, text if find_max == "rate" else rate) from None
    with ExitStack() as stack:
        stack.enter_context(alone(cells, wait=wait))
        folder = largest.begun(asked, out, resume=resume)
        stop, show = stack.enter_context(stopping(cells)), stack.enter_context(showing())
        _announce(asked)
        found = largest.find(asked, folder, stop, lambda at, now: _Watching(asked, at, now, show))
    if as_json:
        print_json(find_max_json(asked, found))
    else:
        show_largest(asked, found)
    codes = {"pass": exit_codes.PASS, "fail": exit_codes.FAIL, "inconclusive": exit_codes.INCONCLUSIVE}
    return codes.get(found.outcome, exit_codes.ERROR)


def _options(find_max: str, rate: str | None, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The options that all cells share, and the range that is searched. Raises RtmeterError."""
    from rtmeter.campaign.file import resolve_script
    from rtmeter.cli.sweeps import at_rate

    options = resolve_script(collect(given), Path.cwd())
    if find_max != "rate":
        options = at_rate(options, rate)
        return options, options.pop(find_max, SEARCHED[find_max])
    if "period" in options:
        remedy = "leave it out, and give --rate to say where to search"
        raise RtmeterError("is what is searched", field="--period", value=options["period"], remedy=remedy)
    return options, rate or SEARCHED["rate"]


def _announce(asked: SearchAsked) -> None:
    """What will be measured at most, before it is."""
    from rtmeter.campaign.search import Search
    from rtmeter.statistics.words import about

    search = Search(asked.low, asked.high, asked.within)
    paths = search.left() + ([search.slowest()] if asked.what == "rate" else [])
    takes = max(sum(_takes_ns(asked, value) for value in path) for path in paths)
    words = " to ".join(in_words(asked.what, end) for end in (asked.low, asked.high))
    releases = (
        f"{asked.planned(asked.high).releases:,} releases in {asked.repeat} run{'s' * (asked.repeat > 1)}"
    )
    said = f"{asked.name}: the largest {named(asked.what)} from {words}: "
    said += f"at most {max(map(len, paths))} values, each "
    said += f"{releases}: {about(takes)} of releases at most if none needs more"
    print(f"rtmeter: {said}", file=sys.stderr)


def _takes_ns(asked: SearchAsked, value: int) -> int:
    return sum(cell.planned_ns for cell in asked.cells(value, asked.repeat))


class _Watching:
    """Tells of each run its value, and how many values there are still to try at most."""

    def __init__(self, asked: SearchAsked, search: Search, cells: Sequence[Cell], show: Show) -> None:
        left, run = max(map(len, search.left())), cells[0].axes.get("repeat", 1)
        value = in_words(asked.what, int(cells[0].axes[asked.what]))
        self._name = f"{asked.what} {value}, run {run}"
        self._left, self._show = f"{left} value{'s' * (left != 1)} to try at most", show

    def watch(self, _index: int, _cell: Cell) -> Callable[[ProgressEvent], None]:
        """The run starts."""
        from rtmeter.cli.progress import share_done, words_of

        self._show(f"{self._name}: starts, {self._left}", 0.0, "start")

        def on_event(event: ProgressEvent) -> None:
            self._show(f"{self._name}: {words_of(event)}, {self._left}", share_done(event), "during")

        return on_event

    def ended(self, _index: int, record: CellRecord) -> None:
        """The run is stored."""
        verdict = record.verdict
        said = f"{verdict.missed} of {verdict.n:,} missed" if verdict else record.status
        if record.error:
            said = f"{record.status}: {record.error.as_error}"
        self._show(f"{self._name}: {said}", 1.0, "end")

    def kept(self, _index: int) -> None:
        """The run was there already."""
        self._show(f"{self._name}: done before", 1.0, "end")
