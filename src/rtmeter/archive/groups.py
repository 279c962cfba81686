"""Groups of cells, merged: the distribution of all their samples in one heap, exact maxima, one verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from rtmeter.statistics.views import LATER
from rtmeter.values import utc

if TYPE_CHECKING:
    import ibis
    from ibis.backends import BaseBackend

LABEL = "label:"
PERCENTS = ("50", "99", "99.9", "99.999")
"""The quantiles of a group that are shown."""

_REQUIREMENT = ("deadline_ns", "miss_ratio", "confidence", "criticality", "horizon")
_JUDGED = ("rig", "n", "misses", "design_effect", "refused", "outcome")


@dataclass(frozen=True)
class GroupsAsked:
    """``by``: columns of cells, or ``label:NAME``; ``where``: their values; cells measured in between."""

    by: Sequence[str] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class ArchiveGroup:
    """``without``: cells that have no distribution; ``maximum``: value, rig, release and cell of the latest
    one, None if none is known; its value and release are None where one of the cell's was lost, which is
    later than all; ``verdict``: None where no cell has a requirement; inconclusive where they differ."""

    key: tuple[str | None, ...]
    cells: int
    rigs: int
    without: int
    distribution: Binned
    maximum: tuple[int | None, str, int | None, str] | None
    verdict: FleetVerdict | None


def between(edges: tuple[int, int] | str | None) -> str:
    """The edges of a quantile's bin in us."""
    if edges is None or isinstance(edges, str):
        return edges or "-"
    return f"{edges[0] / 1000:,.1f}–{edges[1] / 1000:,.1f}"


def merged(backend: BaseBackend, asked: GroupsAsked) -> list[ArchiveGroup]:
    """The groups, in the order of their keys; the same from every engine, to the last count."""
    names = _names(asked)
    needed = dict.fromkeys((*names, "cell", "batch", "bins", "max_ns", "max_at_k", *_JUDGED, *_REQUIREMENT))
    cells = found_once(backend, chosen(backend, asked).select(*needed))
    parts = _within(backend.table(as_written(DISTRIBUTIONS)), asked)  # no bins of other times are read
    parts = parts.join(cells.select("cell", "batch", *names), ["cell", "batch"])
    counted = cells.group_by(names).aggregate(
        cells=cells.count(), rigs=cells.rig.nunique(), without=cells.bins.isnull().sum()
    )
    single = parts.select(*names, counts=parts.counts.unnest())
    bins = single.select(*names, bin=single.counts["bin"], times=single.counts["count"])
    sums = bins.group_by([*names, "bin"]).aggregate(times=bins.times.sum().cast("int64"))
    lost = parts.group_by(names).aggregate(lost=parts.lost.sum().cast("int64"))
    distributions = _distributions(_table(sums), _table(lost), names)
    latest = {_key(row, names): row for row in _table(_latest(cells, names)).to_pylist()}
    verdicts = _verdicts(cells, names)
    empty = Binned(np.empty(0, np.int64), np.empty(0, np.int64), 0)
    found = []
    for row in _table(counted).to_pylist():
        key = _key(row, names)
        top = latest.get(key)
        maximum = _maximum(top) if top else None
        counts = (int(row["cells"]), int(row["rigs"]), int(row["without"] or 0))
        found.append(ArchiveGroup(key, *counts, distributions.get(key, empty), maximum, verdicts.get(key)))
    return sorted(found, key=lambda group: tuple(value or "" for value in group.key))


def chosen(backend: BaseBackend, asked: GroupsAsked) -> ibis.Table:
    """The valid cells that are asked for, with the columns g0, g1, … of their group."""
    cells = backend.table(CELLS)
    cells = cells.filter(cells.valid)
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


def _latest(cells: ibis.Table, names: Sequence[str]) -> ibis.Table:
    """The latest release of each group's distribution, LATER if one was lost; of several equal ones that of
    the first cell."""
    import ibis

    known = cells.filter(cells.bins.notnull() & (cells.n > 0))
    known = known.mutate(latest=known.max_ns.fill_null(LATER), k=known.max_at_k.fill_null(-1))
    order = ibis.window(group_by=names, order_by=[known.latest.desc(), known.cell])
    ranked = known.mutate(place=ibis.row_number().over(order))
    return ranked.filter(ranked.place == 0).select(*names, "latest", "rig", "k", "cell")


def _maximum(row: Mapping[str, Any]) -> tuple[int | None, str, int | None, str]:
    value, k = int(row["latest"]), int(row["k"])
    return (None, row["rig"], None, row["cell"]) if value == LATER else (value, row["rig"], k, row["cell"])


def _table(expression: ibis.Table) -> Any:
    return rows(expression)


def _key(row: Mapping[str, Any], names: Sequence[str]) -> tuple[str | None, ...]:
    return tuple(_key_text(row[name]) for name in names)


def _distributions(sums: Any, lost: Any, names: Sequence[str]) -> dict[tuple[str | None, ...], Binned]:
    gone = {_key(row, names): int(row["lost"]) for row in lost.to_pylist()}
    counts: dict[tuple[str | None, ...], list[tuple[int, int]]] = {key: [] for key in gone}
    for row in sums.to_pylist():
        counts[_key(row, names)].append((row["bin"], row["times"]))
    found = {}
    for key, pairs in counts.items():
        ordered = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
        found[key] = Binned(ordered[:, 0].copy(), ordered[:, 1].copy(), gone[key])
    return found


class _Run(NamedTuple):
    """Of a cell, what verdicts over rigs need."""

    rig: str
    n: int | None
    misses: int
    design_effect: float
    refused: str | None
    outcome: str
    requirement: tuple[Any, ...]


def _verdicts(cells: ibis.Table, names: Sequence[str]) -> dict[tuple[str | None, ...], FleetVerdict]:
    judged = cells.filter(cells.outcome.notnull()).select(*names, *_JUDGED, *_REQUIREMENT)
    columns = [column.to_pylist() for column in _table(judged).columns]  # rows of a million cells take long
    keys, first = zip(*columns[: len(names)], strict=True), len(names) + len(_JUDGED)
    asked = zip(*(map(_none, column) for column in columns[first:]), strict=True)
    groups: dict[tuple[str | None, ...], list[_Run]] = {}
    for key, *run in zip(keys, *columns[len(names) : first], asked, strict=True):
        groups.setdefault(tuple(map(_key_text, key)), []).append(_Run._make(run))
    return {key: verdict for key, runs in groups.items() if (verdict := _verdict(runs)) is not None}


def _verdict(runs: list[_Run]) -> FleetVerdict | None:
    asked = {run.requirement for run in runs}
    if all(deadline is None or confidence is None for deadline, _, confidence, *_ in asked):
        return None
    if len(asked) != 1:
        counts = list(_counts(runs))
        n, misses = sum(count[1] for count in counts), sum(count[2] for count in counts)
        return FleetVerdict("inconclusive", "several requirements", n, misses, None, None)
    deadline, ratio, confidence, criticality, horizon = asked.pop()
    requirement = Requirement(int(deadline), ratio, confidence, criticality, horizon)
    rigs: dict[str, list[RunMisses]] = {}
    for run in sorted(_counts(runs)):
        rigs.setdefault(run[0], []).append(RunMisses(*run[1:]))
    unjudged = sum(run.outcome == "error" or not run.n for run in runs)
    return judge_fleet(rigs, requirement, sum(bool(run.refused) for run in runs), unjudged)


def _counts(runs: list[_Run]) -> Iterator[tuple[str, int, int, float]]:
    for run in runs:
        if run.n and run.outcome != "error":
            yield run.rig, int(run.n), int(run.misses), float(run.design_effect)


def _none(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value
