"""The judged quantity of a whole run in memory: eight bytes a release and one for skips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmeter.model import SKIPPED, TWO_ENDS
from rtmeter.statistics.drift import Bools
from rtmeter.statistics.evidence import Evidence, examine
from rtmeter.statistics.order import Values
from rtmeter.statistics.quantities import Chunks, Ints, judged_quantity, kind, quantities
from rtmeter.statistics.views import all_served, per_release


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """The judged quantity per release, in order: ``values`` in ns, shape (n,), LATER where lost (int32 where
    order.Values can hold them so);
    ``skipped``, shape (n,), or None if none was. ``delay_ns``: start - release of each, where the
    values are completion - release; ``own_grid`` as in ``drift``."""

    quantity: str
    values: Ints
    skipped: Bools | None
    delay_ns: Ints | None
    period_ns: int
    skips_miss: bool
    own_grid: bool = False

    def examine(self, deadline_ns: int, *, virtual_machine: bool = False) -> Evidence:
        """What the gates see of a run of at least one release."""
        return examine(
            self.values,
            self.period_ns,
            deadline_ns,
            skipped=self.skipped,
            skips_miss=self.skips_miss,
            delay_ns=self.delay_ns,
            own_grid=self.own_grid,
            virtual_machine=virtual_machine,
        )


def judged_run(meta: Mapping[str, Any], chunks: Chunks) -> JudgedRun:
    """Reads the run's chunks; ``meta`` as in ``summarise``. In round trips and requests a skipped release
    is no miss by itself: it is served by the next one sent."""
    quantity = judged_quantity(meta)
    values, passed = Values(narrow=True), list[Ints]()
    for block in per_release(meta, quantity, chunks(), with_k=False):
        if not all_served(block.outcome):
            passed.append(np.flatnonzero(block.outcome == SKIPPED) + len(values))
        values.append(block.value)
    found = values.finish()
    skipped = None
    if any(map(len, passed)):
        skipped = np.zeros(len(found), dtype=np.bool_)
        skipped[np.concatenate(passed)] = True
    return JudgedRun(
        quantity=quantity.name,
        values=found,
        skipped=skipped,
        delay_ns=_delays(meta, chunks, len(found)) if meta["measurement"] == "cycle" else None,
        period_ns=int(meta["period_ns"] or meta["timeout_ns"]),
        skips_miss=meta["measurement"] not in TWO_ENDS,
        own_grid=_own_grid(meta),
    )


def _own_grid(meta: Mapping[str, Any]) -> bool:
    """Whether no timer can drift against the grid: the core sleeps to it, each shot, or each job of a loop,
    has a time of its own, or the timer tells neither its releases nor that it serves each of them
    (docs/method.md)."""
    return (
        meta.get("t0_from") == "core"
        or meta.get("ticks") == "jumps"
        or kind(meta) in ("timer/one_shot", "loop")
    )


def _delays(meta: Mapping[str, Any], chunks: Chunks, n: int) -> Ints | None:
    """start - release of each of the n releases; None if some rows lack the stamps of one of them."""
    (start,) = (quantity for quantity in quantities(meta) if quantity.name == "cycle_delay")
    delays = Values(expected=n)
    for block in per_release(meta, start, chunks(), with_k=False):
        delays.append(block.value)
    return delays.finish() if len(delays) == n else None
