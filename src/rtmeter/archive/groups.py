"""Groups of cells, merged: the distribution of all their samples in one heap, exact maxima, one verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rtmeter.archive.engine import as_written, found_once, rows
from rtmeter.archive.schema import CELLS, DISTRIBUTIONS, SCHEMAS
from rtmeter.errors import RtmeterError
from rtmeter.judge.fleet import FleetVerdict, judge_fleet
from rtmeter.model import Requirement
from rtmeter.statistics.fixed_bins import Binned
from rtmeter.statistics.joint import RunMisses
from rtmeter.statistics.ranks import fewest, share_of
from rtmeter.statistics.views import LATER
from rtmeter.values import utc

if TYPE_CHECKING:
    import ibis
    from ibis.backends import BaseBackend

LABEL = "label:"
PERCENTS = ("50", "99", "99.9", "99.999")
"""The quantiles of a group that are shown."""

OF = ("measurement", "quantity", "drive", "components")
"""What a group is of, besides its key: no distribution and no verdict is of several quantities, nor of one
that is reached in several ways."""

_REQUIREMENT = ("deadline_ns", "miss_ratio", "confidence", "criticality", "horizon")
_JUDGED = ("rig", "n", "misses", "design_effect", "refused", "outcome")
_COUNTED = ("cells", "rigs", "invalid", "without")
_OF_EACH = ("cell", "batch", "valid", "bins", "lost", "max_ns", "max_at_k", *_JUDGED, *_REQUIREMENT)


@dataclass(frozen=True)
class GroupsAsked:
    """``by``: columns of cells, or ``label:NAME``; ``where``: their values; cells measured in between."""

    by: Sequence[str] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class ArchiveGroup:
    """``of``: its values of OF; ``invalid``: cells that failed or are invalid, of which nothing else is told;
    ``without``: others that have no distribution; ``maximum``: value, rig, release (None: not told) and cell
    of the latest one, None if none is known; its value and release are None where one of the cell's was lost,
    which is later than all; ``verdict``: None where no cell has a requirement; inconclusive where they
    differ."""

    key: tuple[str | None, ...]
    of: tuple[str | None, ...]
    cells: int
    rigs: int
    invalid: int
    without: int
    distribution: Binned
    maximum: tuple[int | None, str, int | None, str] | None
    verdict: FleetVerdict | None

    @property
    def what(self) -> str:
        """What it is of, in a few words."""
        return " ".join(value for value in self.of if value) or "-"


def between(distribution: Binned, percent: str) -> str:
    """The edges of a quantile's bin in us; empty if of so few releases it is the maximum."""
    edges = distribution.quantile(percent)
    if edges is None or distribution.n < fewest(share_of(percent)):
        return ""
    return edges if isinstance(edges, str) else f"{edges[0] / 1000:,.1f}–{edges[1] / 1000:,.1f}"


def invalid_in_words(cells: int) -> str:
    """How many cells have nothing that may be told."""
    return f"{cells:,} cell{'' if cells == 1 else 's'} failed or {'is' if cells == 1 else 'are'} invalid"


def without_in_words(cells: int) -> str:
    """How many cells are in a group but for its distribution."""
    have = "cell has" if cells == 1 else "cells have"
    return f"{cells:,} {have} no distribution (imported histograms): not in these quantiles and releases"


def merged(backend: BaseBackend, asked: GroupsAsked) -> list[ArchiveGroup]:
    """The groups, in the order of their keys; the same from every engine, to the last count."""
    names = [*_names(asked), *OF]
    every = found_once(backend, chosen(backend, asked).select(*dict.fromkeys((*names, *_OF_EACH))))
    groups = found_once(backend, _numbered(every, names))
    cells = every.join(groups, [every[name].identical_to(groups[f"{name}_"]) for name in names])
    cells = cells.select("group", *_OF_EACH)
    valid = cells.filter(cells.valid)
    parts = _within(backend.table(as_written(DISTRIBUTIONS)), asked)  # no bins of other times are read
    parts = parts.join(valid.select("cell", "batch", "group"), ["cell", "batch"])
    single = parts.select("group", counts=parts.counts.unnest())
    bins = single.select("group", bin=single.counts["bin"], times=single.counts["count"])
    sums = bins.group_by(["group", "bin"]).aggregate(times=bins.times.sum().cast("int64"))
    lost = parts.group_by("group").aggregate(lost=parts.lost.sum().cast("int64"))
    distributions = _distributions(rows(sums), rows(lost))
    latest = {row["group"]: row for row in rows(_latest(valid)).to_pylist()}
    counted = rows(groups).to_pylist()
    keys = {row["group"]: tuple(_key_text(row[f"{name}_"]) for name in names) for row in counted}
    sizes = {row["group"]: int(row["cells"]) for row in counted}
    untold = {keys[row["group"]]: int(row["invalid"] or 0) for row in counted}
    driven = {number: key for number, key in keys.items() if any(key[-2:])}
    beside = {number: untold.get((*key[:-2], None, None), 0) for number, key in driven.items()}
    verdicts = _verdicts(cells, sizes, beside)
    empty = Binned(np.empty(0, np.int64), np.empty(0, np.int64), 0)
    found = []
    for row in counted:
        number, key = row["group"], keys[row["group"]]
        top = latest.get(number)
        of = key[-len(OF) :]
        size, rigs, invalid, without = (int(row[name] or 0) for name in _COUNTED)
        counts = size, rigs, invalid, without
        distribution, maximum = distributions.get(number, empty), _maximum(top) if top else None
        found.append(ArchiveGroup(key[: -len(OF)], of, *counts, distribution, maximum, verdicts.get(number)))
    return sorted(found, key=lambda group: tuple(value or "" for value in (*group.key, *group.of)))


def _numbered(cells: ibis.Table, names: Sequence[str]) -> ibis.Table:
    """The groups: their number, which is shorter than their keys, and how many cells they have."""
    import ibis

    keys = {f"{name}_": cells[name] for name in names}
    counted = cells.group_by(**keys).aggregate(
        cells=cells.count(),
        rigs=cells.rig.nunique(),
        invalid=(~cells.valid).sum(),
        without=(cells.valid & cells.bins.isnull()).sum(),
    )
    return counted.mutate(group=ibis.row_number().over(ibis.window(order_by=list(keys))))


def chosen(backend: BaseBackend, asked: GroupsAsked) -> ibis.Table:
    """The cells that are asked for, invalid ones too, with the columns g0, g1, … of their group."""
    cells = backend.table(CELLS)
    for name, value in dict(asked.where).items():
        cells = cells.filter(_is(cells, name, value))
    cells = _within(cells, asked)
    keys = {f"g{place}": _as_key(_column(cells, name, "--by")) for place, name in enumerate(asked.by)}
    return cells.mutate(**(keys or {"g0": cells.cell.length().isnull().cast("string")}))


def _within(table: ibis.Table, asked: GroupsAsked) -> ibis.Table:
    """The rows of the time that is asked for."""
    if asked.since is not None:
        table = table.filter(table.measured >= asked.since)
    if asked.until is not None:
        table = table.filter(table.measured < asked.until)
    return table


def _names(asked: GroupsAsked) -> list[str]:
    return [f"g{place}" for place in range(len(asked.by))] or ["g0"]


def _as_key(column: Any) -> Any:
    """As text, but for what each engine writes in its own way: see _key_text."""
    kind = column.type()
    return column if kind.is_floating() or kind.is_timestamp() else column.cast("string")


def _key_text(value: Any) -> str | None:
    """A value of a group's key: a number as the shortest text that says it, a time as in ISO 8601, UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return None if _none(value) is None else str(value)


def _is(cells: ibis.Table, name: str, value: str) -> Any:
    """Whether a column has the value."""
    column = _column(cells, name, "--where")
    kind = column.type()
    try:
        if kind.is_floating():
            return column == float(value)
        if kind.is_timestamp():
            return column == utc(value)
    except ValueError:
        remedy = "write a number like 1e-05, a time like 2026-11-22T05:00:00Z"
        raise RtmeterError(
            "is no such value", field="--where", value=f"{name}={value}", remedy=remedy
        ) from None
    return column.cast("string") == value


def _column(cells: ibis.Table, name: str, field: str) -> Any:
    if name.startswith(LABEL):
        return cells.labels.get(name.removeprefix(LABEL))
    if name not in SCHEMAS[CELLS].names or name == "labels":
        remedy = "give a column of cells (`rtmeter archive sql 'DESCRIBE cells'`), or label:NAME"
        raise RtmeterError("is no column of cells", field=field, value=name, remedy=remedy)
    return cells[name]


def _latest(cells: ibis.Table) -> ibis.Table:
    """The latest release of each group, LATER if one was lost; of several equal ones that of the first
    cell. It is known of a histogram, too, where its tool told it."""
    import ibis

    known = cells.filter(cells.n > 0)
    known = known.filter(known.max_ns.notnull() | known.bins.notnull() | (known.lost > 0))
    known = known.mutate(latest=known.max_ns.fill_null(LATER), k=known.max_at_k.fill_null(-1))
    order = ibis.window(group_by="group", order_by=[known.latest.desc(), known.cell])
    ranked = known.mutate(place=ibis.row_number().over(order))
    return ranked.filter(ranked.place == 0).select("group", "latest", "rig", "k", "cell")


def _maximum(row: Mapping[str, Any]) -> tuple[int | None, str, int | None, str]:
    value, k = int(row["latest"]), int(row["k"])
    if value == LATER:
        return None, row["rig"], None, row["cell"]
    return value, row["rig"], None if k < 0 else k, row["cell"]


def _distributions(sums: Any, lost: Any) -> dict[int, Binned]:
    gone = {row["group"]: int(row["lost"]) for row in lost.to_pylist()}
    counts: dict[int, list[tuple[int, int]]] = {number: [] for number in gone}
    for row in sums.to_pylist():
        counts[row["group"]].append((row["bin"], row["times"]))
    found = {}
    for number, pairs in counts.items():
        ordered = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
        found[number] = Binned(ordered[:, 0].copy(), ordered[:, 1].copy(), gone[number])
    return found


class _Run(NamedTuple):
    """Of a cell, what verdicts over rigs need; numbers may be null."""

    rig: str
    n: Any
    misses: Any
    design_effect: Any
    refused: str | None
    outcome: str | None
    requirement: tuple[Any, ...]


def _verdicts(
    cells: ibis.Table, sizes: Mapping[int, int], beside: Mapping[int, int]
) -> dict[int, FleetVerdict]:
    """By group; ``sizes``: how many cells each has; ``beside``: how many more may be of it, which failed
    before their probe told how they were driven."""
    import ibis

    asked = cells.filter(cells.deadline_ns.notnull() & cells.confidence.notnull())
    asked = asked.mutate(outcome=ibis.ifelse(asked.valid, asked.outcome, "error"))
    table = rows(asked.select("group", *_JUDGED, *_REQUIREMENT))
    numbers, *columns = (column.to_pylist() for column in table.columns)  # rows of a million cells take long
    requirements = zip(*(map(_none, column) for column in columns[len(_JUDGED) :]), strict=True)
    groups: dict[int, list[_Run]] = {}
    for number, *run in zip(numbers, *columns[: len(_JUDGED)], requirements, strict=True):
        groups.setdefault(number, []).append(_Run._make(run))
    return {
        number: _verdict(runs, sizes[number] - len(runs), beside.get(number, 0))
        for number, runs in groups.items()
    }


def _verdict(runs: list[_Run], unasked: int, beside: int) -> FleetVerdict:
    """By the requirement of these runs; of ``unasked`` cells of the group nothing was required;
    ``beside``: see _verdicts."""
    asked = {run.requirement for run in runs}
    rigs: dict[str, list[RunMisses]] = {}
    judged = sorted(filter(_judged, runs), key=lambda run: (run.rig, run.n, run.misses, run.design_effect))
    for run in judged:
        rigs.setdefault(run.rig, []).append(RunMisses(int(run.n), int(run.misses), float(run.design_effect)))
    if len(asked) != 1:
        every = [one for of_rig in rigs.values() for one in of_rig]
        n, misses = sum(one.n for one in every), int(sum(one.misses for one in every))
        return FleetVerdict("inconclusive", "several requirements", n, misses, None, None)
    deadline, ratio, confidence, criticality, horizon = asked.pop()
    requirement = Requirement(int(deadline), ratio, confidence, criticality, horizon)
    if not 0 < (confidence or 0) < 1 or not all(_can_be(one) for of_rig in rigs.values() for one in of_rig):
        remedy = "`rtmeter archive check` names them"
        raise RtmeterError("has cells with numbers that cannot be", field="archive", remedy=remedy)
    unjudged = beside + len(runs) - len(judged)
    return judge_fleet(rigs, requirement, sum(bool(run.refused) for run in runs), unjudged, unasked)


def _judged(run: _Run) -> bool:
    return bool(run.n) and run.outcome not in (None, "error") and None not in (run.misses, run.design_effect)


def _can_be(run: RunMisses) -> bool:
    """Whether the numbers are such as a verdict has."""
    return 0 <= run.misses <= run.n and 1 <= run.design_effect < math.inf


def _none(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value
