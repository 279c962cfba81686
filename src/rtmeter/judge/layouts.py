"""The levels of cells → the factors that tell them apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rtmeter.campaign.factors import LABELS
from rtmeter.results import words
from rtmeter.results.record import CellRecord

FactorLevels = Mapping[str, str]
"""A cell's level of each factor, in words."""


def factors_of(record: CellRecord) -> dict[str, str]:
    """A cell's levels; of what was stored without them, its axes."""
    return _in_words(record.factors or record.layout)


def layout_of(record: CellRecord) -> dict[str, str]:
    """A cell's levels, with its axes and its adapter, also where these are those of all."""
    return _in_words(record.layout)


def _in_words(levels: Mapping[str, object]) -> dict[str, str]:
    return {
        name: words.setting(name, value) or words.NONE for name, value in levels.items() if name != "repeat"
    }


def varying(layouts: Sequence[FactorLevels]) -> list[str]:
    """The factors of which there are several levels."""
    names = dict.fromkeys(name for found in layouts for name in found)
    return [name for name in names if len({found.get(name) for found in layouts}) > 1]


def told_apart(layouts: Sequence[FactorLevels]) -> list[str]:
    """The factors in which cells differ; of those whose levels change together the first. What names a cell
    as a whole is none where the others spell it out."""
    kept = list(unlike(layouts, varying(layouts)))
    for label in LABELS:
        if label in kept and spelled_out(layouts, label, kept):
            kept.remove(label)
    return kept


def spelled_out(layouts: Sequence[FactorLevels], label: str, factors: Sequence[str]) -> bool:
    """Whether the other ``factors`` have another level wherever the label has, and lead from any cell to any
    other in steps in which one of them changes: then the effects of all of them are those of the label."""
    others = [name for name in factors if name != label]
    named = {tuple(found.get(name) for name in others): found.get(label) for found in layouts}
    if any(named[tuple(found.get(name) for name in others)] != found.get(label) for found in layouts):
        return False
    to_come, reached = set(named), [next(iter(named))]
    for place in reached:
        near = {one for one in to_come if sum(a != b for a, b in zip(place, one, strict=True)) <= 1}
        to_come -= near
        reached += near - {place}
    return not to_come


def unlike(layouts: Sequence[FactorLevels], names: Sequence[str]) -> Iterator[str]:
    """Of factors whose levels change together one: the first."""
    kept: list[str] = []
    for name in names:
        alike = (one for one in kept if determined(layouts, one, name) and determined(layouts, name, one))
        if next(alike, None) is None:
            kept.append(name)
            yield name


def determined(layouts: Sequence[FactorLevels], by: str, name: str) -> bool:
    """Whether each level of one factor has one level of another only."""
    seen: dict[str | None, str | None] = {}
    return all(seen.setdefault(found.get(by), found.get(name)) == found.get(name) for found in layouts)
