"""Which cells a factor is told by: those that are alike in all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rtmeter.campaign.factors import LABELS
from rtmeter.judge.layouts import FactorLevels, determined, factors_of, unlike, varying
from rtmeter.judge.pairs import Pairing, Repeats, pairing
from rtmeter.results import words
from rtmeter.results.cells import StoredCell, by_name
from rtmeter.results.record import CellRecord


@dataclass(frozen=True, slots=True)
class Matching:
    """Cells by a factor: the repeats of each, its level of every factor, its level of this one, in the order
    in which they were measured; ``others``: the factors it is matched over; ``besides``: all that may change
    with it; ``alike``: the cells of each combination of levels of the others; ``left_out``: those that are
    compared with none, and why."""

    repeats: Mapping[str, Repeats]
    factors: Mapping[str, FactorLevels]
    levels: Mapping[str, str]
    others: tuple[str, ...]
    besides: tuple[str, ...]
    alike: tuple[tuple[tuple[str, ...], Sequence[str]], ...]
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, cells: Sequence[StoredCell], factor: str) -> Self:
        untraced = [cell for cell in cells if not cell.record.events_recorded]
        traced = [cell for cell in cells if cell.record.events_recorded] if untraced else []
        named = by_name(untraced or cells)
        records = {name: next(iter(repeats.values())).record for name, repeats in named.items()}
        layouts = {name: factors_of(record) for name, record in records.items()}
        layouts = _with_setting(layouts, records, factor)
        having = [name for name, found in layouts.items() if factor in found]
        order = sorted(having, key=lambda name: str(records[name].started or ""))
        axes = {axis for record in records.values() for axis in record.axes}
        besides = _besides(layouts, factor, axes)
        others = _matched_over([layouts[name] for name in having], factor, besides)
        alike: dict[tuple[Any, ...], list[str]] = {}
        for name in order:
            record, about = records[name], tuple(layouts[name].get(other, words.NONE) for other in others)
            alike.setdefault((record.measurement, record.mode, *about), []).append(name)
        groups = tuple((key[2:], names) for key, names in alike.items())
        levels = {name: layouts[name][factor] for name in order}
        return cls(named, layouts, levels, others, besides, groups, _left_out(traced))

    @property
    def levels_in_turn(self) -> list[str]:
        """The levels in the order in which they were measured, first those of which a run can be compared."""
        measured = [name for name in self.levels if self.usable(name)]
        return list(dict.fromkeys(self.levels[name] for name in (*measured, *self.levels)))

    def usable(self, name: str) -> list[StoredCell]:
        """The repeats of a cell that can be compared."""
        return [cell for cell in self.repeats[name].values() if cell.record.usable]

    @property
    def varying(self) -> list[str]:
        """The factors in which the cells differ."""
        return varying(list(self.factors.values()))

    def changing(self, a: str, b: str) -> list[str]:
        """What changes with the factor between two cells that are compared, but for their names."""
        a_has, b_has = self.factors[a], self.factors[b]
        return [name for name in self.besides if name not in LABELS and a_has.get(name) != b_has.get(name)]

    def pairing(self, a: str, b: str) -> Pairing:
        """The repeats of two cells."""
        return pairing(a, self.repeats[a], b, self.repeats[b])


def _left_out(traced: Sequence[StoredCell]) -> tuple[str, ...]:
    """Cells whose kernel's events were recorded, beside those whose were not."""
    names = ", ".join(by_name(traced))
    return (f"{names}: the kernel's events were recorded, which takes time",) if names else ()


def _with_setting(
    layouts: Mapping[str, dict[str, str]], records: Mapping[str, CellRecord], factor: str
) -> dict[str, dict[str, str]]:
    """With a setting of the config as a factor, where no cell has one of that name."""
    if any(factor in found for found in layouts.values()):
        return dict(layouts)
    settings = {name: record.config.get(factor) for name, record in records.items()}
    return {
        name: found | ({factor: words.setting(factor, settings[name])} if settings[name] is not None else {})
        for name, found in layouts.items()
    }


def _besides(layouts: Mapping[str, FactorLevels], factor: str, axes: set[str]) -> tuple[str, ...]:
    """The other factors. What names a cell as a whole stands for the options that it sets, and these do for
    it."""
    names = dict.fromkeys(name for found in layouts.values() for name in found if name != factor)
    if factor in LABELS:
        return tuple(name for name in names if name in axes or name in LABELS)
    return tuple(name for name in names if factor in axes or name not in LABELS)


def _matched_over(having: Sequence[FactorLevels], factor: str, besides: Sequence[str]) -> tuple[str, ...]:
    """The factors that matched cells are alike in, of cells that have the factor: those that do not change
    with it."""
    return tuple(unlike(having, [name for name in besides if not determined(having, factor, name)]))
