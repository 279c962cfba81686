"""What a campaign's repeats can show of its factors, before anything is run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rtmeter.model import Cell
from rtmeter.statistics.effects import confidences
from rtmeter.statistics.halving import RATIO, repeats_to_show
from rtmeter.statistics.quantiles import OVER_RUNS
from rtmeter.statistics.ranks import fewest, share_of
from rtmeter.values import without_repeat

CONFIDENCE = 0.95
"""With which the repeats are to show it, all of its comparisons together."""

SPREAD_OF_RUNS = 0.25
"""By how much runs of one cell are assumed to differ where none were seen, besides what counts of late
releases differ by: the standard deviation of the logarithm of a quantile, or of the odds of a miss."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How runs were seen to differ: ``apart`` by quantity the standard deviation of the logarithm of the
    quotient (of a miss ratio that of the odds) of two runs, and the miss ratio of all of them."""

    apart: Mapping[str, float]
    miss_ratio: float | None


@dataclass(frozen=True, slots=True)
class QuantityPlan:
    """``apart``: by how much two runs are taken to differ, as in Seen; ``needed``: how many runs of each cell
    it takes to show a halving of the quantity, or rule it out (None: more than can be told)."""

    quantity: str
    apart: float
    needed: int | None


@dataclass(frozen=True, slots=True)
class FactorPlan:
    """Whether the repeats of a campaign can show that a factor halves something, or rule it out: ``factor``,
    or those that always change ``together`` with it, which cannot be told apart; over ``matched`` cells that
    are alike in all other factors, with ``repeats`` runs each (the fewest of any). ``seen``: whether runs
    were seen to differ so, or it is assumed."""

    factor: str
    levels: int
    matched: int
    repeats: int
    quantities: tuple[QuantityPlan, ...]
    seen: bool = False
    together: tuple[str, ...] = ()

    @property
    def too_few(self) -> tuple[QuantityPlan, ...]:
        """The quantities of which they cannot."""
        return tuple(one for one in self.quantities if one.needed is None or one.needed > self.repeats)

    @property
    def enough(self) -> bool:
        """Whether they can of all."""
        return not self.too_few

    @property
    def needed(self) -> int | None:
        """How many runs of each cell it takes for all quantities; None if more than can be told."""
        each = [one.needed for one in self.quantities if one.needed is not None]
        return max(each) if len(each) == len(self.quantities) else None


def plan_factors(
    cells: Sequence[Cell],
    design_effect: float = 1.0,
    seen: Callable[[str], Seen | None] = lambda _: None,
) -> list[FactorPlan]:
    """What the campaign's repeats can show of each of its factors, late releases counted as n /
    ``design_effect``; empty if nothing varies. Cells whose kernel's events are recorded are left out, as
    they are of a comparison, where others are not. ``seen``: how runs that a factor tells apart differ."""
    found: dict[tuple[tuple[int, ...], ...], FactorPlan] = {}
    named: dict[tuple[str, str], list[Cell]] = {}
    for cell in [cell for cell in cells if not cell.conditions.get("explain")] or cells:
        kind = str(cell.config["measurement"])
        named.setdefault((kind, without_repeat(cell.id, cell.axes)), []).append(cell)
    names = dict.fromkeys(name for cell in cells for name in cell.factors)
    for name in names:
        having = [runs for runs in named.values() if name in runs[0].factors]
        told_apart = _parts(named.values(), name)
        levels = len(told_apart)
        if levels < 2:
            continue
        if one := found.get(told_apart):
            found[told_apart] = replace(one, together=(*one.together, name))
            continue
        matched = max(1, len(having) // levels)
        asked = all(runs[0].requirement for runs in having)
        compared = (len(OVER_RUNS) + asked) * (levels - 1)
        each, _ = confidences(CONFIDENCE, compared, matched - 1)
        known = seen(name)
        quantities = tuple(
            QuantityPlan(quantity, apart, repeats_to_show(apart, matched, each))
            for quantity, apart in _apart([runs[0] for runs in having], design_effect, known)
        )
        repeats = min(map(len, having))
        found[told_apart] = FactorPlan(name, levels, matched, repeats, quantities, known is not None)
    return list(found.values())


def _apart(cells: Sequence[Cell], design_effect: float, seen: Seen | None) -> Iterable[tuple[str, float]]:
    """Of each quantity that the shortest of the cells tells by how much two runs differ: as seen, or as
    assumed besides their counts; never by less than these do."""
    n = min(int(cell.config["samples"]) for cell in cells)
    ratios = [one.miss_ratio for cell in cells if (one := cell.requirement) and one.miss_ratio]
    if seen is not None:
        design_effect = 1.0  # what hangs together made runs differ
    counts = {f"p{percent}": _of_order(n, percent, design_effect) for percent in OVER_RUNS}
    counts = {name: apart for name, apart in counts.items() if n >= fewest(share_of(name[1:]))}
    missed = min(ratios) if len(ratios) == len(cells) else None
    if seen is not None and seen.miss_ratio is not None:
        missed = seen.miss_ratio
    if missed is not None:
        counts[RATIO] = math.sqrt(2 * design_effect / (missed * n + 0.5))
    for name, of_counts in counts.items():
        known = math.nan if seen is None else seen.apart.get(name, math.nan)
        assumed = math.hypot(math.sqrt(2) * SPREAD_OF_RUNS, of_counts)
        yield name, assumed if math.isnan(known) else max(known, of_counts)


def _of_order(n: int, percent: str, design_effect: float) -> float:
    """By how much two runs' quantiles differ by which of n releases are late alone: the standard deviation of
    the logarithm of their quotient, for an exponential tail."""
    late = float(1 - share_of(percent))
    return math.sqrt(2 * design_effect * (1 - late) / (n * late)) / -math.log(late)


def _parts(cells: Iterable[Sequence[Cell]], name: str) -> tuple[tuple[int, ...], ...]:
    """The cells, by number, of each level of a factor: the same of factors that always change together."""
    parts: dict[str, list[int]] = {}
    for number, runs in enumerate(cells):
        if name in runs[0].factors:
            parts.setdefault(str(runs[0].factors[name]), []).append(number)
    return tuple(map(tuple, parts.values()))
