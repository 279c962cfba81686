"""The pages, from the report's grammar, style and script."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from rtmeter.judge import answer
from rtmeter.judge.points import in_points
from rtmeter.plots.grammar import CONFIG, DASHES, INK, LINE_COLOURS, Spec
from rtmeter.report import page as report_page
from rtmeter.report.site.history import History, file_name
from rtmeter.results import words

__all__ = ["cell", "file_name", "index", "side_by_side"]

_LINES = {"p50": "p50_ns", "p99.9": "p99_9_ns", "max": "max_ns"}
_CONFIG = CONFIG | {"legend": CONFIG["legend"] | {"symbolSize": 60, "symbolStrokeWidth": 1}}
_SHOWN = {"min_ns": "Minimum", "mean_ns": "Mean", "p50_ns": "p50", "p99_ns": "p99", "p99_9_ns": "p99.9"}
_SHOWN |= {"p99_999_ns": "p99.999", "max_ns": "Maximum"}


def index(found: Sequence[History], reports: dict[Path, str]) -> str:
    """The first page: the latest verdict of every cell."""
    things = answer.things([history.latest.cell for history in found])
    return _render("index.html", title="All results", histories=found, reports=reports, things=things)


def cell(history: History, reports: dict[Path, str]) -> str:
    """The page of one cell: its verdicts and values, run by run."""
    title = f"{history.cell}, {history.campaign} on {history.machine}"
    return _render("history.html", title=title, history=history, reports=reports, chart=_chart(history))


def side_by_side(found: Sequence[History]) -> str:
    """The page that sets any two cells' latest results beside each other."""
    data = {history.page: _facts(history) for history in found}
    text = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    return _render("side-by-side.html", title="Side by side", histories=found, data=Markup(text))


def _facts(history: History) -> dict[str, Any]:
    """What is shown of a cell's latest result: name to text."""
    latest = history.latest
    record, judged = latest.cell.record, latest.cell.judged
    facts = {
        "Verdict": answer.NAMES[latest.cell.outcome],
        "Why": " ".join(in_points(latest.cell)),
    }
    facts |= {"Machine": history.machine, "Campaign": history.campaign, "Run": latest.run.name}
    facts |= {"Started": latest.started or words.NONE}
    if record is not None:
        facts |= {"Measurement": words.judged(record.meta), "Adapter": record.adapter}
        facts |= {words.label(name): words.setting(name, value) for name, value in record.axes.items()}
        if record.deadline_ns:
            facts["Deadline, us"] = words.round_us(record.deadline_ns)
    if judged is not None:
        facts["Releases"] = words.count(judged.n)
        for name, title in _SHOWN.items():
            worst = "Worst " if latest.cell.repeats and title.startswith("p") else ""
            facts[f"{worst}{title}, us per release"] = words.us(getattr(judged, name))
    if record is not None and record.verdict and record.verdict.n:
        facts["Misses"] = record.verdict.missed
    return facts


def _chart(history: History) -> Markup | None:
    """The values over the runs as SVG; None if none can be drawn."""
    rows = [
        {"at": entry.started, "line": line, "us": value / 1000}
        for entry in history.entries
        for line, name in _LINES.items()
        if (value := getattr(entry, name)) is not None and math.isfinite(value) and value > 0
    ]
    if not rows:
        return None
    names = list(_LINES)
    colour = {"field": "line", "type": "nominal", "scale": {"domain": names, "range": list(LINE_COLOURS[:3])}}
    dash = {"field": "line", "type": "nominal", "scale": {"domain": names, "range": DASHES[:3]}}
    x: Spec = {"field": "at", "type": "temporal", "title": "measured, UTC", "scale": {"type": "utc"}}
    lost = [{"at": entry.started} for entry in history.entries if entry.max_ns == math.inf]
    if len({one["at"] for one in (*rows, *lost)}) == 1:  # no span, of which Vega would choose what to tell
        x |= {"axis": {"format": "%Y-%m-%d %H:%M", "tickCount": 1}}
    y = {"field": "us", "type": "quantitative", "title": "us", "scale": {"type": "log"}}
    encoding = {"x": x, "y": y, "color": colour, "strokeDash": dash}
    layers: list[Spec] = [{"mark": {"type": "line", "point": {"size": 36}}, "encoding": encoding}]
    record = history.latest.cell.record
    if record is not None and record.deadline_ns:
        rule = {"type": "rule", "color": "var(--deadline)", "strokeDash": [6, 4]}
        layers.append(
            {"data": {"values": [{}]}, "mark": rule, "encoding": {"y": {"datum": record.deadline_ns / 1000}}}
        )
    changes = [{"at": entry.started} for entry in history.changes]
    if changes:
        mark = {"type": "rule", "color": INK, "strokeDash": [2, 3]}
        layers.append({"data": {"values": changes}, "mark": mark, "encoding": {"x": x}})
    if lost:
        said = {"type": "text", "text": "lost", "baseline": "top", "color": "var(--lost)"}
        layers.append({"data": {"values": lost}, "mark": said, "encoding": {"x": x, "y": {"value": 2}}})
    spec = {"data": {"values": rows}, "width": 1180, "height": 300, "layer": layers, "config": _CONFIG}
    spec |= {"autosize": {"type": "fit-x", "contains": "padding"}}
    return Markup(vl_convert.vegalite_to_svg(json.dumps(spec)))


def _render(template: str, **what: Any) -> str:
    return _environment().get_template(template).render(**what)


@cache
def _environment() -> jinja2.Environment:
    return report_page.environment("rtmeter.report.site")
