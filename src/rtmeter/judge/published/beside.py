"""Published values and what was measured, side by side, in the tables of the source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rtmeter.campaign.published.tables import PublishedTable, table
from rtmeter.campaign.published_key import GROWTH
from rtmeter.judge.published.held import Held, Unmet, held_here, preempt_rt, unmet
from rtmeter.results.record import CellRecord, Statistics
from rtmeter.results.record.published import PublishedRows
from rtmeter.values import format_duration

_COUNT = "count "


@dataclass(frozen=True, slots=True)
class MeasuredTime:
    """A measured time, nanoseconds, or ``lost``, and which statistic of the quantity it is."""

    ns: float | str
    statistic: str


Value = MeasuredTime | int | str | None
"""A measured time or count; text as it was published, or in words; None where there is none."""


@dataclass(frozen=True, slots=True)
class TableLine:
    """One line of a table: of a published row (``cell`` is None) or of a ``quantity`` of a cell, by column.

    ``view``: as_served or per_release; ``state``: why a cell has no values; ``unmet``: which conditions of
    the source did not hold for it.
    """

    who: str
    values: Mapping[str, Value]
    cell: str | None = None
    quantity: str | None = None
    view: str | None = None
    meta: Mapping[str, Any] | None = None
    n: int | None = None
    state: str | None = None
    unmet: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedEntry:
    """Published rows and the cells that stand beside them; ``labels``: column → value that they share."""

    labels: Mapping[str, str]
    lines: tuple[TableLine, ...]


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table of the source: what its entries share, the columns of values, and what to know of it.

    ``not_comparable``: column → why its published values say nothing here.
    """

    labels: Mapping[str, str]
    columns: tuple[str, ...]
    entries: tuple[PublishedEntry, ...]
    not_comparable: Mapping[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Beside:
    """A published table beside the cells: its parts, what its source concluded, which of its conditions did
    not hold here, those that held everywhere (condition, how it was), and the cells that it has nothing
    for."""

    table: PublishedTable
    parts: tuple[SourceTable, ...]
    notes: tuple[str, ...]
    unmet: tuple[Unmet, ...]
    held: tuple[tuple[str, str], ...]
    without: tuple[str, ...]


def beside(cells: Iterable[tuple[str, CellRecord]]) -> list[Beside]:
    """Every published table that cells (name, cell.json) are to be set beside, those in running order."""
    asked = [(name, record) for name, record in cells if record.published is not None]
    tables: dict[str, list[_Matched]] = {}
    for name, record in asked:
        for match in record.published or ():
            tables.setdefault(match["table"], []).append(_Matched(name, record, match))
    placed = {one.cell for matched in tables.values() for one in matched if one.rows}
    without = tuple(name for name, _ in asked if name not in placed)
    return [_beside(table(name), matched, without) for name, matched in tables.items()]


class _Matched:
    """A cell and one comparison that it is in: the numbers of its published rows."""

    def __init__(self, cell: str, record: CellRecord, match: PublishedRows) -> None:
        self.cell, self.record, self.match = cell, record, match
        self.table = table(match["table"])
        where = {column: list(values) for column, values in match["where"].items()}
        kernel, is_rt = match.get("kernel"), preempt_rt(record)
        if kernel and is_rt is not None:
            where[kernel["column"]] = [kernel["preempt_rt" if is_rt else "ordinary"]]
        self.where = where
        self.rows = tuple(
            number
            for number, row in enumerate(self.table.rows)
            if all(row[column] in values for column, values in where.items())
        )

    def conditions(self) -> Iterator[tuple[Mapping[str, Any], Held]]:
        """Those of its rows, and whether they held."""
        if not self.record.summary:
            return
        for asked in self.match["conditions"]:
            where = asked.get("where", {})
            rows = (self.table.rows[number] for number in self.rows)
            if any(all(row[column] == value for column, value in where.items()) for row in rows):
                yield asked, held_here(self.record, asked)


def _beside(published: PublishedTable, matched: list[_Matched], without: tuple[str, ...]) -> Beside:
    groups: dict[tuple[int, ...], list[_Matched]] = {}
    for one in matched:
        if one.rows:
            groups.setdefault(one.rows, []).append(one)
    parts: dict[tuple[tuple[str, str], ...], list[tuple[int, ...]]] = {}
    for rows in sorted(groups):
        shared = ((c, {published.rows[row][c] for row in rows}) for c in groups[rows][0].match["tables"])
        of = {
            column: values.pop() for column, values in shared if len(values) == 1
        }  # a kernel not known: two
        parts.setdefault(tuple(of.items()), []).append(rows)
    by_cell: dict[str, list[tuple[Mapping[str, Any], Held]]] = {}
    for one in matched:
        by_cell.setdefault(one.cell, []).extend(one.conditions())
    missed = unmet({cell: iter(conditions) for cell, conditions in by_cell.items()})
    named = {(str(a["condition"]), str(a["was"])) for one in by_cell.values() for a, _ in one}
    return Beside(
        published,
        tuple(_part(published, dict(labels), [groups[rows] for rows in of]) for labels, of in parts.items()),
        tuple(dict.fromkeys(note for one in matched for note in one.match["notes"])),
        tuple(missed),
        tuple(sorted(named - {(one.condition, one.was) for one in missed})),
        without,
    )


def _part(published: PublishedTable, labels: dict[str, str], groups: list[list[_Matched]]) -> SourceTable:
    matches = [one.match for group in groups for one in group]
    columns = dict.fromkeys(column for match in matches for column in match["values"])
    why = {c: text for match in matches for c, text in match["not_comparable"].items()}
    notes = dict.fromkeys(match["note"] for match in matches if match.get("note"))
    entries = tuple(_entry(published, labels, tuple(columns), group) for group in groups)
    return SourceTable(labels, tuple(columns), entries, why, tuple(notes))


def _entry(
    published: PublishedTable, shared: Mapping[str, str], columns: tuple[str, ...], group: list[_Matched]
) -> PublishedEntry:
    rows = [published.rows[number] for number in group[0].rows]
    own = {c: rows[0][c] for c in group[0].where if c not in shared and len({row[c] for row in rows}) == 1}
    rest = [c for c in published.columns if c not in shared and c not in own and c not in columns]
    lines = [_published_line(row, rest, columns) for row in rows]
    lines += [line for one in group for line in _measured_lines(one, columns)]
    return PublishedEntry({c: value for c, value in own.items() if value}, tuple(lines))


def _published_line(row: Mapping[str, str], rest: list[str], columns: tuple[str, ...]) -> TableLine:
    who = ", ".join(
        f"{label(c)} {row[c]}" if _is_number(row[c]) or has_unit(c) else row[c] for c in rest if row[c]
    )
    return TableLine(who, {column: row[column] or None for column in columns})


def _measured_lines(one: _Matched, columns: tuple[str, ...]) -> Iterator[TableLine]:
    record, values = one.record, one.match["values"]
    if not record.summary:
        error = record.error.model_dump() if record.error else {"message": "nothing was measured"}
        about = " ".join(str(error[key]) for key in ("field", "value") if error.get(key))
        why = ": ".join(part for part in (record.status, about, error["message"]) if part)
        yield TableLine(record.adapter, {}, one.cell, state=why)
        return
    broken = tuple(dict.fromkeys(a["condition"] for a, (_, holds) in one.conditions() if not holds))
    state = None if record.status == "complete" and record.valid else record.status
    quantities = {t.partition(" ")[0] for t in values.values() if t != GROWTH and not _counts(t)}
    own = quantities.pop() if len(quantities) == 1 else None
    for number, quantity in enumerate([own, *one.match["also"]]):
        served = _as_served(record, quantity)
        view = "as_served" if served else None
        said = {c: _value(record, values.get(c), quantity if number else None) for c in columns}
        if number and not view:
            continue
        yield TableLine(
            record.adapter,
            said,
            one.cell,
            quantity,
            view,
            {
                "measurement": record.measurement,
                "mode": record.mode,
                "t0_from": record.grid.get("t0_from"),
            },
            served.n if served else None,
            state,
            broken if not number else (),
        )


def _value(record: CellRecord, text: str | None, instead: str | None) -> Value:
    """What stands in the place of ``text``; of the quantity ``instead``, where one is given."""
    if text is None:
        return None
    if text == GROWTH:
        return _growth(record) if instead is None else None
    if _counts(text):
        counts = record.summary.counts if record.summary else {}
        names = text.removeprefix(_COUNT).split(" + ")
        there = instead is None and all(name in counts for name in names)
        return sum(int(counts[name]) for name in names) if there else None
    quantity, _, statistic = text.partition(" ")
    served = _as_served(record, instead or quantity)
    if statistic == "n" or served is None:
        return served.n if served else None
    ns = getattr(served.shown, f"{statistic.replace('.', '_')}_ns")
    return None if ns is None else MeasuredTime(ns, statistic)


def _as_served(record: CellRecord, quantity: str | None) -> Statistics | None:
    views = record.summary.quantities.get(quantity or "") if record.summary else None
    return views.as_served if views else None


def _counts(text: str) -> bool:
    return text.startswith(_COUNT)


def _growth(record: CellRecord) -> str | None:
    support = record.verdict.support if record.verdict else None
    if support is None:
        return None
    causes = f" ({', '.join(support.causes)})" if support.causes else ""
    total = support.accumulated_ns
    came = f", {format_duration(round(total))} in all" if total is not None else ""
    return f"{support.growth}{causes}{came}"


def label(column: str) -> str:
    """A column in words, its unit in brackets: ``timeout_ms`` → ``timeout (ms)``."""
    units = {"_us": "us", "_ms": "ms", "_s": "s", "_mbps": "Mbit/s", "_percent": "%", "_bytes": "B"}
    unit = next((unit for unit in units if column.endswith(unit)), None)
    if unit is None:
        return column.replace("_", " ")
    return f"{column.removesuffix(unit).replace('_', ' ')} ({units[unit]})"


def has_unit(column: str) -> bool:
    """Whether the column's label says the unit of its times."""
    return label(column).endswith(")")


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None
