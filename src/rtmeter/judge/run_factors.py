"""What each factor of a run does, where that takes no longer than a report may."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.judge.factors import FactorEffects, FactorOptions, Known, factor_effects
from rtmeter.judge.layers import measured_runs
from rtmeter.judge.layouts import factors_of, told_apart
from rtmeter.results import store
from rtmeter.results.cells import StoredCell

MOST_CELLS, MOST_RELEASES = 200, 20_000_000
"""Of larger runs `rtmeter compare --factor` tells it, factor by factor."""


def effects_of_runs(paths: Iterable[Path], read: store.ReadSamples) -> Iterator[FactorEffects]:
    """Of each run under the paths by itself; factors over which no cells are matched are left out."""
    for path in paths:
        for cells in measured_runs(path):
            if len(cells) > MOST_CELLS or sum(map(_releases, cells)) > MOST_RELEASES:
                continue
            known: Known = {}
            for name in told_apart([factors_of(cell.record) for cell in cells]):
                with suppress(RtmeterError):
                    yield factor_effects(cells, FactorOptions(name), read, known)


def _releases(cell: StoredCell) -> int:
    counts = cell.record.summary.counts if cell.record.summary else {}
    return int(counts.get("released", counts.get("armed", 0)) or 0)
