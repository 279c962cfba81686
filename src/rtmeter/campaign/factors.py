"""The factors of a campaign: what tells its cells apart, whether as an axis, a variant or a named cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rtmeter.campaign.matrix import REQUIREMENT
from rtmeter.model import Cell
from rtmeter.values import as_json

LABELS = ("block", "variant")
"""The factors that name a cell as a whole: what a named block or a variant sets may be several options."""

_NO_FACTORS = {*REQUIREMENT, "samples", "duration", "warm_up", "keep_log", "strict", "monitor", "measurement"}
_NO_FACTORS |= {"script", "explain"}
"""Options that say how long and how well it is looked at, and what the null adapter pretends: factors only as
axes."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A cell with the options that made it, as the campaign writes them, and the facts of it that ``only``
    goes by, defaults included."""

    cell: Cell
    given: dict[str, Any]
    facts: dict[str, Any]


def factors(cells: Sequence[Chosen]) -> list[dict[str, Any]]:
    """Of each cell its level of every factor: its block and variant, where these tell cells of its
    measurement apart, its axes, and each option that differs between cells of its measurement."""
    found: dict[str, dict[str, Any]] = {}
    kinds = sorted(cells, key=lambda one: str(one.cell.config["measurement"]))
    for _, group in groupby(kinds, key=lambda one: one.cell.config["measurement"]):
        alike = list(group)
        levels = {name: _levels(alike, name) for name in (*LABELS, *_names(alike))}
        names = [*_labels(alike), *_varying(alike, levels)]
        for one in alike:
            found[one.cell.id] = {name: as_json(levels[name][one.cell.id]) for name in names}
    return [found[one.cell.id] for one in cells]


def _labels(cells: Sequence[Chosen]) -> Iterator[str]:
    for label in LABELS:
        if len({one.facts.get(label) for one in cells}) > 1:
            yield label


def _varying(cells: Sequence[Chosen], levels_of: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Options that differ, in the order in which the campaign has them."""
    for name in _names(cells):
        axis = any(name in one.cell.axes for one in cells)
        shown = axis or name not in _NO_FACTORS
        levels = {str(level) for level in levels_of[name].values()}
        if shown and name not in (*LABELS, "repeat") and len(levels) > 1:
            yield name


def _names(cells: Sequence[Chosen]) -> Iterable[str]:
    return dict.fromkeys(name for one in cells for name in _ordered(one))


def _ordered(one: Chosen) -> Iterable[str]:
    return [*one.cell.axes, *(name for name in one.given if name not in one.cell.axes)]


def _levels(cells: Sequence[Chosen], name: str) -> dict[str, Any]:
    """Cell id → its level, as the campaign writes it; where it writes one value in two ways, or leaves it to
    the default, as it writes it first."""
    written: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for one in cells:
        given, fact = one.given.get(name), one.facts.get(name)
        if given is not None:
            found[one.cell.id] = written.setdefault(str(given if fact is None else fact), given)
    for one in cells:
        fact = one.facts.get(name)
        plain = fact if fact is None or isinstance(fact, bool | int | float | str) else str(fact)
        found.setdefault(one.cell.id, plain if fact is None else written.get(str(fact), plain))
    return found
