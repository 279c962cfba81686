"""The plots of one quantity of a cell; nanoseconds come in, microseconds are shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtmeter.report import grammar, words
from rtmeter.report.bins import quantile_range_ns
from rtmeter.report.data import Series, View
from rtmeter.report.envelope import Envelope
from rtmeter.report.grammar import INK, RULE, VIEW_COLOURS, Columns, Spec, us
from rtmeter.statistics.quantities import Ints

_EMPTY_BIN = 0.7
"""Where the logarithmic axis of counts begins, so that a single count still shows."""

_IN_SIGHT = 3
"""A deadline further away than this many times the largest value is told, not drawn."""

_NO_SHARE = 1e-12
"""Where the complementary CDF ends beyond the largest value: below every axis."""

_FEW = 150
"""So few stretches are shown as points, too."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a plot is about: the series of a quantity, and the deadline on it, if any."""

    series: Series
    deadline_ns: int | None

    @property
    def views(self) -> dict[str, View]:
        """The views worth telling apart: one, if nothing was passed over or lost."""
        views = {name: view for name, view in self.series.views.items() if view.n}
        first, primary = next(iter(views.items()))
        return {name: view for name, view in views.items() if name == first or view.n != primary.n}

    @property
    def typical_us(self) -> float:
        """About the median of the first view, 0 if it has no values."""
        counts = next(iter(self.views.values())).counts
        return quantile_range_ns(counts, (0.5, 0.5))[0] / 1e3 if counts.any() else 0

    @property
    def deadline_us(self) -> float | None:
        """The deadline, if it is near enough to be drawn."""
        near = self.deadline_ns is not None and self.deadline_ns <= _IN_SIGHT * 1e3 * self._greatest_us
        return self.deadline_ns / 1e3 if near and self.deadline_ns else None

    @property
    def reach_us(self) -> float:
        """How far an axis goes that shows the largest value, and the deadline if it is in sight."""
        return max(self._greatest_us, self.deadline_us or 0) or 1

    @property
    def _greatest_us(self) -> float:
        return max((int(v.largest_ns[0]) / 1e3 for v in self.views.values() if len(v.largest_ns)), default=0)


@dataclass(frozen=True, slots=True)
class Time:
    """The time axis of a cell: when the stretches of an envelope begin and the last one ends, in seconds,
    and the spans of which the rows are missing."""

    first_k: Ints
    begins_s: npt.NDArray[np.float64]
    end_k: int
    end_s: float
    gaps_s: tuple[tuple[float, float], ...] = ()

    def of(self, k: int) -> float:
        """When release k was, to within a stretch."""
        return float(np.interp(k, np.r_[self.first_k, self.end_k], np.r_[self.begins_s, self.end_s]))


def over_time(subject: Subject, time: Time, height: int) -> Spec:
    """Latency over time: a band from the least to the greatest value of each stretch, so that no spike is
    lost; above it, when releases were late, skipped or lost."""
    unit, seconds = ("h", 3600) if time.end_s >= 4 * 3600 else ("min", 60) if time.end_s >= 240 else ("s", 1)
    envelope = subject.series.envelope
    assert envelope is not None
    misses = {"late": envelope.late, "skipped": envelope.skipped, "lost": envelope.lost}
    misses = {name: counts for name, counts in misses.items() if counts.any()}
    stretches = _stretches(envelope, misses, time, seconds)
    gaps = [(first / seconds, last / seconds) for first, last in time.gaps_s]

    least = min((value for value in stretches["min"] if value is not None), default=0)
    y = grammar.latency_axis("max", least)
    y |= grammar.latency_scale(least, 1.1 * subject.reach_us, subject.typical_us)
    if y["scale"]["type"] == "linear":
        y["scale"] |= {"domain": [min(0, least), 1.1 * subject.reach_us], "nice": True}
    x: Spec = {"field": "t", "type": "quantitative", "title": f"Time, {unit}"}
    x |= {"scale": {"domain": [0, stretches["end"][-1]], "nice": False}}
    until = {"x": x, "x2": {"field": "end"}}
    several = bool((envelope.n > 1).any())
    most, mean = {"x": x, "y": y}, {"x": x, "y": y | {"field": "mean"}}
    colour = VIEW_COLOURS[next(iter(subject.views))]
    shown = [("t", f"from, {unit}"), ("end", f"to, {unit}"), ("k", "first k"), ("n", "values")]
    shown += [(name, f"{name}, µs") for name in ("min", "mean", "max")] + [(name, name) for name in misses]
    return grammar.frame(
        {"stretches": stretches, "gaps": {"t": [g[0] for g in gaps], "end": [g[1] for g in gaps]}},
        height,
        [
            {"data": {"name": "gaps"}, "mark": {"type": "rect", "color": RULE}, "encoding": until},
            {
                "mark": {"type": "area", "color": colour, "opacity": 0.25},
                "encoding": most | {"y2": {"field": "min"}},
            },
            {"mark": {"type": "line", "color": colour, "strokeWidth": 1.2}, "encoding": most},
            *(
                [{"mark": {"type": "line", "color": INK, "strokeWidth": 1}, "encoding": mean}]
                if several
                else []
            ),
            {
                "transform": [{"filter": "datum.dot"}],
                "mark": {"type": "point", "color": colour, "filled": True, "size": 14, "opacity": 1},
                "encoding": most,
            },
            *grammar.deadline("y", subject.deadline_ns, None if subject.deadline_us is None else 0),
            *_lanes(x, misses),
            grammar.hover({"type": "rect"}, until, shown),
        ],
    )


def _stretches(envelope: Envelope, misses: dict[str, Ints], time: Time, seconds: int) -> Columns:
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


def histogram(subject: Subject, height: int) -> Spec:
    """How often each latency was seen: steps, counts on a logarithmic axis; early ones are negative."""
    grid, views = subject.series.grid, subject.views
    counts = np.array([view.steps[1:-1] for view in views.values()])
    changes = np.flatnonzero(np.r_[True, (np.diff(counts, axis=1) != 0).any(axis=0)])
    edges = us(grid.first_ns + grid.width_ns * np.r_[0, changes, grid.size])
    columns: Columns = {"x": edges, "end": [*edges[1:], edges[-1]]}
    columns |= {name: [0, *row[changes].tolist(), 0] for name, row in zip(views, counts, strict=True)}

    first, last = grid.first_ns / 1e3, (grid.first_ns + grid.width_ns * grid.size) / 1e3
    deadline_us = (subject.deadline_ns or 0) / 1e3
    near = first <= deadline_us <= first + 1.5 * (last - first)
    right = max(last, 1.02 * deadline_us) if near else last
    x = grammar.latency_axis("x", first)
    x |= {"scale": {"type": "linear", "domain": [first, right], "nice": False}}
    most = 2 * max(1, int(counts.max()))
    y: Spec = {"type": "quantitative", "title": "Releases"}
    y |= {"axis": {"values": grammar.log_ticks(1, most), "format": "~s"}}
    y |= {"scale": {"type": "log", "domain": [_EMPTY_BIN, most], "nice": False}}
    layers: list[Spec] = []
    for name in views:
        height_of_bin = {"calculate": f"max(datum.{name}, {_EMPTY_BIN})", "as": "drawn"}
        drawn = {"transform": [height_of_bin, {"calculate": f"'{words.VIEWS[name]}'", "as": "view"}]}
        encoding = {"x": x, "y": y | {"field": "drawn"}, "color": grammar.view_colour(views)}
        area = {"type": "area", "interpolate": "step-after", "opacity": 0.18}
        line = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.3}
        if layers:
            line["strokeDash"] = [3, 2]
        else:
            layers.append(drawn | {"mark": area, "encoding": encoding | {"y2": {"datum": _EMPTY_BIN}}})
        layers.append(drawn | {"mark": line, "encoding": encoding})
    each = f"in each {words.round_us(grid.width_ns)} µs"
    shown = [
        ("x", "from, µs"),
        ("end", "to, µs"),
        *((name, f"{words.VIEWS[name]}, {each}") for name in views),
    ]
    at = grammar.share_of_axis(x["scale"], deadline_us) if near else None
    return grammar.frame(
        {"bins": columns},
        height,
        [
            *layers,
            *grammar.zero(first),
            *grammar.deadline("x", subject.deadline_ns, at),
            *_not_in_bins(subject),
            grammar.hover({"type": "rect"}, {"x": x, "x2": {"field": "end"}}, shown),
        ],
    )


def _not_in_bins(subject: Subject) -> Iterator[Spec]:
    """What the first view has beside the bins: values out of range, and lost releases."""
    view = next(iter(subject.views.values()))
    below, above = int(view.steps[0]), int(view.steps[-1])
    line = 0 if subject.deadline_ns is None else 1
    if above:
        greatest = words.us(int(view.largest_ns[0]))
        yield grammar.corner(f"{above:,} beyond, up to {greatest} µs ▸", right=True, line=line)
    if view.lost:
        yield grammar.corner(f"{view.lost:,} lost ▸", right=True, line=line + bool(above))
    if below:
        yield grammar.corner(f"◂ {below:,} below", right=False)


def complementary_cdf(subject: Subject, height: int, points_a_decade: int) -> Spec:
    """Which share of the releases was that late or later, down to the last one of them."""
    columns: Columns = {"x": [], "share": [], "one_in": [], "view": []}
    right = 1.02 * subject.reach_us
    least, rarest = right, 1.0
    for name, view in subject.views.items():
        x_ns, shares = _thinned(*view.ccdf(), points_a_decade)
        points = list(zip(x_ns / 1e3, shares.tolist(), strict=True))
        least, rarest = min([least, *(x for x, _ in points[:1])]), min(rarest, 1 / view.n)
        points += [(right, view.lost / view.n)] if view.lost else [(x, 0.0) for x, _ in points[-1:]]
        columns["x"] += [round(float(x), 3) for x, _ in points]
        columns["share"] += [float(f"{share:.5g}") or _NO_SHARE for _, share in points]
        columns["one_in"] += [f"1 in {1 / share:,.4g}" if share else None for _, share in points]
        columns["view"] += [words.VIEWS[name]] * len(points)
    x = grammar.latency_axis("x", least) | grammar.latency_scale(least, right, subject.typical_us)
    ticks = grammar.log_ticks(rarest / 1.5, 1)
    y: Spec = {"field": "share", "type": "quantitative", "title": "Share that late or later"}
    y |= {"scale": {"type": "log", "domain": [rarest / 1.5, 1], "nice": False}}
    y |= {"axis": {"values": ticks, "labelExpr": grammar.power_of_ten_labels(ticks)}}
    colour = grammar.view_colour(subject.views)
    deadline_us = subject.deadline_us
    at = None if deadline_us is None else grammar.share_of_axis(x["scale"], deadline_us)
    shown = [("x", "at or above, µs"), ("share", "share"), ("one_in", "that is"), ("view", "view")]
    return grammar.frame(
        {"shares": columns},
        height,
        [
            {
                "mark": {"type": "line", "interpolate": "step-before", "strokeWidth": 1.6, "clip": True},
                "encoding": {"x": x, "y": y, "color": colour},
            },
            *grammar.zero(least),
            *grammar.deadline("x", subject.deadline_ns, at),
            {"transform": [{"filter": "datum.one_in"}]}
            | grammar.hover({"type": "point", "filled": True, "size": 90}, {"x": x, "y": y}, shown),
        ],
    )


def _thinned(
    x_ns: Ints, share: npt.NDArray[np.float64], points_a_decade: int
) -> tuple[Ints, npt.NDArray[np.float64]]:
    """Of the points that many to a decade of the share, the first of each, and the last of all."""
    kept = np.ones(len(share), dtype=bool)
    kept[1:-1] = np.diff(np.floor(points_a_decade * np.log10(share)))[:-1] != 0
    return x_ns[kept], share[kept]
