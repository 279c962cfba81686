"""How the runs of a pilot differ, as a plan assumes that those of its campaign will."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rtmeter.campaign.plan import CellPlan
from rtmeter.campaign.plan_factors import FactorPlan, Seen, plan_factors
from rtmeter.errors import RtmeterError
from rtmeter.judge.compared import estimates_of
from rtmeter.judge.factors import FactorOptions, Known, factor_effects
from rtmeter.model import Cell
from rtmeter.results import store
from rtmeter.results.cells import by_name, find_cells
from rtmeter.statistics.effects import runs_apart
from rtmeter.statistics.estimates import Estimates
from rtmeter.statistics.halving import RATIO
from rtmeter.statistics.quantiles import OVER_RUNS


class Pilot:
    """The cells under a path, read once; their misses are those of ``deadline_ns`` (None: not counted)."""

    def __init__(self, path: Path, deadline_ns: int | None) -> None:
        self._cells = [cell for cell in find_cells(path) if cell.record.usable]
        self._deadline_ns = deadline_ns
        self._known: dict[str, Estimates] = {
            str(cell.folder): estimates_of(cell, deadline_ns, 0.95, OVER_RUNS, store.chunks)[0]
            for cell in self._cells
        }
        ratios = [one.quantities[RATIO].value for one in self._known.values() if RATIO in one.quantities]
        self._miss_ratio = sum(ratios) / len(ratios) if ratios else None

    def seen(self, factor: str) -> Seen | None:
        """Of the pairs that ``compare --factor`` would make of it; where it has no such factor, of the
        repeats of its cells; None without repeats."""
        apart = self._of_pairs(factor) or self._of_repeats()
        return Seen(apart, self._miss_ratio) if apart else None

    def _of_pairs(self, factor: str) -> dict[str, float]:
        options = FactorOptions(factor, deadline_ns=self._deadline_ns)
        found: dict[str, float] = {}
        known: Known = {folder: (one, ()) for folder, one in self._known.items()}
        with suppress(RtmeterError):
            for level in factor_effects(self._cells, options, known=known).levels:
                for one in level.effects:
                    if not math.isnan(one.apart):
                        found[one.quantity] = max(one.apart, found.get(one.quantity, 0.0))
        return found

    def _of_repeats(self) -> dict[str, float]:
        named = by_name(self._cells).values()
        cells = [[self._known[str(cell.folder)] for cell in repeats.values()] for repeats in named]
        quantities = next((one.quantities for one in self._known.values()), {})
        found = {name: runs_apart(name, cells) for name in quantities}
        return {name: apart for name, apart in found.items() if not math.isnan(apart)}


def factor_plans(cells: Sequence[Cell], plans: Sequence[CellPlan], like: Path | None) -> list[FactorPlan]:
    """What the planned cells' repeats show of each factor, with the dependence that their plans assume, and
    the spread of the pilot's runs where there is one."""
    effect = max((one.assumed.design_effect for one in plans), default=1.0)
    if like is None:
        return plan_factors(cells, design_effect=effect)
    deadlines = {cell.requirement.deadline_ns if cell.requirement else None for cell in cells}
    pilot = Pilot(like, deadlines.pop() if len(deadlines) == 1 else None)
    return plan_factors(cells, design_effect=effect, seen=pilot.seen)
