"""Why releases were late, in pictures: causes by class of lateness, and what happened in the latest."""

from __future__ import annotations

from collections.abc import Iterable

from rtmeter.explain.segments import Key
from rtmeter.explain.words import words_of, words_of_one
from rtmeter.judge.why import Class, Shown, Why
from rtmeter.plots import grammar
from rtmeter.plots.figures import Figure
from rtmeter.plots.grammar import LINE_COLOURS, Dataset, Spec
from rtmeter.results import words

_MOST_KEYS = len(LINE_COLOURS) - 1
_OTHERS = "others"
_PATH = "the release"
_LANE = 34


def figures(why: Why) -> list[Figure]:
    """The bars, then a timeline of each of the latest releases."""
    found = [_bars(why.classes)] if why.classes else []
    return found + [_timeline(one) for one in why.worst]


def _bars(classes: Iterable[Class]) -> Figure:
    totals: dict[Key, int] = {}
    for one in classes:
        for key, ns in one.times_ns:
            totals[key] = totals.get(key, 0) + ns
    named = sorted(totals, key=lambda key: (-totals[key], key.order))[:_MOST_KEYS]
    rows: Dataset = {"class": [], "what": [], "us": [], "share": []}
    for one in classes:
        times: dict[str, int] = {}
        for key, ns in one.times_ns:
            name = words_of(key) if key in named else _OTHERS
            times[name] = times.get(name, 0) + ns
        to = f" to {words.round_us(one.to_ns)}" if one.to_ns else " and more"
        for name, ns in times.items():
            rows["class"].append(f"{words.round_us(one.from_ns)}{to} us: {one.releases:,}")
            rows["what"].append(name)
            rows["us"].append(ns / one.releases / 1000)
            rows["share"].append(f"{ns / max(sum(times.values()), 1):.0%}")
    order = [*dict.fromkeys(words_of(key) for key in named), _OTHERS]
    axis = {"field": "class", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 260}}
    encoding: Spec = {
        "y": axis,
        "x": {"field": "us", "type": "quantitative", "title": "us a release, in the mean", "stack": True},
        "color": _colours(order),
        "tooltip": [
            {"field": "what", "title": "what"},
            {"field": "us", "title": "us", "format": ",.1f"},
            {"field": "share", "title": "share"},
        ],
    }
    lanes = len(dict.fromkeys(rows["class"]))
    spec = grammar.frame({"times": rows}, _LANE * lanes, [{"mark": {"type": "bar"}, "encoding": encoding}])
    return Figure("Where their time went", "Late releases by their lateness, and how many they are", spec)


def _timeline(one: Shown) -> Figure:
    rows: Dataset = {"lane": [], "from": [], "to": [], "what": [], "kind": [], "long": []}
    lanes = [_PATH]

    def add(lane: str, start_ns: int, end_ns: int, what: str, kind: str) -> None:
        values = (lane, start_ns / 1000, end_ns / 1000, what, kind, f"{(end_ns - start_ns) / 1000:,.1f} us")
        for column, value in zip(rows.values(), values, strict=True):
            column.append(value)

    for part in one.segments:
        what = words_of_one(part)
        add(_PATH, part.start_ns, part.end_ns, what, part.key.category.replace("_", " "))
    for doing in one.doings:
        lane = f"CPU {doing.cpu}"
        lanes += [lane] if lane not in lanes else []
        add(lane, doing.start_ns, doing.end_ns, doing.name, doing.kind)
    x = {"field": "from", "type": "quantitative", "title": "us since the release", "scale": {"nice": False}}
    y = {"field": "lane", "type": "nominal", "sort": lanes, "title": None}
    encoding = {"x": x, "x2": {"field": "to"}, "y": y, "color": _colours(list(dict.fromkeys(rows["kind"])))}
    tooltip = [{"field": "what", "title": "what"}, {"field": "long", "title": "for"}]
    bar: Spec = {
        "mark": {"type": "bar", "clip": True, "stroke": "var(--paper)", "strokeWidth": 0.5},
        "encoding": encoding | {"tooltip": tooltip},
        "params": [{"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"}],
    }
    spec = grammar.frame({"spans": rows}, _LANE * len(lanes), [bar])
    about = "who ran on its CPUs, interrupts, and where it waited; drag and scroll to zoom"
    lateness = f"{one.lateness_ns / 1000:,.1f} us"
    return Figure(f"Release {one.k:,}: {lateness}", about, spec)


def _colours(names: list[str]) -> Spec:
    colours = [LINE_COLOURS[place % len(LINE_COLOURS)] for place in range(len(names))]
    return {
        "field": "what" if _OTHERS in names else "kind",
        "type": "nominal",
        "scale": {"domain": names, "range": colours},
        "legend": {"columns": 1 if _OTHERS in names else 2},
    }
