"""The judged quantity of a whole run in memory: eight bytes a release and one for skips."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmeter.model import SKIPPED
from rtmeter.statistics.drift import Bools
from rtmeter.statistics.evidence import Evidence, examine
from rtmeter.statistics.order import Values
from rtmeter.statistics.quantities import Columns, Ints, Quantity, judged_quantity, quantities
from rtmeter.statistics.views import per_release

Chunks = Callable[[], Iterable[Columns]]


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """The judged quantity per release, in order: ``values`` in ns, shape (n,), LATER where lost;
    ``skipped``, shape (n,), or None if none was. ``delay_ns``: start - release of each, where the
    values are completion - release; ``clock_rate`` between the clocks of loop and grid, None: not known."""

    quantity: str
    values: Ints
    skipped: Bools | None
    delay_ns: Ints | None
    period_ns: int
    skips_miss: bool
    clock_rate: float | None = None

    def examine(self, deadline_ns: int, *, virtual_machine: bool = False) -> Evidence:
        """What the gates see of a run of at least one release."""
        return examine(
            self.values,
            self.period_ns,
            deadline_ns,
            skipped=self.skipped,
            skips_miss=self.skips_miss,
            delay_ns=self.delay_ns,
            clock_rate=self.clock_rate,
            virtual_machine=virtual_machine,
        )


def judged_run(meta: Mapping[str, Any], chunks: Chunks) -> JudgedRun:
    """Reads the run's chunks; ``meta`` as in ``summarise``. In a round trip a skipped release is no miss
    by itself: it is served by the next ping."""
    quantity = judged_quantity(meta)
    values, skipped = _column(meta, quantity, chunks)
    delay = None
    if meta["measurement"] == "cycle":
        (start,) = (other for other in quantities(meta) if other.name == "cycle_delay")
        delay = _column(meta, start, chunks)[0]
        if len(delay) != len(values):
            delay = None  # some rows lack the stamps of one of them
    return JudgedRun(
        quantity=quantity.name,
        values=values,
        skipped=skipped if skipped.any() else None,
        delay_ns=delay,
        period_ns=int(meta["period_ns"] or meta["timeout_ns"]),
        skips_miss=meta["measurement"] != "roundtrip",
        clock_rate=0.0 if meta.get("t0_from") == "core" else None,
    )


def _column(meta: Mapping[str, Any], quantity: Quantity, chunks: Chunks) -> tuple[Ints, Bools]:
    values, skipped = Values(), Values(np.bool_)
    for block in per_release(meta, quantity, chunks()):
        values.append(block.value)
        skipped.append(block.outcome == SKIPPED)
    return values.array, skipped.array
