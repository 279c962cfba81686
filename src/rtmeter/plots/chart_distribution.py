"""How often each latency was seen, and which share was that late; nanoseconds in, microseconds shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rtmeter.plots import grammar
from rtmeter.plots.data import PlottedView
from rtmeter.plots.grammar import Dataset, Spec, us
from rtmeter.plots.subject import Distributions, Line, maximum
from rtmeter.results import words
from rtmeter.statistics.bounds import miss_ratio_bounds
from rtmeter.statistics.drift import Bools
from rtmeter.statistics.quantities import Floats, Ints

_EMPTY_BIN = 0.7
"""Where the logarithmic axis of counts begins, so that a single count still shows."""

_NO_SHARE = 1e-12
"""Where the complementary CDF ends beyond the largest value: below every axis."""

BAND = 0.95
"""Confidence of the band around a complementary CDF, at each point by itself."""


def histogram(found: Distributions, height: int) -> Spec:
    """How often each latency was seen: steps, counts on a logarithmic axis; early ones are negative."""
    grid = found.grid
    keys = [f"line{place}" for place in range(len(found.lines))]
    counts = np.array([line.view.steps[1:-1] for line in found.lines])
    changes = np.flatnonzero(np.r_[True, (np.diff(counts, axis=1) != 0).any(axis=0)])
    edges = us(grid.first_ns + grid.width_ns * np.r_[0, changes, grid.size])
    columns: Dataset = {"x": edges, "end": [*edges[1:], edges[-1]]}
    columns |= {key: [0, *row[changes].tolist(), 0] for key, row in zip(keys, counts, strict=True)}

    first, last = grid.first_ns / 1e3, (grid.first_ns + grid.width_ns * grid.size) / 1e3
    deadline_us = (found.deadline_ns or 0) / 1e3
    if all(line.view.n == line.view.lost for line in found.sharing):  # no bin has a value
        last = max(last, found.reach_us, 1.5 * deadline_us)
    near = first <= deadline_us <= first + 1.5 * (last - first)
    right = max(last, 1.02 * deadline_us) if near else last
    x = grammar.latency_axis("x", first)
    if _of_one_cell(found.lines):
        x |= {"title": f"{x['title']}{_in_the_label(found.lines[0].view)}"}
    x |= {"scale": {"type": "linear", "domain": [first, right], "nice": False}}
    most = 2 * max(1, *(int(line.view.steps[1:-1].max()) for line in found.sharing))
    y: Spec = {"type": "quantitative", "title": "Releases"}
    y |= {"axis": {"values": grammar.log_ticks(1, most), "format": "~s"}}
    y |= {"scale": {"type": "log", "domain": [_EMPTY_BIN, most], "nice": False}}
    layers: list[Spec] = []
    for key, line in zip(keys, found.lines, strict=True):
        height_of_bin = {"calculate": f"max(datum.{key}, {_EMPTY_BIN})", "as": "drawn"}
        drawn = {"transform": [height_of_bin, _named(line)]}
        encoding = {"x": x, "y": y | {"field": "drawn"}, "color": _colour(found.lines)}
        area = {"type": "area", "interpolate": "step-after", "opacity": 0.18}
        stroke = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.3}
        if not layers and _of_one_cell(found.lines):
            layers.append(drawn | {"mark": area, "encoding": encoding | {"y2": {"datum": _EMPTY_BIN}}})
        layers.append(drawn | {"mark": stroke, "encoding": encoding | _dashes(found.lines)})
    each = f"in each {words.round_us(grid.width_ns)} us"
    shown = [("x", "from, us"), ("end", "to, us")]
    shown += [(key, f"{line.label}, {each}") for key, line in zip(keys, found.lines, strict=True)]
    at = grammar.share_of_axis(x["scale"], deadline_us) if near else None
    return grammar.frame(
        {"bins": columns},
        height,
        [
            *layers,
            *grammar.zero(first),
            *grammar.deadline("x", found.deadline_ns, at),
            *_not_in_bins(found),
            grammar.hover({"type": "rect"}, {"x": x, "x2": {"field": "end"}}, shown),
        ],
    )


def _in_the_label(view: PlottedView) -> str:
    """Least, mean and greatest value, as the axis tells them."""
    if view.least_ns is None:
        return ""
    mean = "" if view.mean_ns is None else f" · avg {words.us(view.mean_ns)}"
    return f" · min {words.us(view.least_ns)}{mean} · max {maximum(view).removesuffix(' us')}"


def _not_in_bins(found: Distributions) -> Iterator[Spec]:
    """What the lines have beside the bins: values out of range, and lost releases."""
    texts = [*_misses_in_time(found)]
    yield from _in_the_corner(texts, found)
    place = len(texts) + (found.deadline_ns is not None)
    for line, whose in _by_name(found):
        view = line.view
        below, above = int(view.steps[0]), int(view.steps[-1])
        if above:
            far = f", up to {words.us(int(view.largest_ns[0]))} us" if view.largest_known else ""
            text = f"{whose}{above:,} beyond{far} →"
            yield grammar.corner(text, right=True, line=place)
            place += 1
        if view.lost:
            yield grammar.corner(f"{whose}{view.lost:,} lost →", right=True, line=place)
            place += 1
        if below:
            yield grammar.corner(f"← {whose}{below:,} below", right=False)


def _by_name(found: Distributions) -> list[tuple[Line, str]]:
    """The lines that a corner tells of, each with its name where there are several; of one cell the first."""
    alone = _of_one_cell(found.lines)
    return [(line, "" if alone else f"{line.label}: ") for line in found.lines[: 1 if alone else None]]


def _misses_in_time(found: Distributions) -> Iterator[str]:
    """What does not lie beyond the deadline and is a miss."""
    for line, whose in _by_name(found):
        if line.skipped_in_time:
            yield f"{whose}{line.skipped_in_time:,} skipped within the deadline: misses, too"


def _in_the_corner(texts: Sequence[str], found: Distributions) -> Iterator[Spec]:
    """Lines of text below that of the deadline."""
    for place, text in enumerate(texts, found.deadline_ns is not None):
        yield grammar.corner(text, right=True, line=place)


def complementary_cdf(found: Distributions, height: int, points_a_decade: int) -> Spec:
    """Which share of the releases was that late or later, down to the last one of them; around a line whose
    design effect is known, its confidence band."""
    columns: Dataset = {"x": [], "share": [], "one_in": [], "line": [], "low": [], "high": []}
    right = 1.02 * found.reach_us
    firsts = [line.view.ccdf()[0][:1] / 1e3 for line in found.sharing]
    least = min([right, *np.concatenate(firsts).tolist()])
    if least == right:  # all were lost
        least = 0.0
    rarest = min(1 / line.view.n for line in found.sharing)
    for line in found.lines:
        view = line.view
        x_ns, shares, seen = _thinned(*view.ccdf(), points_a_decade, found.deadline_ns)
        points = list(zip(x_ns / 1e3, shares.tolist(), seen.tolist(), strict=True))
        lost = view.lost / view.n
        points += [(x, 0.0, False) for x, *_ in points[-1:] if not lost] + [(right, lost, lost > 0)]
        if lost == 1:
            points.insert(0, (least, lost, True))
        band = [_band(share, line) for _, share, _ in points]
        columns["x"] += [round(float(x), 3) for x, *_ in points]
        columns["share"] += [_drawable(share) for _, share, _ in points]
        columns["one_in"] += [f"1 in {1 / share:,.4g}" if seen else None for _, share, seen in points]
        columns["line"] += [line.legend] * len(points)
        columns["low"] += [low for low, _ in band]
        columns["high"] += [high for _, high in band]
    x = grammar.latency_axis("x", least) | grammar.latency_scale(least, right, found.typical_us)
    ticks = grammar.log_ticks(rarest / 1.5, 1)
    y: Spec = {"field": "share", "type": "quantitative", "title": "Share that late or later"}
    y |= {"scale": {"type": "log", "domain": [rarest / 1.5, 1], "nice": False}}
    y |= {"axis": {"values": ticks, "labelExpr": grammar.power_of_ten_labels(ticks)}}
    deadline_us = found.deadline_us
    at = None if deadline_us is None else grammar.share_of_axis(x["scale"], deadline_us)
    shown = [("x", "at or above, us"), ("share", "share"), ("one_in", "that is"), ("line", "of")]
    colour = _colour(found.lines)
    step = {"interpolate": "step-before", "clip": True}
    banded = {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": colour}
    return grammar.frame(
        {"shares": columns},
        height,
        [
            {
                "transform": [{"filter": "datum.high != null"}],
                "mark": {"type": "area", "opacity": 0.2, **step},
                "encoding": banded,
            },
            {
                "mark": {"type": "line", "strokeWidth": 1.6, **step},
                "encoding": {"x": x, "y": y, "color": colour} | _dashes(found.lines),
            },
            *grammar.zero(least),
            *grammar.deadline("x", found.deadline_ns, at),
            *_in_the_corner([*_misses_in_time(found)], found),
            {"transform": [{"filter": "datum.one_in"}]}
            | grammar.hover({"type": "point", "filled": True, "size": 90}, {"x": x, "y": y}, shown),
        ],
    )


def _band(share: float, line: Line) -> tuple[float | None, float | None]:
    """The interval of a share, as a logarithmic axis can draw it."""
    if line.design_effect is None:
        return None, None
    n = line.view.n
    low, high = miss_ratio_bounds(share * n, n, 1 - (1 - BAND) / 2, line.design_effect)
    return _drawable(low), _drawable(high)


def _drawable(share: float) -> float:
    return max(float(f"{share:.5g}"), _NO_SHARE)


def _thinned(
    x_ns: Ints, share: Floats, points_a_decade: int, deadline_ns: int | None
) -> tuple[Ints, Floats, Bools]:
    """Of the points that many to a decade of the share, the first of each, the last of all and those on both
    sides of the deadline; and which are such points. Others stand where points were left out, with the
    greatest share of these: steps that go back from each point are nowhere below what they leave out."""
    kept = np.ones(len(share), dtype=bool)
    kept[1:-1] = np.diff(np.floor(points_a_decade * np.log10(share)))[:-1] != 0
    if deadline_ns is not None:
        beyond = int(np.searchsorted(x_ns, deadline_ns, side="right"))
        kept[max(0, beyond - 1) : beyond + 1] = True
    places = np.flatnonzero(kept)
    after = 1 + np.flatnonzero(np.diff(places) > 1)
    x = np.insert(x_ns[places], after, x_ns[places[after]])
    shares = np.insert(share[places], after, share[places[after - 1] + 1])
    return x, shares, np.insert(np.ones(len(places), dtype=bool), after, False)


def _of_one_cell(lines: tuple[Line, ...]) -> bool:
    return {line.label for line in lines} <= set(words.VIEWS.values())


def _named(line: Line) -> Spec:
    return {"calculate": grammar.quoted(line.legend), "as": "line"}


def _scale(lines: tuple[Line, ...], values: list[object]) -> Spec:
    found: Spec = {"field": "line", "type": "nominal"}
    found["scale"] = {"domain": [line.legend for line in lines], "range": values}
    alone = len(lines) == 1 and _of_one_cell(lines)
    return found | {"legend": None if alone else {"symbolType": "stroke"}}


def _colour(lines: tuple[Line, ...]) -> Spec:
    """The colour of each line, with a legend if there are several, or one with a name of its own."""
    return _scale(lines, [line.colour for line in lines])


def _dashes(lines: tuple[Line, ...]) -> Spec:
    """Lines told apart without colour, too."""
    return {"strokeDash": _scale(lines, [*grammar.DASHES[: len(lines)]])}
