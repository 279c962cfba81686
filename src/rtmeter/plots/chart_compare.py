"""Cells beside each other: shifts of quantiles, layers; ns in, us shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rtmeter.plots import grammar
from rtmeter.plots.grammar import INK, LINE_COLOURS, Dataset, Spec
from rtmeter.results import words
from rtmeter.statistics.compare import Shift

_SAYS = {
    "better": ("earlier", "var(--pass)"),
    "worse": ("later", "var(--fail)"),
    "no difference": ("no halving, no doubling", "var(--muted)"),
    "not told": ("not told", "var(--skipped)"),
    "not enough data": ("too short a run", LINE_COLOURS[0]),
}

_SYMLOG_FROM = 30
"""Where the largest shift is so many times the smallest, both are seen on a logarithmic axis only."""


@dataclass(frozen=True, slots=True)
class WaterfallLayer:
    """A layer of a waterfall: its name, the quantile with it, and what it adds to the one before, with the
    ends of that one's interval (the first layer has none: it is the floor)."""

    name: str
    total_ns: float
    added_ns: float
    ends_ns: tuple[float, float] | None = None


def shifts(found: Sequence[Shift], height: int) -> Spec:
    """How far B's quantiles lie above A's, with intervals that hold together; none that is lost on a side."""
    times = [one for one in found if one.quantity != "miss_ratio"]
    known = [one for one in times if math.isfinite(one.a) and math.isfinite(one.b)]
    columns: Dataset = {
        "quantile": [one.quantity for one in known],
        "shift": [one.difference / 1e3 for one in known],
        "low": [_end(one.lower) for one in known],
        "high": [_end(one.upper) for one in known],
        "a": [one.a / 1e3 for one in known],
        "b": [one.b / 1e3 for one in known],
        "says": [_SAYS[one.outcome][0] for one in known],
        "text": [_signed(one.difference) for one in known],
    }
    x: Spec = {"field": "quantile", "type": "ordinal", "sort": None, "title": "Quantile"}
    x |= {"axis": {"labelAngle": 0, "grid": False}}
    y: Spec = {"field": "shift", "type": "quantitative", "title": "B less A, us; above 0: B is later"}
    sizes = [abs(value) for name in ("shift", "low", "high") for value in columns[name] if value]
    if sizes and max(sizes) > _SYMLOG_FROM * min(sizes):
        constant = max(min(sizes), 0.1)
        low, high = (
            end(value for name in ("shift", "low", "high") for value in columns[name] if value)
            for end in (min, max)
        )
        # Room for what is drawn at its ends, and for 0, wherever all of it lies.
        domain = [min(2.0 * low, -constant), max(2.0 * high, constant)]
        y["scale"] = {"type": "symlog", "constant": constant, "domain": domain, "nice": False}
        labels = [one for one in _decades(constant, max(sizes)) if domain[0] <= one <= domain[1]]
        y["axis"] = {"values": labels, "format": ",~r"}
    seen = [_SAYS[name] for name in _SAYS if _SAYS[name][0] in columns["says"]]
    colour: Spec = {"field": "says", "type": "nominal"}
    colour["scale"] = {"domain": [name for name, _ in seen], "range": [shade for _, shade in seen]}
    colour["legend"] = {"symbolSize": 70}
    ends = {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": colour}
    shown = [("quantile", "quantile"), ("a", "A, us"), ("b", "B, us"), ("shift", "B less A, us")]
    shown += [("low", "from, us"), ("high", "to, us"), ("says", "says")]
    known_ends = {"transform": [{"filter": "datum.low != null && datum.high != null"}]}
    point = {"type": "point", "filled": True, "size": 70, "opacity": 1}
    tick = {"type": "tick", "orient": "horizontal", "size": 12, "thickness": 2}
    return grammar.frame(
        {"shifts": columns},
        height,
        [
            grammar.once({"type": "rule", "color": INK}, y={"datum": 0}),
            known_ends | {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": ends},
            *(
                known_ends | {"mark": tick, "encoding": {"x": x, "y": y | {"field": end}, "color": colour}}
                for end in ("low", "high")
            ),
            {"mark": point, "encoding": {"x": x, "y": y, "color": colour}},
            {
                "mark": {"type": "text", "align": "left", "baseline": "bottom", "dx": 12, "dy": -3},
                "encoding": {"x": x, "y": y, "text": {"field": "text"}},
            },
            grammar.hover({"type": "point", "filled": True, "size": 300}, {"x": x, "y": y}, shown),
        ],
    )


def _decades(least: float, most: float) -> list[float]:
    """What an axis that is bent around 0 has labels at: 0, and powers of ten on both sides."""
    powers = [10.0**e for e in range(math.ceil(math.log10(least)), math.ceil(math.log10(most)) + 1)]
    return [*(-power for power in reversed(powers)), 0.0, *powers]


def _signed(ns: float) -> str:
    """A shift in us, its sign before it; of none 0."""
    return f"+{words.us(ns)}" if ns > 0 else words.us(ns) if ns < 0 else "0"


def _end(ns: float) -> float | None:
    return ns / 1e3 if math.isfinite(ns) else None


def waterfall(layers: Sequence[WaterfallLayer], height: int) -> Spec:
    """A floor and what each layer adds to it, each beginning where the one before ended. Below zero goes as
    much of an interval as lies above it; where it ends, its text says."""
    begins = [0.0, *(layer.total_ns - layer.added_ns for layer in layers[1:])]
    columns: Dataset = {
        "layer": [layer.name for layer in layers],
        "begin": [begin / 1e3 for begin in begins],
        "end": [layer.total_ns / 1e3 for layer in layers],
        "text": [_added(layer) for layer in layers],
        "kind": ["floor", *("adds" if layer.added_ns >= 0 else "saves" for layer in layers[1:])],
        "low": [None if one.ends_ns is None else _end(_from(one, one.ends_ns[0])) for one in layers],
        "high": [None if one.ends_ns is None else _end(_from(one, one.ends_ns[1])) for one in layers],
    }
    x: Spec = {"field": "layer", "type": "ordinal", "sort": None, "title": None}
    x |= {"axis": {"labelAngle": 0, "grid": False, "labelLimit": 160}, "scale": {"paddingInner": 0.25}}
    y: Spec = {"field": "begin", "type": "quantitative", "title": "us"}
    colour: Spec = {"field": "kind", "type": "nominal"}
    shades = {"floor": "var(--muted)", "adds": LINE_COLOURS[0], "saves": LINE_COLOURS[2]}
    shades = {kind: shade for kind, shade in shades.items() if kind in columns["kind"]}
    colour["scale"] = {"domain": list(shades), "range": list(shades.values())}
    bar = {"x": x, "y": y, "y2": {"field": "end"}, "color": colour}
    high = [value for name in ("begin", "end", "high") for value in columns[name] if value is not None]
    low = [value for name in ("begin", "end", "low") for value in columns[name] if value is not None]
    y["scale"] = {"domain": [min(0, max(min(low), -max(high))), 1.15 * max(high)]}
    top = {"x": x, "y": y | {"field": "top"}, "text": {"field": "text"}}
    ends = {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}}
    above = [{"calculate": "max(datum.begin, datum.end, datum.high)", "as": "top"}]
    return grammar.frame(
        {"layers": columns},
        height,
        [
            {"mark": {"type": "bar"}, "encoding": bar},
            {
                "transform": [{"filter": "datum.low != null && datum.high != null"}],
                "mark": {"type": "rule", "color": INK, "strokeWidth": 1.5, "clip": True},
                "encoding": ends,
            },
            {"transform": above, "mark": {"type": "text", "dy": -8, "align": "center"}, "encoding": top},
        ],
    )


def _from(layer: WaterfallLayer, end_ns: float) -> float:
    """Where an end of the interval of what a layer adds lies on the axis."""
    return layer.total_ns - layer.added_ns + end_ns


def _added(layer: WaterfallLayer) -> str:
    if layer.ends_ns is None:
        return f"{words.us(layer.total_ns)} us"
    sign = "+" if layer.added_ns >= 0 else ""
    if not all(math.isfinite(end) for end in layer.ends_ns):
        return f"{sign}{words.us(layer.added_ns)} us (too short a run for its interval)"
    low, high = (words.us(end) for end in layer.ends_ns)
    return f"{sign}{words.us(layer.added_ns)} us [{low}, {high}]"
