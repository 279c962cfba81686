"""The floor under a report's middlewares, as the report takes it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from rtmeter.judge.compared import Compared, ComparisonOptions
from rtmeter.judge.layers import floors, transport
from rtmeter.plots.floors import QUANTILES, Floor, FloorLayer, X
from rtmeter.results import store


def floor_of(paths: Iterable[Path], read: store.ReadSamples) -> Floor:
    """What lies under the middlewares of all runs under the paths, each run by itself."""
    runs = [run for path in paths for run in floors(path, ComparisonOptions(), read)]
    return Floor(
        tuple(_layer(one) for run in runs for one in run.over),
        tuple(name for run in runs for name in run.without),
        tuple(one for run in runs for one in run.refused),
    )


_NOT_COMPARED = X(math.nan, math.nan, math.nan)


def _layer(compared: Compared) -> FloorLayer:
    pairing, found = compared.pairing, compared.found
    ways = [transport(cell) for cell in pairing.pairs[0]] if pairing.pairs else [None, None]
    shifts = {shift.quantity: shift for shift in found.shifts} if found else {}
    known = {name: X(one.difference, one.lower, one.upper) for name, one in shifts.items()}
    return FloorLayer(
        cell=pairing.b,
        floor=pairing.a,
        transport=ways[1],
        floor_transport=ways[0],
        quantity=compared.quantity,
        pairs=len(pairing.pairs),
        in_turn=pairing.interleaved,
        confidence=found.confidence if found else 0.0,
        xs=tuple(known.get(name, _NOT_COMPARED) for name in QUANTILES if known),
        refusal=compared.refusal,
    )
