"""Latency and misses against a factor, and the first of its values that fails; ns in, us shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtmeter.plots import grammar
from rtmeter.plots.grammar import LINE_COLOURS, Dataset, Spec
from rtmeter.results import words


@dataclass(frozen=True, slots=True)
class Point:
    """At one value of a factor, also in words: quantiles (by name, ns; None: lost or not known), the
    deadline, the least and the most share that may have missed (None: nothing was judged), the share
    allowed, and whether it fails, or could not be measured. Points come in the order in which the factor
    asks for more."""

    at: float | str
    name: str
    quantiles_ns: Mapping[str, float | None]
    deadline_ns: int | None
    missed: tuple[float, float] | None
    allowed: float | None
    fails: bool


Panels = Sequence[Sequence[Point]]

_LINED_UP = {"minExtent": 56}
"""Room for labels and title of a y axis, pixels: panels above each other begin at the same place."""

_LABEL = 16
"""What a label of a y axis takes, with room above and below, pixels."""

_NEAR = 3
"""A deadline up to so many times the largest latency is drawn, one further is told."""


def quantiles(points: Sequence[Point], factor: str, height: int, panels: Panels) -> Spec:
    """Quantiles against a factor: on a logarithmic axis where it is a number, else side by side. ``panels``:
    the points of each that shares its axes, its own among them."""
    names = list(points[0].quantiles_ns)
    rows = [(point, name) for name in names for point in points if point.quantiles_ns[name] is not None]
    columns: Dataset = {
        "at": [point.at for point, _ in rows],
        "us": [(point.quantiles_ns[name] or 0) / 1e3 for point, name in rows],
        "line": [name for _, name in rows],
    }
    x = _axis(panels, factor)
    y = _latencies(panels)
    known = {point.deadline_ns for point in points if point.deadline_ns is not None}
    deadline_ns = known.pop() if len(known) == 1 else None
    in_sight = (deadline_ns or 0) / 1e3 <= y["scale"]["domain"][1]
    colour: Spec = {"field": "line", "type": "nominal"}
    colour["scale"] = {"domain": names, "range": [*LINE_COLOURS[: len(names)]]}
    colour["legend"] = {"symbolType": "stroke", "direction": "horizontal", "columns": len(names)}
    dash = colour | {"scale": {"domain": names, "range": [*grammar.DASHES[: len(names)]]}}
    both = {"x": x, "y": y, "color": colour}
    shown = [("line", "quantile"), ("at", factor), ("us", "us")]
    datasets: dict[str, Dataset] = {"points": columns}
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 1.6}, "encoding": both | {"strokeDash": dash}},
        {"mark": {"type": "point", "filled": True, "size": 45, "opacity": 1}, "encoding": both},
        *grammar.deadline("y", deadline_ns, 0 if in_sight else None),
    ]
    if known:  # a deadline each: periods, say
        datasets["deadlines"] = {
            "at": [point.at for point in points if point.deadline_ns is not None],
            "us": [point.deadline_ns / 1e3 for point in points if point.deadline_ns is not None],
        }
        line = {"type": "line", "color": "var(--deadline)", "strokeDash": [6, 4], "strokeWidth": 1.5}
        layers.append({"data": {"name": "deadlines"}, "mark": line, "encoding": {"x": x, "y": y}})
    absent = {name: sum(point.quantiles_ns[name] is None for point in points) for name in names}
    if said := ", ".join(f"{name} at {count:,}" for name, count in absent.items() if count):
        layers.append(grammar.corner(f"lost or not known: {said} of {len(points):,}", right=True))
    hover = grammar.hover({"type": "point", "filled": True, "size": 200}, {"x": x, "y": y}, shown)
    return grammar.frame(datasets, height, [*layers, *_first_that_fails(points, x, named=True), hover])


def _latencies(panels: Panels) -> Spec:
    """The axis of latencies that panels share: with the deadlines that lie near enough, or are a line."""
    every = [point for points in panels for point in points]
    seen = [ns / 1e3 for point in every for ns in point.quantiles_ns.values() if ns is not None]
    greatest = max([*seen, 1e-3])
    deadlines = [{point.deadline_ns / 1e3 for point in points if point.deadline_ns} for points in panels]
    shown = [us for of_one in deadlines for us in of_one if len(of_one) > 1 or us <= _NEAR * greatest]
    least, reach = min([*seen, *shown], default=0), max([greatest, *shown])
    y = grammar.latency_axis("us", min(seen, default=0))
    y |= grammar.latency_scale(0.8 * least, 1.4 * reach, min(map(_typical_us, every)))
    return y | {"axis": _LINED_UP | y.get("axis", {})}


def _typical_us(point: Point) -> float:
    """Its least quantile that is known."""
    return next((ns / 1e3 for ns in point.quantiles_ns.values() if ns is not None), math.inf)


def misses(points: Sequence[Point], factor: str, height: int, panels: Panels) -> Spec:
    """The share that missed against the factor, and the share that is allowed; ``panels`` as above. Where no
    single values are known, a rule from the least that may have missed to the most, through which the line
    goes."""
    judged = [(point, *point.missed) for point in points if point.missed is not None]
    columns: Dataset = {
        "at": [point.at for point, _, _ in judged],
        "missed": [most for _, _, most in judged],
        "least": [least for _, least, _ in judged],
        "share": [words.between(least, most) for _, least, most in judged],
        "name": [point.name for point, _, _ in judged],
    }
    x = _axis(panels, factor)
    allowed = {point.allowed for point, _, _ in judged if point.allowed is not None}
    every = [point for one in panels for point in one]
    seen = [share for point in every for share in (*(point.missed or ()), point.allowed) if share]
    y: Spec = {"field": "missed", "type": "quantitative", "title": "share missed"}
    least, most = min(seen, default=1e-3), 1.3 * max(seen, default=1e-3)
    y["scale"] = {"type": "symlog", "constant": least / 2, "domain": [0, most]}
    percent = least >= 1e-3
    ticks = _with_room(grammar.log_ticks(least / 10, most), least / 2, most, height)
    # as many ticks as there are values: of more than fit by its own measure Vega leaves out every second one
    y["axis"] = _LINED_UP | {"values": ticks, "tickCount": len(ticks), "labelOverlap": False}
    y["axis"] |= {"format": ".1~p" if percent else "~g"}
    both = {"x": x, "y": y}
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 1.6, "color": LINE_COLOURS[0]}, "encoding": both},
        {"mark": {"type": "point", "filled": True, "size": 45, "color": LINE_COLOURS[0]}, "encoding": both},
    ]
    if untold := sum(least < most for _, least, most in judged):
        apart: Spec = {"transform": [{"filter": "datum.least < datum.missed"}]}
        rule = {"type": "rule", "color": LINE_COLOURS[0], "strokeWidth": 1.6}
        tick = {"type": "tick", "orient": "horizontal", "color": LINE_COLOURS[0], "size": 12, "opacity": 1}
        layers += [
            apart | {"mark": rule, "encoding": both | {"y2": {"field": "least"}}},
            apart | {"mark": tick, "encoding": {"x": x, "y": y | {"field": "least"}}},
            grammar.corner(
                f"known only between bounds: at {untold:,} of {len(judged):,}", right=False, line=1
            ),
        ]
    if len(allowed) == 1:
        where, colour = {"datum": next(iter(allowed))}, "var(--deadline)"
        rule = {"type": "rule", "color": colour, "strokeDash": [6, 4], "strokeWidth": 1.5}
        text = f"allowed {(words.share if percent else words.ratio)(where['datum'])}"
        label = {
            "type": "text",
            "text": text,
            "align": "right",
            "fill": colour,
            "baseline": "bottom",
            "dy": -3,
        }
        halo = label | {"stroke": "var(--card)", "strokeWidth": 4}  # the line of shares may pass there
        layers.append(grammar.once(rule, y=where))
        layers += [grammar.once(text, y=where, x={"value": "width"}) for text in (halo, label)]
    shown = [("name", factor), ("share", "share missed")]
    hover = grammar.hover({"type": "point", "filled": True, "size": 200}, both, shown)
    return grammar.frame({"misses": columns}, height, [*layers, *_first_that_fails(points, x), hover])


def _with_room(ticks: Sequence[float], constant: float, most: float, height: int) -> list[float]:
    """0, and those of the ticks of such an axis (symlog) whose labels have room above the one before."""
    found, last = [0.0], 0.0
    for tick in ticks:
        at = height * math.log1p(tick / constant) / math.log1p(most / constant)
        if at - last >= _LABEL:
            found.append(tick)
            last = at
    return found


def _axis(panels: Panels, factor: str) -> Spec:
    values = list(dict.fromkeys(point.at for points in panels for point in points))
    if not all(isinstance(value, float) and value > 0 for value in values):
        order: Spec = {"type": "ordinal", "sort": values, "axis": {"labelAngle": 0}}
        return {"field": "at", "title": factor} | order | {"scale": {"type": "point", "domain": values}}
    scale = {"type": "log", "nice": False, "domain": [min(values), max(values)]}
    axis = {"values": sorted(values), "format": ",~r"}
    return {"field": "at", "title": factor, "type": "quantitative", "axis": axis, "scale": scale}


def _first_that_fails(points: Sequence[Point], x: Spec, *, named: bool = False) -> list[Spec]:
    """A rule at the first point that fails, in words if ``told``."""
    first = next((point for point in points if point.fails), None)
    if first is None:
        return []
    where: Spec = {"datum": first.at, "type": x["type"]}
    rule = grammar.once({"type": "rule", "color": "var(--fail)", "strokeWidth": 2, "opacity": 0.6}, x=where)
    text = f"first that fails: {first.name}"
    return [rule, grammar.corner(text, right=False, colour="var(--fail)")] if named else [rule]
