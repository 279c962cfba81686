"""Why releases were late, in pictures: causes by class of lateness, and what happened in the latest."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

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
_TOLD = (("what", "what"), ("kind", "kind"), ("long", "for"))
"""Of a bar of a timeline: a thread may have the name of an interrupt or a softirq."""
_THREAD = "thread"
_BAR: Spec = {"type": "bar", "stroke": "var(--paper)", "strokeWidth": 0.5}
_LEGEND_LETTERS = 34
"""Of a line of the bars' legend: what fits on a phone, and into a column of it."""


def _mixed(colour: str, percent: int) -> str:
    return f"color-mix(in srgb, {colour} {percent}%, var(--paper))"


_COLOURS = dict(
    zip(
        ("displaced", "interrupt", "own", "blocked", "held_off", "outside", "softirq", "dispatch"),
        LINE_COLOURS,
        strict=True,
    )
)
_COLOURS |= {
    "own_kernel": _mixed(_COLOURS["own"], 55),
    "timer_idle": _mixed(_COLOURS["outside"], 55),
    "armed_later": _mixed(_COLOURS["dispatch"], 55),
    "unknown": "var(--muted)",
    _THREAD: _mixed("var(--neutral)", 25),
}
"""Of each category the same in every picture; what is alike is paler. ``thread``: who ran on a CPU."""

_WIDTH = "min(width, scale('x', datum.to)) - max(0, scale('x', datum.from)) - 6"
"""What is in sight of a bar of a timeline, without its edges."""


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
    colours = _of_keys(named) | ({_OTHERS: _COLOURS[_THREAD]} if len(totals) > len(named) else {})
    axis = {"field": "class", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 260}}
    encoding: Spec = {
        "y": axis,
        "x": {"field": "us", "type": "quantitative", "title": "us a release, in the mean", "stack": True},
        "color": _colours("what", colours, _in_columns(colours)),
        "tooltip": [
            {"field": "what", "title": "what"},
            {"field": "us", "title": "us", "format": ",.1f"},
            {"field": "share", "title": "share"},
        ],
    }
    lanes = len(dict.fromkeys(rows["class"]))
    spec = grammar.frame({"times": rows}, _LANE * lanes, [{"mark": _BAR, "encoding": encoding}])
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
    colours = {name.replace("_", " "): colour for name, colour in _COLOURS.items()}
    there = {name: colour for name, colour in colours.items() if name in rows["kind"]}
    tooltip = [{"field": name, "title": title} for name, title in _TOLD]
    encoding: Spec = {"y": y, "tooltip": tooltip}
    bar: Spec = {
        "mark": _BAR | {"clip": True},
        "encoding": encoding
        | {"x": x, "x2": {"field": "to"}, "color": _colours("kind", there, {"columns": 2})},
        "params": [{"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"}],
    }
    name: Spec = {
        "transform": [{"filter": f"datum.lane != {grammar.quoted(_PATH)}"}],
        "mark": {"type": "text", "align": "left", "clip": True, "limit": {"expr": _WIDTH}},
        "encoding": encoding
        | {
            "x": {"value": {"expr": "max(0, scale('x', datum.from)) + 3"}},
            "text": {"value": {"expr": f"{_WIDTH} > 20 ? datum.what : ''"}},
        },
    }
    spec = grammar.frame({"spans": rows}, _LANE * len(lanes), [bar, name])
    about = "who ran on its CPUs, interrupts, and where it waited; drag and scroll to zoom"
    lateness = f"{one.lateness_ns / 1000:,.1f} us"
    return Figure(f"Release {one.k:,}: {lateness}", about, spec)


def _of_keys(keys: Sequence[Key]) -> dict[str, str]:
    """The colour of each key, by its words: that of its category, paler for each further one of it."""
    before: Counter[str] = Counter()
    found = {}
    for key in keys:
        colour, percent = _COLOURS[key.category], round(100 * 0.7 ** before[key.category])
        found[words_of(key)] = colour if percent == 100 else _mixed(colour, percent)
        before[key.category] += 1
    return found


def _colours(field: str, colours: dict[str, str], legend: Spec) -> Spec:
    scale = {"domain": list(colours), "range": list(colours.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def _in_columns(names: Iterable[str]) -> Spec:
    """A legend of texts that are longer than a phone is wide."""
    lines = {name: textwrap.wrap(name, _LEGEND_LETTERS) for name in names}
    columns = {"expr": "max(1, floor(width / 270))"}
    return {"columns": columns, "labelExpr": f"({json.dumps(lines, ensure_ascii=False)})[datum.label]"}
