"""Cells as they lie on the disk → conditions: the repeats of a cell as one entry, with one verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rtmeter.judge.joint import judge_condition
from rtmeter.results.condition_words import told_once
from rtmeter.results.overview import CellEntry, State

_DECIDES: tuple[State, ...] = (
    "damaged",
    "failed",
    "running",
    "not run",
    "skipped",
    "interrupted",
    "complete",
)
"""Of the states of the repeats the first one here is that of all."""


def by_condition(cells: Sequence[CellEntry]) -> list[CellEntry]:
    """An entry for each condition, in the order of their first cell; of one with a single cell, that cell.
    Cells that happen to have one name, as those that were measured one by one, are no repeats."""
    groups: dict[tuple[Path, str], list[CellEntry]] = {}
    named = {(cell.folder.parent, cell.record.name) for cell in cells if cell.record and _repeated(cell)}
    for cell in cells:
        key = cell.folder.parent, _name(cell, named)
        groups.setdefault(key if key in named else (cell.folder, key[1]), []).append(cell)
    return [entry for (_, name), repeats in groups.items() for entry in _of(name, repeats)]


def _repeated(cell: CellEntry) -> bool:
    return cell.record is not None and cell.record.is_repeat


def _name(cell: CellEntry, named: set[tuple[Path, str]]) -> str:
    """Of a cell without a record by its folder, if that is a repeat of one that has."""
    if cell.record is not None:
        return cell.record.name
    folder = cell.folder.name.removesuffix(".partial")
    name = re.sub(r"-r\d+$", "", folder)
    return name if (cell.folder.parent, name) in named else folder


def _of(name: str, repeats: list[CellEntry]) -> Iterator[CellEntry]:
    asked = {cell.record.requirement for cell in repeats if cell.record}
    if len(repeats) == 1 or len(asked) > 1:
        yield from repeats
        return
    first = min(repeats, key=lambda cell: _DECIDES.index(cell.state))
    judged = [cell for cell in repeats if cell.record is not None]
    verdicts = [(cell.record, cell.record.verdict) for cell in judged if cell.record and cell.record.verdict]
    base = next((cell.record for cell in repeats if cell.record and not cell.record.valid), first.record)
    record = None
    if base is not None:
        verdict = judge_condition(*zip(*verdicts, strict=True)) if verdicts else None
        axes = {axis: value for axis, value in base.axes.items() if axis != "repeat"}
        named = ((one.id, doubt) for one in judged if one.record for doubt in one.record.warnings)
        doubts = [doubt for doubt, _ in told_once(named)]
        record = base.changed(id=name, axes=axes, verdict=verdict, warnings=doubts)
    problem = first.problem and f"{first.id}: {first.problem}"
    damage = next((cell.damage for cell in repeats if cell.damage), None)
    shown = re.sub(r"-r\d+$", "", first.id)
    yield replace(
        first,
        id=shown,
        record=record,
        problem=problem,
        damage=damage,
        place=min(cell.place for cell in repeats),
        repeats=tuple(sorted(repeats, key=lambda cell: (cell.record.repeat if cell.record else 0, cell.id))),
    )
