"""Latency over time, and its maxima interval by interval; nanoseconds come in, microseconds are shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rtmeter.plots import grammar
from rtmeter.plots.envelope import Envelope
from rtmeter.plots.grammar import INK, RULE, VIEW_COLOURS, Dataset, Spec, us
from rtmeter.plots.subject import Extent, PlottedEvent, Subject, TimeAxis
from rtmeter.results import words
from rtmeter.statistics.quantities import Ints

_ABOVE = 0.08
"""The share of a logarithmic axis that stays free above the greatest value and the deadline's name."""

_FEW = 150
"""So few stretches are shown as points, too."""

_MOST_EVENTS = 40


def over_time(
    subject: Subject,
    time: TimeAxis,
    height: int,
    extent: Extent | None = None,
    *,
    zoomable: bool = False,
    free: float = 0.0,
) -> Spec:
    """Latency over time: a band from the least to the greatest value of each stretch, so that no spike is
    lost; above it, when releases were late, skipped or lost, and what else happened. ``extent``: that of
    the axis, if other plots share it. ``zoomable``: with the parameters ``from``, ``to`` and ``top``, which
    the page sets. ``free``: the share of the axis that stays empty at its upper end."""
    unit, seconds = time.unit
    envelope = subject.series.envelope
    assert envelope is not None
    misses = {"late": envelope.late, "skipped": envelope.skipped, "lost": envelope.lost}
    misses = {name: counts for name, counts in misses.items() if counts.any()}
    stretches = _stretches(envelope, misses, time, seconds)
    gaps = [(first / seconds, last / seconds) for first, last in time.gaps_s]
    extent = extent or Extent.of([subject])
    y = _axis(extent, free)
    least_us, top_us = y["scale"]["domain"]
    x: Spec = {"field": "t", "type": "quantitative", "title": f"Time, {unit}"}
    shown_s = stretches["t"][0], stretches["end"][-1]
    x |= {"scale": {"domain": [*shown_s], "nice": False}}
    if zoomable:
        x["scale"]["domain"] = [{"expr": "from"}, {"expr": "to"}]
        y["scale"]["domain"] = [least_us, {"expr": "top"}]
    until = {"x": x, "x2": {"field": "end"}}
    several = bool((envelope.n > 1).any())
    most, mean = {"x": x, "y": y}, {"x": x, "y": y | {"field": "mean"}}
    colour = VIEW_COLOURS[next(iter(subject.views))]
    shown = [("t", f"from, {unit}"), ("end", f"to, {unit}"), ("k", "first k"), ("n", "values")]
    shown += [(name, f"{name}, us") for name in ("min", "mean", "max")] + [(name, name) for name in misses]
    band = {"type": "area", "color": colour, "opacity": 0.25, "clip": True}
    greatest = {"type": "line", "color": colour, "strokeWidth": 1.2, "clip": True}
    average = {"type": "line", "color": INK, "strokeWidth": 1, "clip": True}
    dot = {"type": "point", "color": colour, "filled": True, "size": 14, "opacity": 1, "clip": True}
    datasets: dict[str, Dataset] = {
        "stretches": stretches,
        "gaps": {"t": [g[0] for g in gaps], "end": [g[1] for g in gaps]},
    }
    spec = grammar.frame(
        datasets,
        height,
        [
            {
                "data": {"name": "gaps"},
                "mark": {"type": "rect", "color": RULE, "clip": True},
                "encoding": until,
            },
            {"mark": band, "encoding": most | {"y2": {"field": "min"}}},
            {"mark": greatest, "encoding": most},
            *([{"mark": average, "encoding": mean}] if several else []),
            {"transform": [{"filter": "datum.dot"}], "mark": dot, "encoding": most},
            *grammar.deadline("y", subject.deadline_ns, None if extent.deadline_us is None else 0),
            *_lanes(x, misses),
            *_events(x, shown_s, time, seconds, len(misses)),
            grammar.hover({"type": "rect", "clip": True}, until, shown),
        ],
    )
    if zoomable:
        values = {"from": shown_s[0], "to": shown_s[1], "top": top_us}
        spec["params"] = [{"name": name, "value": value} for name, value in values.items()]
    return spec


_PICTURE = 0.4
"""The share of the plot's height, and of its width, that the whole run takes as a picture in it."""

_BELOW_PICTURE = 0.05
"""The share of the height that stays free below the picture."""


def with_picture(
    subject: Subject,
    time: TimeAxis,
    whole: Subject,
    whole_time: TimeAxis,
    size: tuple[int, int],
    extent: Extent,
) -> Spec:
    """A part of a run over time, and the whole of it as a picture in the plot, the part marked there; the
    axis leaves room, so that the picture hides nothing. ``size``: width and height in pixels."""
    width, height = size
    spec = over_time(subject, time, height, extent, free=_PICTURE + _BELOW_PICTURE)
    assert whole.series.envelope is not None
    envelope = whole.series.envelope.coarser(int(_PICTURE * width))
    begins_s = whole_time.begins_s[np.searchsorted(whole_time.first_k, envelope.first_k)]
    whole_time = replace(whole_time, first_k=envelope.first_k, begins_s=begins_s)
    _, seconds = time.unit
    picture = _stretches(envelope, {}, whole_time, seconds)
    spec["datasets"]["picture"] = picture
    inner = Extent.of([whole])
    left = (1 - _PICTURE) * width
    x: Spec = {"field": "t", "type": "quantitative", "axis": None}
    x["scale"] = {"domain": [picture["t"][0], picture["end"][-1]], "range": [left + 4, width - 4]}
    y: Spec = _axis(inner) | {"axis": None}
    y["scale"] = y["scale"] | {"range": [_PICTURE * height, 6]}
    frame = {"type": "rect", "fill": "var(--card)", "stroke": "var(--muted)", "strokeWidth": 0.8}
    frame |= {"x": left, "x2": width, "y": 0, "y2": _PICTURE * height + 6}
    part = {"type": "rect", "color": "var(--skipped)", "opacity": 0.35}
    first, last = time.begins_s[0] / seconds, time.end_s / seconds
    colour = VIEW_COLOURS[next(iter(whole.views))]
    band = {"x": x, "y": y, "y2": {"field": "min"}}
    inset = {
        "data": {"name": "picture"},
        "layer": [
            grammar.once(frame),
            {"mark": {"type": "area", "color": colour, "opacity": 0.4}, "encoding": band},
            {"mark": {"type": "line", "color": colour, "strokeWidth": 0.8}, "encoding": {"x": x, "y": y}},
            grammar.once(
                part,
                x={"datum": first, "type": "quantitative", "axis": None, "scale": x["scale"]},
                x2={"datum": last},
                y={"value": 3},
                y2={"value": _PICTURE * height + 3},
            ),
        ],
    }
    layers = spec["layer"]
    return spec | {
        "layer": [{"layer": layers}, inset],
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
    }


def _axis(extent: Extent, free: float = 0.0) -> Spec:
    """The axis of latencies: from zero, unless it is logarithmic or there are early ones. ``free``: the share
    of it that stays empty at its upper end; a logarithmic one has no labels there, where nothing can lie."""
    y = grammar.latency_axis("max", extent.least_us)
    y |= grammar.latency_scale(extent.least_us, 1.1 * extent.greatest_us, extent.typical_us)
    if y["scale"]["type"] == "log":
        decades = math.log10(extent.greatest_us / extent.least_us)
        y |= grammar.latency_scale(
            extent.least_us, extent.greatest_us * 10 ** (_ABOVE * decades), extent.typical_us
        )
        y["scale"]["domain"][1] = extent.least_us * 10 ** ((1 + _ABOVE) * decades / (1 - free))
    else:
        top = 1.1 * extent.greatest_us / (1 - free)
        y["scale"] |= {"domain": [min(0, extent.least_us), top], "nice": True}
    return y


def _stretches(envelope: Envelope, misses: dict[str, Ints], time: TimeAxis, seconds: int) -> Dataset:
    """The columns of the band. Where it takes far longer than usual until the next stretch begins, as after
    a shot that never fired, an empty one comes between, so that nothing is drawn where nothing was."""
    lengths_s = np.diff(time.begins_s, append=time.end_s)
    usual_s = float(np.median(lengths_s))
    stalled = np.flatnonzero(lengths_s > 3 * usual_s)
    begins_s = np.insert(time.begins_s, stalled + 1, time.begins_s[stalled] + usual_s)
    values = {"k": envelope.first_k, "n": envelope.n, **misses}
    times = {"min": envelope.min_ns, "mean": envelope.mean_ns, "max": envelope.max_ns}
    n = np.insert(envelope.n, stalled + 1, 0)
    alone = (n > 0) & (np.r_[0, n[:-1]] == 0) & (np.r_[n[1:], 0] == 0)
    begins = [round(float(t), 6) for t in begins_s / seconds]
    return {
        "t": begins,
        "end": [*begins[1:], round(time.end_s / seconds, 6)],
        "dot": (alone | (n > 0) & (len(n) <= _FEW)).tolist(),
        **{name: np.insert(column, stalled + 1, 0).tolist() for name, column in values.items()},
        **{name: us(np.insert(column, stalled + 1, 0), n == 0) for name, column in times.items()},
    }


def _lanes(x: Spec, misses: dict[str, Ints]) -> Iterator[Spec]:
    """Above the plot, a row of ticks for each kind of miss, with its number."""
    for place, (name, counts) in enumerate(misses.items()):
        y = {"value": -10 - 14 * place}
        tick = {"type": "tick", "orient": "vertical", "size": 10, "thickness": 2, "color": f"var(--{name})"}
        yield {"transform": [{"filter": f"datum.{name} > 0"}], "mark": tick, "encoding": {"x": x, "y": y}}
        text = {"type": "text", "text": f"{name} {counts.sum():,}", "align": "right", "baseline": "middle"}
        yield grammar.once(text, x={"value": -8}, y=y)


def _events(x: Spec, shown: tuple[float, float], time: TimeAxis, seconds: int, lanes: int) -> Iterator[Spec]:
    """What happened in the time that is shown: spans in rows of their own above the plot, a moment as a rule
    across it, named above them."""
    first, last = shown
    there = [e for e in time.events if first <= e.end_s / seconds and e.at_s / seconds <= last]
    spans: dict[str, list[PlottedEvent]] = {}
    for event in there:
        if event.until_s is not None:
            spans.setdefault(event.what, []).append(event)
    for place, (name, found) in enumerate(spans.items()):
        yield from _spans(x, name, found, seconds, lanes + place)
    events = [event for event in there if event.until_s is None][:_MOST_EVENTS]
    if not events:
        return
    rows = [{"t": event.at_s / seconds, "what": event.what} for event in events]
    at = x | {"field": "t"}
    zoomed = {"transform": [{"filter": "datum.t >= from && datum.t <= to"}]}
    source = {"data": {"values": rows}} | (zoomed if isinstance(x["scale"]["domain"][0], dict) else {})
    rule = {"type": "rule", "color": INK, "strokeDash": [2, 3], "clip": True, "tooltip": True}
    tooltip = [{"field": "what", "title": "event"}, {"field": "t", "title": x["title"]}]
    yield source | {"mark": rule, "encoding": {"x": at, "tooltip": tooltip}}
    text = {"type": "text", "align": "left", "baseline": "middle", "dx": 3}
    encoding = {"x": at, "y": {"value": -10 - 14 * (lanes + len(spans))}, "text": {"field": "what"}}
    yield source | {"mark": text, "encoding": encoding}


def _spans(x: Spec, name: str, spans: list[PlottedEvent], seconds: int, lane: int) -> Iterator[Spec]:
    """Above the plot, a row of bars, with how often it happened in all of them."""
    first, last = (end["expr"] if isinstance(end, dict) else repr(end) for end in x["scale"]["domain"])
    within = [
        {"filter": f"datum.end > {first} && datum.t < {last}"},
        {"calculate": f"max(datum.t, {first})", "as": "begin"},
        {"calculate": f"min(datum.end, {last})", "as": "close"},
    ]
    rows = [{"t": one.at_s / seconds, "end": one.end_s / seconds, "times": one.times} for one in spans]
    y = {"value": -10 - 14 * lane}
    bar = {"type": "rule", "strokeWidth": 8, "color": "var(--muted)", "tooltip": True}
    titles = (("t", "Throttled from"), ("end", "to"), ("times", f"times, by {name}"))
    tooltip = [{"field": field, "title": title} for field, title in titles]
    encoding = {"x": x | {"field": "begin"}, "x2": {"field": "close"}, "y": y, "tooltip": tooltip}
    yield {"data": {"values": rows}, "transform": within, "mark": bar, "encoding": encoding}
    said = f"{name} {sum(one.times for one in spans):,}"
    text = {"type": "text", "text": said, "align": "right", "baseline": "middle"}
    yield grammar.once(text, x={"value": -8}, y=y)


def maxima(subject: Subject, time: TimeAxis, height: int, extent: Extent) -> Spec:
    """The greatest value of each interval: one bar an interval; above them, where releases were lost, which
    are later than any value."""
    unit, seconds = time.unit
    envelope = subject.series.envelope
    assert envelope is not None
    begins = [round(float(t), 6) for t in time.begins_s / seconds]
    late, lost = envelope.missed > 0, {"lost": envelope.later} if envelope.later.any() else {}
    columns: Dataset = {
        "t": begins,
        "end": [*begins[1:], round(time.end_s / seconds, 6)],
        "max": us(envelope.max_ns, envelope.n == 0),
        "n": envelope.n.tolist(),
        "missed": ["with a miss" if one else "all in time" for one in late.tolist()],
        **{name: counts.tolist() for name, counts in lost.items()},
    }
    y = grammar.latency_axis("max", extent.least_us) | {"title": "Maximum, us"}
    y |= {"scale": {"domain": [min(0, extent.least_us), 1.1 * extent.greatest_us], "nice": True}}
    x: Spec = {"field": "t", "type": "quantitative", "title": f"Time, {unit}"}
    x |= {"scale": {"domain": [begins[0], columns["end"][-1]], "nice": False}}
    until = {"x": x, "x2": {"field": "end"}, "y": y, "y2": {"datum": 0}}
    until["color"] = {"field": "missed", "type": "nominal"} | {
        "scale": {
            "domain": ["all in time", "with a miss"],
            "range": [VIEW_COLOURS["per_release"], "var(--deadline)"],
        },
        "legend": {} if subject.deadline_ns is not None or late.any() else None,
    }
    shown = [("t", f"from, {unit}"), ("end", f"to, {unit}"), ("n", "values"), ("max", "maximum, us")]
    shown += [(name, name) for name in lost]
    bar = {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 0.5}
    return grammar.frame(
        {"intervals": columns},
        height,
        [
            {"mark": bar, "encoding": until},
            *grammar.deadline("y", subject.deadline_ns, None if extent.deadline_us is None else 0),
            *_lanes(x, lost),
            *_events(x, (begins[0], columns["end"][-1]), time, seconds, len(lost)),
            grammar.hover({"type": "rect"}, {"x": x, "x2": {"field": "end"}}, shown),
        ],
    )


def interval_words(time: TimeAxis) -> str:
    """How long the intervals are."""
    return words.span(float(np.median(np.diff(time.begins_s, append=time.end_s))))
