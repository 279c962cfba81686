"""What happened in each release, as spans on the threads it happened on: for exports of time lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rtmeter.model import ABSENT, LOST, SKIPPED, WARM_UP_FLAG
from rtmeter.results.data import samples_of
from rtmeter.results.record import CellRecord
from rtmeter.statistics.quantities import Columns, Ints, kind, timeout_ns
from rtmeter.statistics.views import OUTCOME_BITS

MEASURED, SERVER = "measured", "server"


@dataclass(frozen=True, slots=True)
class Phase:
    """A span of a release: from one column to another on a thread (MEASURED, or SERVER: the other end's).
    ``end`` of None: a moment."""

    name: str
    begin: str
    end: str | None
    thread: str = MEASURED


_PHASES: dict[str, tuple[Phase, ...]] = {
    "wakeup": (Phase("wake-up", "release_ns", "wake_ns"),),
    "timer/one_shot": (
        Phase("armed", "armed_before_ns", "armed_after_ns"),
        Phase("fires late", "expected_ns", "callback_ns"),
    ),
    "timer/periodic": (
        Phase("timer", "release_ns", "callback_ns"),
        Phase("dispatch", "reported_actual_ns", "callback_ns"),
    ),
    "roundtrip": (
        Phase("sends late", "release_ns", "sent_ns"),
        Phase("round trip", "sent_ns", "received_ns"),
        Phase("answers", "server_received_ns", "server_sent_ns", SERVER),
    ),
    "request": (
        Phase("sends late", "release_ns", "sent_ns"),
        Phase("request and response", "sent_ns", "received_ns"),
        Phase("answers", "server_received_ns", "server_sent_ns", SERVER),
    ),
    "loop": (
        Phase("wakes late", "release_ns", "wake_ns"),
        Phase("works", "wake_ns", "free_ns"),
    ),
    "cycle": (
        Phase("starts late", "release_ns", "start_ns"),
        Phase("request", "request_sent_ns", "request_received_ns"),
        Phase("respond", "response_sent_ns", "response_received_ns"),
        Phase("completion", "release_ns", "response_received_ns"),
    ),
    "chain": (Phase("reacts", "before_ns", "output_ns"),),
    "discovery": (
        Phase("starts late", "release_ns", "started_ns"),
        Phase("matches", "started_ns", "matched_ns"),
        Phase("first messages", "started_ns", "first_ns"),
    ),
    "own_loop": (Phase("wakes late", "release_ns", "wake_ns"), Phase("work", "wake_ns", "done_ns")),
}


def has_releases(folder: Path, record: CellRecord) -> bool:
    """Whether the cell knows when each release was: neither histograms nor imported series do. Raises
    RtmeterError if its data are not there."""
    return samples_of(folder, record) is not None and record.measurement != "imported"


def phases(meta: Mapping[str, Any]) -> tuple[Phase, ...]:
    """Those of the measurement; no dispatch where the middleware's times are another clock's."""
    monotonic = meta.get("reported_clock", "monotonic") == "monotonic"
    return tuple(phase for phase in _PHASES[kind(meta)] if monotonic or phase.name != "dispatch")


def with_expected(meta: Mapping[str, Any], rows: Columns) -> Columns:
    """The rows with ``expected_ns`` of one-shot timers: when the shot was due."""
    if kind(meta) != "timer/one_shot":
        return rows
    armed = rows["armed_before_ns"]
    return {**rows, "expected_ns": np.where(armed == ABSENT, ABSENT, armed + timeout_ns(meta))}


def begins(meta: Mapping[str, Any], rows: Columns) -> Ints:
    """When each release began: its release, or the moment it was armed."""
    return rows["armed_before_ns" if kind(meta) == "timer/one_shot" else "release_ns"]


def marks(rows: Columns, value_ns: Ints, deadline_ns: int | None) -> dict[str, Ints]:
    """What a time line marks: which rows are lost, skipped, and served after the deadline; indices, warm-up
    left out. What a verdict counts as missed is another thing (views.missed)."""
    measured = (rows["status"] & WARM_UP_FLAG) == 0
    outcome = rows["status"] & OUTCOME_BITS
    found = {"lost": outcome == LOST, "skipped": outcome == SKIPPED}
    if deadline_ns is not None:
        found["late"] = (value_ns != ABSENT) & (value_ns > deadline_ns)
    return {name: np.flatnonzero(which & measured) for name, which in found.items()}
