"""Plots of cells as pictures, kind by kind (docs/plots.md says how to read each)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from rtmeter.errors import RtmeterError
from rtmeter.judge.entries import by_condition
from rtmeter.plots import against, chart_distribution, chart_levels, chart_time, factors
from rtmeter.plots.grammar import LINE_COLOURS, Spec
from rtmeter.plots.heading import heading, notes
from rtmeter.plots.loaded import Loaded, in_intervals, in_order, line, load, titled, told_apart
from rtmeter.plots.picture import grid, panel_width
from rtmeter.plots.subject import Distributions, Extent
from rtmeter.results import store, words
from rtmeter.results.data import counted_of
from rtmeter.results.overview import CellEntry
from rtmeter.results.record import CellRecord
from rtmeter.statistics.bins import grid_over
from rtmeter.statistics.judged import judged_run
from rtmeter.statistics.levels import levels
from rtmeter.statistics.views import LATER

KINDS = {
    "time": "latency over time, a panel a cell",
    "maxima": "the maximum of each interval",
    "histogram": "how often each latency was seen; several cells overlaid",
    "ccdf": "which share was that late or later; several cells overlaid",
    "triptych": "cycle delay, request and respond (of replies: response and both legs), a row a cell",
    "against": "quantiles and misses against a factor of the cells, and where it breaks",
    "return-level": "which level is passed once in which time",
}

_TRIPTYCHS = {
    "cycle": ("cycle_delay", "request", "respond"),
    "roundtrip": ("response", "ping", "pong"),
    "request": ("response", "request", "respond"),
}

_POINTS_A_DECADE = 60

_REPEATS_TOGETHER = "all releases of the repeats of a cell together"

_STEPS = 240


@dataclass(frozen=True, slots=True)
class PlotOptions:
    """How a plot is wanted: of which quantity (None: the judged one), in a panel for each value of up to two
    factors, over which factor, of which seconds, in intervals how long, how large a panel row is."""

    quantity: str | None = None
    by: tuple[str, ...] = ()
    over: str | None = None
    zoom_s: tuple[float, float] | None = None
    interval_ns: int | None = None
    width: int = 900
    height: int = 320


def draw(kind: str, cells: Sequence[CellEntry], asked: PlotOptions) -> Spec:
    """The picture of at least one cell. Raises RtmeterError if they have nothing such to show."""
    for cell in cells:
        failed = kind == "against" and cell.state == "failed"  # there it breaks
        if cell.record is None or (cell.record.summary is None and not failed):
            raise RtmeterError(
                cell.problem or "nothing was measured",
                field="cell",
                value=str(cell.folder),
                remedy="name cells that were measured",
            )
    return _DRAWN[kind](cells, asked)


def _files(cells: Sequence[CellEntry]) -> list[CellRecord]:
    return [cell.record for cell in cells if cell.record is not None]


def _time(cells: Sequence[CellEntry], asked: PlotOptions) -> Spec:
    layout = factors.laid_out(_files(cells), asked.by)
    if asked.by:
        _one_each(layout)
    pixels = panel_width(asked.width, max(len(row) for row in layout))
    loaded = [load(cell, asked.quantity, asked.zoom_s, pixels, binned=False) for cell in cells]
    if not asked.by:
        layout = [[(name, [place])] for place, name in enumerate(told_apart(_names(cells), loaded))]
    extent = Extent.of([in_order(one)[0] for one in loaded])
    panels = [
        [(title, _over_time(loaded[places[0]], asked, extent, len(row))) for title, places in row]
        for row in layout
    ]
    return grid(panels, heading(_files(cells), titled(loaded)), notes(_files(cells)), asked.width)


def _names(cells: Sequence[CellEntry]) -> list[str]:
    folders = [cell.folder for cell in cells]
    return factors.labels(_files(cells), (), folders) if len(cells) > 1 else [""]


def _one_each(layout: list[list[tuple[str, list[int]]]]) -> None:
    crowded = next((title for row in layout for title, places in row if len(places) > 1), None)
    if crowded is not None:
        remedy = "name the factor in which they differ too, or fewer cells"
        raise RtmeterError("leaves several cells in one panel", field="--by", value=crowded, remedy=remedy)


def _over_time(one: Loaded, asked: PlotOptions, extent: Extent, across: int) -> Spec:
    """One of so many panels of a row; if it shows a part of the run, with the whole as a picture in it."""
    subject, time = in_order(one)
    if one.whole is None or one.whole_time is None:
        return chart_time.over_time(subject, time, asked.height, extent)
    size = panel_width(asked.width, across), asked.height
    return chart_time.with_picture(subject, time, one.whole, one.whole_time, size, extent)


def _triptych(cells: Sequence[CellEntry], asked: PlotOptions) -> Spec:
    files = _files(cells)
    kinds = {record.measurement for record in files}
    if len(kinds) > 1 or not kinds & _TRIPTYCHS.keys():
        raise RtmeterError(
            "has no triptych",
            field="measurement",
            value=" and ".join(sorted(kinds)),
            remedy=f"name cells of {' or '.join(_TRIPTYCHS)}",
        )
    names = _TRIPTYCHS[kinds.pop()]
    pixels = panel_width(asked.width, len(names))
    loaded = [[load(cell, name, asked.zoom_s, pixels, binned=False) for name in names] for cell in cells]
    extent = Extent.of([in_order(one)[0] for row in loaded for one in row])
    rows = [
        [
            (
                ", ".join(part for part in (label, one.quantity) if part),
                _over_time(one, asked, extent, len(row)),
            )
            for one in row
        ]
        for label, row in zip(_names(cells), loaded, strict=True)
    ]
    return grid(rows, words.measurement(files[0].meta).capitalize(), notes(files), asked.width)


def _maxima(cells: Sequence[CellEntry], asked: PlotOptions) -> Spec:
    loaded = [load(cell, asked.quantity, binned=False) for cell in cells]
    found = [in_intervals(one, asked.interval_ns) for one in loaded]
    lengths = {chart_time.interval_words(time) for _, time in found}
    title = f"{heading(_files(cells), titled(loaded))}, maxima of {' or '.join(sorted(lengths))}"
    extent = Extent.of([subject for subject, _ in found])
    panels = [
        [(name, chart_time.maxima(subject, time, asked.height, extent))]
        for name, (subject, time) in zip(told_apart(_names(cells), loaded), found, strict=True)
    ]
    return grid(panels, title, notes(_files(cells)), asked.width)


Chart = Callable[[Distributions, int], Spec]


def _histogram(cells: Sequence[CellEntry], asked: PlotOptions) -> Spec:
    return _distributions(cells, asked, chart_distribution.histogram)


def _ccdf(cells: Sequence[CellEntry], asked: PlotOptions) -> Spec:
    def chart(found: Distributions, height: int) -> Spec:
        return chart_distribution.complementary_cdf(found, height, _POINTS_A_DECADE)

    return _distributions(cells, asked, chart)


def _distributions(cells: Sequence[CellEntry], asked: PlotOptions, chart: Chart) -> Spec:
    """Panels of overlaid conditions that share their axes; of one alone its repeats."""
    conditions = by_condition(cells) if "repeat" not in asked.by else list(cells)
    conditions = conditions if len(conditions) > 1 else list(cells)
    runs = [condition.repeats or (condition,) for condition in conditions]
    found = iter(_on_one_grid([load(cell, asked.quantity) for repeats in runs for cell in repeats]))
    loaded = [list(islice(found, len(repeats))) for repeats in runs]
    files = _files(conditions)
    layout = factors.laid_out(files, asked.by)
    panels = []
    for row in layout:
        for _, places in row:
            if len(places) > len(LINE_COLOURS):
                remedy = f"at most {len(LINE_COLOURS)} are told apart in one: spread them with --by"
                raise RtmeterError(f"{len(places)} are too many in one panel", remedy=remedy)
        panels.append(
            [
                (title, chart(_together(loaded, files, places, asked.by), asked.height))
                for title, places in row
            ]
        )
    several = [_REPEATS_TOGETHER] if any(len(repeats) > 1 for repeats in runs) else []
    title = heading(files, titled([runs[0] for runs in loaded]))
    return grid(panels, title, [*several, *notes(files)], asked.width)


def _on_one_grid(loaded: list[Loaded]) -> list[Loaded]:
    """The same, their steps counted on a grid that all share."""
    grids = [one.subject.series.grid for one in loaded]
    if len(set(grids)) == 1:
        return loaded
    first = min(grid.first_ns for grid in grids)
    last = max(grid.first_ns + grid.width_ns * grid.size - 1 for grid in grids)
    return [one.on(grid_over(first, last, _STEPS)) for one in loaded]


def _together(
    loaded: Sequence[Sequence[Loaded]], files: Sequence[CellRecord], places: list[int], by: tuple[str, ...]
) -> Distributions:
    """Of the conditions at those places, of each of which the runs were ``loaded``."""
    deadlines = {loaded[place][0].subject.deadline_ns for place in places}
    deadline_ns = deadlines.pop() if len(deadlines) == 1 else None
    others = [line(loaded[place], "", "") for place in range(len(loaded)) if place not in places]
    if len(places) == 1 and len(loaded[places[0]]) == 1:
        return replace(loaded[places[0]][0].subject.distributions, beside=tuple(others))
    folders = [loaded[place][0].cell.folder for place in places]
    names = factors.labels([files[place] for place in places], by, folders)
    names = told_apart(names, [loaded[place][0] for place in places])
    lines = [
        line(loaded[place], name, colour)
        for place, name, colour in zip(places, names, LINE_COLOURS, strict=False)
    ]
    return Distributions(tuple(lines), loaded[0][0].subject.series.grid, deadline_ns, tuple(others))


def _against(cells: Sequence[CellEntry], asked: PlotOptions) -> Spec:
    return against.panels(cells, asked.over, asked.by, asked.height, asked.width)


def _return_level(cells: Sequence[CellEntry], asked: PlotOptions) -> Spec:
    panels, refused = [], []
    for name, cell in zip(_names(cells), cells, strict=True):
        record = store.read_cell(cell.folder)
        if counted_of(cell.folder, record) is not None:
            message = "has no single samples: nothing is known of the order of releases"
            raise RtmeterError(message, field="cell", value=str(cell.folder), remedy="name a measured cell")
        run = judged_run(record.meta, store.chunks(cell.folder))
        if not len(run.values):
            message, remedy = "measured nothing", "name cells that were measured"
            raise RtmeterError(message, field="cell", value=str(cell.folder), remedy=remedy)
        assert cell.record is not None
        deadline_ns = cell.record.deadline_ns
        confidence = cell.record.requirement.confidence if cell.record.requirement else 0.95
        evidence = run.examine(deadline_ns or LATER - 1)
        found = levels(run.values, run.period_ns, evidence, confidence)
        if not len(found.peaks_ns):
            message = "has no tail apart from the other releases: all are alike or lost, or too few"
            raise RtmeterError(message, field="cell", value=str(cell.folder), remedy="measure longer")
        panels.append([(name, chart_levels.return_levels(found, deadline_ns, asked.height))])
        refused += [f"{cell.id}: no level may be stated: {finding.message}" for finding in found.refusals]
    files = _files(cells)
    judged = " and ".join(dict.fromkeys(words.judged(file.meta) for file in files))
    title = heading(files, f"return levels of {judged}, per release")
    return grid(panels, title, [*refused, *notes(files)], asked.width)


_DRAWN: dict[str, Callable[[Sequence[CellEntry], PlotOptions], Spec]] = {
    "time": _time,
    "maxima": _maxima,
    "histogram": _histogram,
    "ccdf": _ccdf,
    "triptych": _triptych,
    "against": _against,
    "return-level": _return_level,
}
