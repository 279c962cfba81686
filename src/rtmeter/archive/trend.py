"""What changed in a fleet: series of the same cell on the same rig, the places where they changed, and what
else changed there."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmeter.archive.cells import NO_TIME
from rtmeter.archive.engine import rows
from rtmeter.archive.groups import GroupsAsked, chosen, invalid_in_words
from rtmeter.archive.numbers import PERCENTS
from rtmeter.statistics.discoveries import FALSE_SHARE, changed
from rtmeter.statistics.ranks import share_of

if TYPE_CHECKING:
    import ibis
    from ibis.backends import BaseBackend

SERIES = ("rig", "campaign", "name", "adapter", "quantity")
"""What a series is of: what these share is one question, asked again and again."""

LATEST = 60
"""Cells of a series that are looked at, the latest ones: the rule's shortest segment is a share of them."""

NEAR = 3
"""A condition that changed no further from a change than so many cells may be what made it."""

_ORDER = ("measured", "started", "cell")
"""Cells that stand at the time when they were added are in the order that their rig's clock told."""

_FACTS = (
    *("kernel", "kernel_version", "firmware", "cpu_model", "middleware", "middleware_version", "rtmeter"),
    *("rmw", "rmw_library", "server_adapter", "server_kernel", "server_kernel_version", "server_firmware"),
    *("server_middleware", "server_middleware_version"),
)
_NOTHING = "nothing that is recorded"

Fact = tuple[str, str, str]
"""A condition, its value before and after."""


@dataclass(frozen=True)
class SeriesChange:
    """A change of a series: when the first cell after it was measured; the medians just before and after it,
    and since the latest change (ns, infinite where releases were lost); what else changed there, nothing if
    empty."""

    series: tuple[str | None, ...]
    when: datetime
    before_ns: float
    after_ns: float
    now_ns: float
    facts: tuple[Fact, ...]

    @property
    def ratio(self) -> float | None:
        """After over before; None unless both are later than nothing, and no release was lost."""
        both = self.before_ns, self.after_ns
        return self.after_ns / self.before_ns if min(both) > 0 and math.isfinite(max(both)) else None

    @property
    def by_ns(self) -> float:
        """After less before, infinite where only one of them is lost."""
        return 0.0 if self.before_ns == self.after_ns else self.after_ns - self.before_ns

    @property
    def rose(self) -> bool:
        return self.after_ns > self.before_ns

    @property
    def lasts(self) -> bool:
        """Whether the level is now nearer to that after it than to that before it, or beyond."""
        middle = (self.before_ns + self.after_ns) / 2
        return self.now_ns >= middle if self.rose else self.now_ns <= middle


@dataclass(frozen=True)
class FleetCause:
    """Changes of one direction with the same conditions that changed beside them."""

    facts: tuple[Fact, ...]
    rose: bool
    changes: tuple[SeriesChange, ...]

    @property
    def rigs(self) -> int:
        return len({change.series[0] for change in self.changes})

    @property
    def ratio(self) -> float | None:
        """The middle one of the changes; None where one has none."""
        ratios = [ratio for change in self.changes if (ratio := change.ratio) is not None]
        return median(ratios) if len(ratios) == len(self.changes) else None

    def in_words(self, quantile: str) -> str:
        """As a sentence."""
        rigs = f"{self.rigs:,} rig{'' if self.rigs == 1 else 's'}"
        return f"{quantile} of {rigs} {self._how()} with {in_words(self.facts)}"

    def _how(self) -> str:
        """How the middle one of the changes changed."""
        way, ratio = "rose" if self.rose else "fell", self.ratio
        if ratio is not None:
            return f"{way} by {100 * abs(ratio - 1):.0f} %"
        by_ns = median(change.by_ns for change in self.changes)
        if math.isinf(by_ns):
            return "rose beyond what was measured" if self.rose else "is no longer lost"
        return f"{way} by {abs(by_ns) / 1000:,.1f} us"


def in_words(facts: Sequence[Fact]) -> str:
    """What changed, in words."""
    return ", ".join(f"{name} {after} (was {before})" for name, before, after in facts) or _NOTHING


@dataclass(frozen=True)
class FleetTrend:
    """``series``: how many were looked at; ``short``: how many had too few cells for that. How many cells are
    in none: ``invalid``, as they failed or are invalid; ``untold``, as they do not tell the statistic;
    ``unordered``, as they tell no time and were added at once."""

    series: int
    short: int
    changes: tuple[SeriesChange, ...]
    invalid: int = 0
    untold: int = 0
    unordered: int = 0

    @property
    def changed(self) -> int:
        """How many series have one of these changes."""
        return len({change.series for change in self.changes})

    def left_out(self, quantile: str) -> list[str]:
        """Which cells are in no series, in words."""
        untold = f"{self.untold:,} {'cell does' if self.untold == 1 else 'cells do'} not tell {quantile}"
        unordered = f"{self.unordered:,} cells do not tell when they were measured and were added at once"
        return [
            *([invalid_in_words(self.invalid)] if self.invalid else []),
            *([f"{untold} (imported intervals, histograms that end below it)"] if self.untold else []),
            *([unordered] if self.unordered else []),
        ]

    def causes(self) -> list[FleetCause]:
        """The changes by what changed with them, those of most rigs first."""
        groups: dict[tuple[tuple[Fact, ...], bool], list[SeriesChange]] = {}
        for change in self.changes:
            groups.setdefault((change.facts, change.rose), []).append(change)
        found = [FleetCause(facts, rose, tuple(of)) for (facts, rose), of in groups.items()]
        return sorted(found, key=lambda cause: (-cause.rigs, cause.facts, cause.rose))


def trend(
    backend: BaseBackend,
    asked: GroupsAsked,
    column: str = "p99_9_ns",
    latest: int = LATEST,
    false_share: float = FALSE_SHARE,
) -> FleetTrend:
    """The changes of every series that changed, false ones held over all series together."""
    from rtmeter.statistics.discoveries import FEWEST

    fleet = _cells(backend, asked, column)
    found = _series(fleet, column, latest)
    keys = list(found)
    values = [found[key][0] for key in keys]
    places = changed(values, false_share)
    facts = _facts(backend, asked, {keys[number] for number in places})
    changes = []
    for number, starts in places.items():
        key, (series, times, cells) = keys[number], found[keys[number]]
        levels = [float(np.median(part)) for part in np.split(series, starts)]
        known = [facts[cell] for cell in cells]
        for at, before, after in zip(starts, levels[:-1], levels[1:], strict=True):
            changes.append(SeriesChange(key, times[at], before, after, levels[-1], beside_it(known, at)))
    changes.sort(key=lambda one: (one.when, str(one.series)))
    short = sum(len(one) < FEWEST for one in values)
    left_out = {"invalid": ~fleet.valid, "untold": fleet.untold, "unordered": fleet.unordered}
    (left,) = rows(fleet.aggregate(**{name: which.sum() for name, which in left_out.items()})).to_pylist()
    none = {name: int(number or 0) for name, number in left.items()}
    return FleetTrend(len(keys) - short, short, tuple(changes), **none)


SeriesKey = tuple[str | None, ...]


def _cells(backend: BaseBackend, asked: GroupsAsked, column: str) -> ibis.Table:
    """The cells that are asked for, and which ``counts``, as it is in a series; which has it ``untold``;
    which is ``unordered``: its place in the series is not known."""
    import ibis

    cells = chosen(backend, asked)
    share = share_of(PERCENTS.get(column, "100"))
    # Null is lost of a cell with a distribution; of another one if so many of its releases were lost.
    gone = cells.lost * share.denominator > cells.n * (share.denominator - share.numerator)
    told = cells[column].notnull() | cells.bins.notnull() | gone.fill_null(False)
    measured = cells.valid & (cells.n > 0).fill_null(False)
    cells = cells.mutate(counts=measured & told, untold=measured & ~told)
    at_once = cells.cell.count().over(ibis.window(group_by=[*SERIES, "measured", "counts"]))
    unordered = cells.counts & (cells.clock == NO_TIME).fill_null(False) & (at_once > 1)
    return cells.mutate(counts=cells.counts & ~unordered, unordered=unordered)


def _series(
    cells: ibis.Table, column: str, latest: int
) -> dict[SeriesKey, tuple[Any, list[datetime], list[str]]]:
    """The values of each series, in order of time, the times and the cells; lost is later than all."""
    import ibis

    cells = cells.filter(cells.counts)
    cells = cells.select(*SERIES, *_ORDER, value=cells[column].cast("float64"))
    order = ibis.window(group_by=SERIES, order_by=[cells[name].desc() for name in _ORDER])
    ranked = cells.mutate(place=ibis.row_number().over(order))
    wanted = ranked.filter(ranked.place < latest).drop("place")
    table = rows(wanted.order_by([*SERIES, *_ORDER]))
    value = table.column("value").fill_null(math.inf).to_numpy()
    value = np.where(np.isnan(value), np.inf, value)
    times, names = (table.column(name).to_pylist() for name in ("measured", "cell"))
    codes = [table.column(name).combine_chunks().dictionary_encode() for name in SERIES]
    indices = np.stack([code.indices.fill_null(-1).to_numpy(zero_copy_only=False) for code in codes])
    edges = (np.flatnonzero((indices[:, 1:] != indices[:, :-1]).any(axis=0)) + 1).tolist()
    found: dict[SeriesKey, tuple[Any, list[datetime], list[str]]] = {}
    for start, end in zip([0, *edges], [*edges, len(value)], strict=True):
        if end > start:
            key = tuple(code[start].as_py() for code in codes)
            found[key] = value[start:end], times[start:end], names[start:end]
    return found


def _facts(backend: BaseBackend, asked: GroupsAsked, keys: set[SeriesKey]) -> dict[str, dict[str, str]]:
    """What is known of each cell of these series."""
    if not keys:
        return {}
    cells = chosen(backend, asked)
    cells = cells.filter(cells.valid & (cells.n > 0) & cells.rig.isin(sorted({str(key[0]) for key in keys})))
    table = rows(cells.select(*SERIES, "cell", *_FACTS, "settings", "labels"))
    found: dict[str, dict[str, str]] = {}
    for row in table.to_pylist():
        if tuple(row[name] for name in SERIES) in keys:
            facts = {name: str(row[name]) for name in _FACTS if row[name] is not None}
            settings = json.loads(row["settings"] or "{}")
            facts |= {f"setting {name}": json.dumps(value) for name, value in settings.items()}
            facts |= {f"label {name}": str(value) for name, value in dict(row["labels"] or {}).items()}
            found[row["cell"]] = facts
    return found


def beside_it(facts: Sequence[Mapping[str, str]], at: int) -> tuple[Fact, ...]:
    """Which conditions changed nearest to a place, no further than NEAR, and for good: no value from before
    comes again after it. A label or setting that is absent is not given; a column that is null is not known,
    and from or to what is not known nothing changed."""
    near: dict[int, list[Fact]] = {}
    for name in sorted({name for one in facts for name in one}):
        values = [one.get(name, None if name in _FACTS else "-") for one in facts]
        for place in range(max(1, at - NEAR), min(len(values), at + NEAR + 1)):
            before, after = values[place - 1 : place + 1]
            if before is None or after is None or before == after:
                continue
            if not set(values[:place]) & set(values[place:]) - {None}:
                near.setdefault(abs(place - at), []).append((name, before, after))
    return tuple(near[min(near)]) if near else ()
