"""The factors of a campaign: what tells its cells apart, whether as an axis, a variant or a named cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
        names = [*_labels(alike), *_varying(alike)]
        for one in alike:
            found[one.cell.id] = {name: as_json(_level(one, name)) for name in names}
    return [found[one.cell.id] for one in cells]


def _labels(cells: Sequence[Chosen]) -> Iterator[str]:
    for label in LABELS:
        if len({one.facts.get(label) for one in cells}) > 1:
            yield label


def _varying(cells: Sequence[Chosen]) -> Iterator[str]:
    """Options that differ, in the order in which the campaign has them."""
    names = dict.fromkeys(name for one in cells for name in _ordered(one))
    for name in names:
        axis = any(name in one.cell.axes for one in cells)
        shown = axis or name not in _NO_FACTORS
        levels = {str(_level(one, name)) for one in cells}
        if shown and name not in (*LABELS, "repeat") and len(levels) > 1:
            yield name


def _ordered(one: Chosen) -> Iterable[str]:
    return [*one.cell.axes, *(name for name in one.given if name not in one.cell.axes)]


def _level(one: Chosen, name: str) -> Any:
    """As the campaign writes it; where it does not say it, the default."""
    given = one.given.get(name)
    if given is not None:
        return given
    fact = one.facts.get(name)
    return fact if fact is None or isinstance(fact, bool | int | float | str) else str(fact)
