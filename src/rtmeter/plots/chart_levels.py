"""Beyond what was seen: return levels; nanoseconds come in, microseconds are shown."""

from __future__ import annotations

import numpy as np

from rtmeter.plots import grammar
from rtmeter.plots.grammar import INK, LINE_COLOURS, Dataset, Spec, us
from rtmeter.plots.subject import in_sight_us
from rtmeter.statistics.levels import Levels

_UNITS = (("days", 24.0), ("h", 1.0), ("min", 1 / 60), ("s", 1 / 3600))


def return_levels(found: Levels, deadline_ns: int | None, height: int) -> Spec:
    """Which level is passed once in which time: the peaks that were seen, and the fit with its interval, no
    further than it may be stated."""
    reach = max([found.run_hours, *found.hours.tolist(), *found.peaks_hours.tolist()])
    unit, length = next((u for u in _UNITS if reach >= 2 * u[1]), _UNITS[-1])
    curve: Dataset = {
        "time": (found.hours / length).tolist(),
        "level": us(found.level_ns),
        "low": us(found.lower_ns),
        "high": us(found.upper_ns),
    }
    peaks: Dataset = {"time": (found.peaks_hours / length).tolist(), "level": us(found.peaks_ns)}
    least = float(found.peaks_hours.min(initial=found.run_hours)) / length
    x: Spec = {"field": "time", "type": "quantitative", "title": f"Return period, {unit}"}
    first, last = least, reach / length
    x |= {"scale": {"type": "log", "domain": [first, last], "nice": False}}
    x |= {"axis": {"values": grammar.log_ticks(first, last), "format": ",~r"}}
    seen_us = [value for value in (*curve["high"], *peaks["level"]) if value is not None]
    greatest = max(seen_us, default=1.0)
    deadline_us = in_sight_us(deadline_ns, greatest)
    low = min([value for value in (*curve["low"], *peaks["level"]) if value is not None], default=0)
    y = grammar.latency_axis("level", low) | {"title": "Level passed once in that time, us"}
    reach_us = 1.1 * max(greatest, deadline_us or 0)
    y |= grammar.latency_scale(0.9 * low, reach_us, float(np.median(found.peaks_ns) / 1e3))
    band = {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}}
    shown = [("time", f"once in, {unit}"), ("level", "level, us"), ("low", "from, us"), ("high", "to, us")]
    colour = LINE_COLOURS[0]
    point = {"type": "point", "filled": True, "size": 22, "opacity": 0.9, "color": INK}
    return grammar.frame(
        {"curve": curve, "peaks": peaks},
        height,
        [
            {"mark": {"type": "area", "color": colour, "opacity": 0.2}, "encoding": band},
            {"mark": {"type": "line", "color": colour, "strokeWidth": 1.8}, "encoding": {"x": x, "y": y}},
            {"data": {"name": "peaks"}, "mark": point, "encoding": {"x": x, "y": y}},
            grammar.once(
                {"type": "rule", "color": INK, "strokeDash": [2, 3]}, x={"datum": found.run_hours / length}
            ),
            grammar.once(
                {
                    "type": "text",
                    "text": "length of the run",
                    "align": "right",
                    "dx": -5,
                    "baseline": "bottom",
                },
                x={"datum": found.run_hours / length},
                y={"value": 8},
            ),
            *grammar.deadline("y", deadline_ns, None if deadline_us is None else 0),
            grammar.hover({"type": "point", "filled": True, "size": 200}, {"x": x, "y": y}, shown),
        ],
    )
