"""Plots as files: PNG, SVG and PDF, alone or in a grid with a title that says of what."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import vl_convert

from rtmeter.errors import RtmeterError
from rtmeter.host.files import replace_file
from rtmeter.plots.grammar import CONFIG, Spec

FORMATS = (".png", ".svg", ".pdf")

_FONT = "Liberation Sans, Arial, Helvetica, DejaVu Sans, sans-serif"
_PIXELS = 2
"""Pixels of a PNG for each of the size that is asked for."""

_APART: Spec = {
    "resolve": {key: {"color": "independent", "strokeDash": "independent"} for key in ("scale", "legend")}
}
"""Each panel has a legend of its own."""

_LETTER = 5.6
"""The mean width of a letter of a subtitle."""

_LEGEND_LETTER, _LEGEND_SYMBOL = 6.5, 60
"""The same of a legend, and what the symbol and the space around it take."""


def check_format(out: Path) -> None:
    """Raises RtmeterError if the name says no format."""
    if out.suffix.lower() not in FORMATS:
        raise RtmeterError(
            "is no format of a picture",
            field="-o",
            value=str(out),
            remedy=f"end it with {' or '.join(FORMATS)}",
        )


def write_picture(spec: Spec, out: Path) -> None:
    """Writes a specification that ``grid`` made; the file appears whole or not at all."""
    check_format(out)
    svg = vl_convert.vegalite_to_svg(json.dumps(spec))
    kind = out.suffix.lower()
    if kind == ".svg":
        content = svg.encode()
    elif kind == ".png":
        content = vl_convert.svg_to_png(svg, scale=_PIXELS)
    else:
        content = vl_convert.svg_to_pdf(svg)
    replace_file(out, content)


def grid(rows: Sequence[Sequence[tuple[str, Spec]]], title: str, notes: Sequence[str], width: int) -> Spec:
    """Panels, each with its title, in rows as one specification; ``width`` is that of a whole row and
    ``notes`` stand below the title."""
    datasets: dict[str, list[dict[str, Any]]] = {}
    across = max(len(row) for row in rows)
    each = panel_width(width, across)
    placed = [
        [_panel(spec, name, each, f"{y}-{x}-", datasets) for x, (name, spec) in enumerate(row)]
        for y, row in enumerate(rows)
    ]
    subtitle = _lines(notes, max(40, int(width / _LETTER)))
    whole: Spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {"text": title, "subtitle": subtitle, "anchor": "start", "fontSize": 14, "offset": 14}
        | {"subtitleFontSize": 10, "subtitlePadding": 4, "frame": "bounds"},
        "datasets": datasets,
        "background": "var(--card)",
        "padding": 12,
        "config": CONFIG | {"font": _FONT, "background": "var(--card)"},
    }
    legend = CONFIG["legend"] | {"labelLimit": each - 50}  # no wider than the panel
    whole["config"] = whole["config"] | {"legend": legend | {"columns": _legend_columns(rows, each)}}
    if len(rows) == across == 1:
        return _coloured(whole | placed[0][0])
    rows_of_panels = [{"hconcat": row, "spacing": 24} | _APART for row in placed]
    return _coloured(whole | {"vconcat": rows_of_panels, "spacing": 28} | _APART)


def panel_width(width: int, across: int) -> int:
    """The width of each panel of a row of so many."""
    return max(120, (width - 90 * (across - 1)) // across)


def _legend_columns(rows: Sequence[Sequence[tuple[str, Spec]]], width: int) -> int:
    """How many names of lines stand beside each other above a panel of that width."""
    layers = [layer for row in rows for _, spec in row for layer in spec["layer"]]
    scales = [layer.get("encoding", {}).get("color", {}).get("scale", {}) for layer in layers]
    longest = max((len(str(name)) for scale in scales for name in scale.get("domain", ())), default=0)
    return max(1, int(width // (longest * _LEGEND_LETTER + _LEGEND_SYMBOL)))


def _lines(notes: Sequence[str], letters: int) -> list[str]:
    """The notes one after the other, in lines of at most so many letters where they have any choice."""
    lines: list[str] = []
    for note in notes:
        if lines and len(lines[-1]) + len(note) + 3 <= letters:
            lines[-1] += f" · {note}"
        else:
            lines += textwrap.wrap(note, letters)
    return lines


def _panel(spec: Spec, name: str, width: int, prefix: str, datasets: dict[str, list[dict[str, Any]]]) -> Spec:
    """The panel with its datasets moved to the whole's, under names of their own, and without what only
    pointing at it shows."""
    for key, columns in spec["datasets"].items():
        names = list(columns)
        rows = zip(*columns.values(), strict=True)
        datasets[prefix + key] = [dict(zip(names, row, strict=True)) for row in rows]
    moved = _renamed(spec, prefix)
    moved = {key: value for key, value in moved.items() if key not in ("datasets", "config", "autosize")}
    moved["layer"] = [layer for layer in moved["layer"] if layer.get("name") != "hover"]
    titled = {"title": {"text": name, "anchor": "start", "fontSize": 12, "offset": 24}} if name else {}
    return moved | {"width": width} | titled


def _renamed(part: Any, prefix: str) -> Any:
    if isinstance(part, dict):
        return {
            key: {"name": prefix + value["name"]}
            if key == "data" and "name" in value
            else _renamed(value, prefix)
            for key, value in part.items()
        }
    return [_renamed(one, prefix) for one in part] if isinstance(part, list) else part


@cache
def _colours() -> Mapping[str, str]:
    """The colours of the light theme, as theme.css has them."""
    css = files("rtmeter.plots").joinpath("templates/theme.css").read_text(encoding="utf-8")
    light = css[: css.index("}")]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light))


def _coloured(spec: Spec) -> Spec:
    """The specification with colours in the place of the page's properties, which files have not."""

    def colour(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: colour(value) for key, value in part.items()}
        if isinstance(part, list):
            return [colour(one) for one in part]
        if isinstance(part, str) and part.startswith("var(--"):
            return _colours()[part[6:-1]]
        return part

    coloured: Spec = colour(spec)
    return coloured
