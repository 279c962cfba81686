"""Cells as they come → a row for each condition: the repeats of a cell together, with one verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rtmeter.model import GateFinding, Requirement, Verdict
from rtmeter.results.record import CellRecord, Statistics
from rtmeter.results.record.summary import of_all_runs
from rtmeter.statistics.quantities import judged_quantity


@dataclass(slots=True)
class ConditionRow:
    """What a table says of a cell, or of a condition; ``state`` stands in the place of an outcome that there
    is none of. ``repeats``: the rows of its cells, where there are several."""

    name: str
    quantity: str
    n: int
    values: Statistics | None
    verdict: Verdict | None
    state: str
    repeats: list[ConditionRow] = field(default_factory=list)


@dataclass(slots=True)
class _Group:
    first: CellRecord
    rows: list[ConditionRow]
    unlike: tuple[GateFinding, ...]
    asked: set[Requirement | None]


class ConditionRows:
    """Takes cells one after the other; of each record only what is said stays, of a condition its first."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}

    def add(self, record: CellRecord, name: str) -> None:
        row = _row(record, name)
        repeat = f"-r{record.repeat}"
        key = name.removesuffix(repeat) if "repeat" in record.axes else name
        group = self._groups.setdefault(key, _Group(record, [], (), set()))
        group.rows.append(row)
        group.asked.add(record.requirement)
        if len(group.rows) > 1 and record.effective != group.first.effective and not group.unlike:
            from rtmeter.judge.joint import unlike

            group.unlike = tuple(unlike([group.first, record]))

    def __iter__(self) -> Iterator[ConditionRow]:
        for name, group in self._groups.items():
            if len(group.rows) > 1 and len(group.asked) == 1:
                yield _condition(name, group)
            else:
                yield from group.rows


def _condition(name: str, group: _Group) -> ConditionRow:
    rows = group.rows
    verdicts = [(row.name, row.verdict) for row in rows if row.verdict is not None]
    verdict = None
    if verdicts:
        from rtmeter.judge.joint import judge_joint  # it brings SciPy's functions

        verdict = judge_joint(verdicts, group.unlike)
    together = of_all_runs([row.values for row in rows if row.values is not None])
    state = next((row.state for row in rows if row.state != "complete"), "complete")
    return ConditionRow(name, rows[0].quantity, sum(row.n for row in rows), together, verdict, state, rows)


def _row(record: CellRecord, name: str) -> ConditionRow:
    quantity, values = judged_quantity(record.meta).name, record.judged
    ended = record.valid or record.status in ("failed", "skipped")
    state = record.status if ended else "invalid"
    return ConditionRow(name, quantity, values.n if values else 0, values, record.verdict, state)
