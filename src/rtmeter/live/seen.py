"""A cell while it is measured: its distribution so far, from the log as it grows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rtmeter.conditions import drops
from rtmeter.conditions.monitor import NOW
from rtmeter.conditions.throttling import QUOTA, THERMAL
from rtmeter.live.team import ChainFollower, DiscoveryFollower, team_of
from rtmeter.model import LOST, SERVED, SKIPPED, WARM_UP_FLAG
from rtmeter.results import store
from rtmeter.samples.follow import Follower, SegmentsFollower
from rtmeter.samples.meta import LogMeta
from rtmeter.statistics import bins
from rtmeter.statistics.quantities import Columns, Ints, Quantity, judged_quantity
from rtmeter.statistics.ranks import fewest, share_of
from rtmeter.statistics.views import OUTCOME_BITS, as_served
from rtmeter.values import from_json

_STOLEN = 0.01
"""A share of a CPU that the hypervisor takes: above it, it is said."""


@dataclass(frozen=True, slots=True)
class CellSeen:
    """What is known of a running cell: releases settled of those planned (0: it has no end), warm-up
    included; then without it, how those ended, and the judged quantity as served, in nanoseconds (None before
    the first).

    ``counts``: shape (bins.BINS,). ``late``: served after the deadline; None without one. ``machine``: the
    last sample of the machine (spec/results.md, monitor.parquet), empty without any. ``doubts``: what already
    speaks against the data, in words.
    """

    quantity: str
    settled: int
    planned: int
    period_ns: int
    served: int
    skipped: int
    lost: int
    late: int | None
    deadline_ns: int | None
    last_ns: int | None
    p99_9_ns: int | None
    max_ns: int | None
    counts: Ints
    machine: Mapping[str, float]
    doubts: tuple[str, ...]

    @property
    def share(self) -> float:
        """Of the releases that are settled."""
        return min(self.settled / self.planned, 1.0) if self.planned else 0.0

    @property
    def left_ns(self) -> int:
        """How long the releases take that are still to come, by the grid."""
        return max(self.planned - self.settled, 0) * self.period_ns


@dataclass
class RunningCell:
    """Follows the cell that is being measured in ``folder``."""

    folder: Path
    _log: Follower | SegmentsFollower | ChainFollower | DiscoveryFollower = field(init=False)
    _quantity: Quantity | None = None
    _meta: dict[str, Any] = field(default_factory=dict)
    _counts: Ints = field(default_factory=lambda: np.zeros(bins.BINS, dtype=np.int64))
    _ends: dict[int, int] = field(default_factory=lambda: {SERVED: 0, SKIPPED: 0, LOST: 0})
    _settled: int = 0
    _late: int = 0
    _last_ns: int | None = None
    _max_ns: int | None = None

    def __post_init__(self) -> None:
        own = self.folder.suffix == store.LOOP
        self._log = SegmentsFollower(self.folder) if own else Follower(self.folder / store.CLIENT_LOG)

    def look(self) -> CellSeen | None:
        """Everything so far; None before the probe has begun its log."""
        if not self._log.header and (team := team_of(self.folder)) is not None:
            self._log = team
        for rows in self._log.new():
            self._take(rows)
        if not self._log.header:
            return None
        quantity, config = self._known()
        return CellSeen(
            quantity=quantity.name,
            settled=self._settled,
            planned=int(config["samples"]) + int(config.get("warm_up") or 0) if config.get("samples") else 0,
            period_ns=int(config.get("timeout_ns") or config.get("period_ns") or 0),
            served=self._ends[SERVED],
            skipped=self._ends[SKIPPED],
            lost=self._ends[LOST],
            late=None if self._deadline_ns() is None else self._late,
            deadline_ns=self._deadline_ns(),
            last_ns=self._last_ns,
            p99_9_ns=self._quantile("99.9"),
            max_ns=self._max_ns,
            counts=self._counts.copy(),
            machine=(machine := self._machine()),
            doubts=tuple(self._doubts(machine)),
        )

    def _known(self) -> tuple[Quantity, dict[str, Any]]:
        """The judged quantity and the config, as the header has them."""
        if self._quantity is None:
            facts = LogMeta.of(self._log.header, self._log.path)
            known = {"measurement": facts.measurement, "mode": facts.mode}
            self._meta = {"period_ns": 0} | facts.config | known
            self._quantity = judged_quantity(self._meta)
        return self._quantity, self._meta

    def _deadline_ns(self) -> int | None:
        deadline = self._meta.get("deadline_ns")
        return None if deadline is None else int(deadline)

    def _take(self, rows: Columns) -> None:
        quantity, meta = self._known()
        self._settled += len(rows["k"])
        measured = rows["status"][(rows["status"] & WARM_UP_FLAG) == 0] & OUTCOME_BITS
        for end in self._ends:
            self._ends[end] += int(np.count_nonzero(measured == end))
        for block in as_served(meta, quantity, [rows]):
            if not len(block.value):
                continue
            self._counts += bins.count(block.value)
            self._last_ns = int(block.value[-1])
            largest = int(block.value.max())
            self._max_ns = largest if self._max_ns is None else max(self._max_ns, largest)
            deadline_ns = self._deadline_ns()
            if deadline_ns is not None:
                self._late += int(np.count_nonzero(block.value > deadline_ns))

    def _quantile(self, percent: str) -> int | None:
        """The end of the bin that holds it, or the largest value if that is less; None of too few values."""
        if self._max_ns is None or int(self._counts.sum()) < fewest(share_of(percent)):
            return None
        return min(bins.quantile_range_ns(self._counts, (percent, percent))[1], self._max_ns)

    def _machine(self) -> dict[str, float]:
        try:
            row = from_json((self.folder / NOW).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        told = row.items() if isinstance(row, dict) else ()
        return {name: float(value) for name, value in told if isinstance(value, int | float)}

    def _doubts(self, machine: Mapping[str, float]) -> Iterator[str]:
        if self._log.damaged:
            yield f"{self._log.damaged} places of the log are damaged"
        stolen = max((v for name, v in machine.items() if name.endswith("_steal")), default=0.0)
        if stolen > _STOLEN:
            yield f"the hypervisor takes {stolen:.0%} of a CPU"
        if machine.get(QUOTA):
            yield "a CPU quota stops tasks"
        if machine.get(THERMAL):
            yield "heat slows CPUs"
        if self._ends[LOST]:
            yield f"{self._ends[LOST]:,} lost"
            if machine.get(drops.BUFFER):
                yield "full receive buffers drop datagrams"
            if machine.get(drops.FRAGMENTS):
                yield "packets lack fragments"
