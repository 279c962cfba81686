"""What all plots share, in Vega-Lite: the frame, the look, the deadline, what pointing at them shows.

A specification's ``datasets`` hold columns (lists by name), which the page turns into rows. Colours are
CSS custom properties of the page, so that themes and print need no redrawing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmeter.results import words

Spec = dict[str, Any]
Dataset = dict[str, list[Any]]

INK, RULE = "var(--ink)", "var(--rule)"

VIEW_COLOURS = {"per_release": "var(--per-release)", "as_served": "var(--as-served)"}

LINE_COLOURS = tuple(f"var(--line-{number})" for number in range(1, 9))
"""Of variants in one plot: Okabe and Ito's first (jfly.uni-koeln.de), and others that colour-blind readers
tell apart from them."""

DASHES: tuple[list[int], ...] = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [4, 2], [1, 3], [12, 3, 2, 3])
"""Of the same variants, for print."""

_LOGARITHMIC_FROM = 30

CONFIG: Spec = {
    "background": "transparent",
    "font": "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": INK,
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titlePadding": 8,
        "gridColor": RULE,
        "domainColor": "var(--muted)",
        "tickColor": "var(--muted)",
        "labelOverlap": "greedy",
        "labelSeparation": 8,
    },
    "legend": {
        "labelColor": INK,
        "labelFontSize": 12,
        "title": None,
        "orient": "top",
        "offset": 4,
        "columnPadding": 24,
    }
    | {"symbolOpacity": 1, "symbolStrokeWidth": 3, "symbolSize": 300, "labelLimit": 400},
    "text": {"fontSize": 11, "fill": INK},
    "mark": {"aria": False},
}


def frame(datasets: Mapping[str, Dataset], height: int, layers: Iterable[Spec]) -> Spec:
    """A plot as wide as its place on the page; layers without data of their own show the first dataset."""
    return {
        "datasets": dict(datasets),
        "data": {"name": next(iter(datasets))},
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "layer": list(layers),
        "config": CONFIG,
    }


def once(mark: Spec, **encoding: Spec) -> Spec:
    """A mark drawn once, whatever the data."""
    return {"data": {"values": [{}]}, "mark": mark, "encoding": encoding}


def corner(text: str, *, right: bool, line: int = 0, colour: str = INK) -> Spec:
    """A line of text in an upper corner of the plot."""
    mark = {
        "type": "text",
        "text": text,
        "align": "right" if right else "left",
        "baseline": "top",
        "fill": colour,
    }
    return once(mark, x={"value": "width" if right else 4}, y={"value": 3 + 15 * line})


def deadline(axis: str, deadline_ns: int | None, at: float | None) -> Iterator[Spec]:
    """The deadline across an axis; ``at``: where, as a share of the axis; told in words if None."""
    if deadline_ns is None:
        return
    text, colour = f"deadline {words.round_us(deadline_ns)} us", "var(--deadline)"
    if at is None:
        yield corner(f"{text}: beyond this scale", right=True, colour=colour)
        return
    where = {"datum": deadline_ns / 1000}
    rule = {"type": "rule", "color": colour, "strokeDash": [6, 4], "strokeWidth": 1.5, "clip": True}
    label = {"type": "text", "text": text, "align": "right", "fill": colour, "clip": True}
    yield once(rule, **{axis: where})
    if axis == "y":
        yield once(label | {"baseline": "bottom", "dy": -3}, y=where, x={"value": "width"})
    else:
        beside = {"align": "left", "dx": 5} if at < 0.4 else {"dx": -5}
        yield once(label | {"baseline": "top"} | beside, x=where, y={"value": 3})


def latency_axis(field: str, least_us: float) -> Spec:
    """An axis of latencies, without its scale."""
    title = "us, negative is early" if least_us < 0 else "us"
    return {"field": field, "type": "quantitative", "title": title}


def zero(least_us: float) -> Iterator[Spec]:
    """Where early ends and late begins, if there are early ones."""
    if least_us < 0:
        yield once({"type": "rule", "color": INK, "strokeWidth": 1}, x={"datum": 0})


def hover(mark: Spec, encoding: Spec, shown: Iterable[tuple[str, str]]) -> Spec:
    """Invisible marks that say, when pointed at, what is there: (field, title) of each line."""
    tooltip = [{"field": field, "title": title} for field, title in shown]
    return {
        "name": "hover",
        "mark": mark | {"opacity": 0, "tooltip": True},
        "encoding": encoding | {"tooltip": tooltip},
    }


def quoted(text: str) -> str:
    """A text as an expression of Vega."""
    return json.dumps(text, ensure_ascii=False)


def us(ns: npt.ArrayLike, absent: npt.ArrayLike = False) -> list[float | None]:
    """Microseconds to the nanosecond, None where absent."""
    values = np.asarray(ns)
    there = ~np.broadcast_to(np.asarray(absent), values.shape)
    return [round(float(v) / 1000, 3) if t else None for v, t in zip(values, there, strict=True)]


def log_ticks(least: float, greatest: float, factors: tuple[int, ...] = (1,)) -> list[float]:
    """The powers of ten, times each factor, within a range."""
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(greatest)) + 1)
    ticks = (float(f"{factor}e{decade}") for decade in decades for factor in factors)
    return [tick for tick in ticks if least <= tick <= greatest]


def power_of_ten_labels(ticks: list[float]) -> str:
    """A Vega expression that labels such ticks 1, 10⁻¹, 10⁻², …"""
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    exponents = (round(math.log10(tick)) for tick in ticks)
    labels = {str(i): f"10{str(i).translate(raised)}" if i else "1" for i in exponents}
    return f"({json.dumps(labels, ensure_ascii=False)})[round(log(datum.value) / LN10)]"


def latency_scale(least_us: float, greatest_us: float, typical_us: float) -> Spec:
    """Scale and axis of microseconds: logarithmic where a few values would flatten all the others."""
    scale: Spec = {"type": "linear", "domain": [least_us, greatest_us], "nice": False}
    if least_us <= 0 or greatest_us < _LOGARITHMIC_FROM * typical_us:
        return {"scale": scale}
    few = greatest_us < 1000 * least_us
    ticks = log_ticks(least_us, greatest_us, (1, 2, 5) if few else (1,))
    return {"scale": scale | {"type": "log"}, "axis": {"values": ticks, "format": ",~r"}}


def share_of_axis(scale: Spec, value: float) -> float:
    """Where a value is on an axis: 0 at its begin, 1 at its end."""
    least, greatest = scale["domain"]
    if scale["type"] == "log":
        least, greatest, value = math.log(least), math.log(greatest), math.log(value)
    return float((value - least) / (greatest - least))
