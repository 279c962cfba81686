"""Latency and misses against a factor, and the first of its values that fails; ns in, us shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtmeter.plots import grammar
from rtmeter.plots.grammar import LINE_COLOURS, Dataset, Spec
from rtmeter.results import words


@dataclass(frozen=True, slots=True)
class Point:
    """At one value of a factor, also in words: quantiles (by name, ns; None: lost or not known), the
    deadline, the share that missed (None: nothing was judged), the share allowed, and whether it fails, or
    could not be measured. Points come in the order in which the factor asks for more."""

    at: float | str
    name: str
    quantiles_ns: Mapping[str, float | None]
    deadline_ns: int | None
    missed: float | None
    allowed: float | None
    fails: bool


def quantiles(points: Sequence[Point], factor: str, height: int) -> Spec:
    """Quantiles against a factor: on a logarithmic axis where it is a number, else side by side."""
    names = list(points[0].quantiles_ns)
    rows = [(point, name) for name in names for point in points if point.quantiles_ns[name] is not None]
    columns: Dataset = {
        "at": [point.at for point, _ in rows],
        "us": [(point.quantiles_ns[name] or 0) / 1e3 for point, name in rows],
        "line": [name for _, name in rows],
    }
    x = _axis(points, factor)
    y = grammar.latency_axis("us", min(columns["us"], default=0))
    known = {point.deadline_ns for point in points if point.deadline_ns is not None}
    deadline_ns = known.pop() if len(known) == 1 else None
    greatest = max([*columns["us"], 1e-3])
    in_sight = deadline_ns is not None and deadline_ns / 1e3 <= 3 * greatest
    reach = max([greatest, *(ns / 1e3 for ns in known), (deadline_ns or 0) / 1e3 if in_sight else 0])
    least = min([*columns["us"], *(ns / 1e3 for ns in known)], default=0)
    y |= grammar.latency_scale(0.8 * least, 1.4 * reach, columns["us"][0] if rows else 1)
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


def misses(points: Sequence[Point], factor: str, height: int) -> Spec:
    """The share that missed against the factor, and the share that is allowed."""
    judged = [point for point in points if point.missed is not None]
    columns: Dataset = {
        "at": [point.at for point in judged],
        "missed": [point.missed for point in judged],
        "name": [point.name for point in judged],
    }
    x = _axis(points, factor)
    allowed = {point.allowed for point in judged if point.allowed is not None}
    seen = [share for share in (*columns["missed"], *allowed) if share]
    y: Spec = {"field": "missed", "type": "quantitative", "title": "share missed"}
    least, most = min(seen, default=1e-3), max(seen, default=1e-3)
    ticks = [0.0, *grammar.log_ticks(least / 10, most * 10)]
    y["scale"] = {"type": "symlog", "constant": least / 2, "domain": [0, 1.3 * most]}
    percent = least >= 1e-3
    y["axis"] = {"values": ticks, "format": ".1~p" if percent else "~g"}
    both = {"x": x, "y": y}
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 1.6, "color": LINE_COLOURS[0]}, "encoding": both},
        {"mark": {"type": "point", "filled": True, "size": 45, "color": LINE_COLOURS[0]}, "encoding": both},
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
        layers += [grammar.once(rule, y=where), grammar.once(label, y=where, x={"value": "width"})]
    shown = [("name", factor), ("missed", "share missed")]
    hover = grammar.hover({"type": "point", "filled": True, "size": 200}, both, shown)
    return grammar.frame({"misses": columns}, height, [*layers, *_first_that_fails(points, x), hover])


def _axis(points: Sequence[Point], factor: str) -> Spec:
    values = [point.at for point in points]
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
