"""The run as OpenMetrics text, for node_exporter's textfile collector and its kind."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from rtmeter.host.files import replace_file
from rtmeter.live.run import RunState
from rtmeter.live.seen import CellSeen

_NS = 1e9


class _Gauge(Protocol):
    def __call__(self, name: str, about: str, value: float | None, /, **labels: str) -> None: ...


def write(path: Path, state: RunState) -> None:
    """Writes the file whole, or leaves the one that is there. Raises RtmeterError."""
    replace_file(path, text(state), "--metrics")


def text(state: RunState) -> bytes:
    """OpenMetrics 1.0; times in seconds. What is not known is left out."""
    from prometheus_client import CollectorRegistry, Gauge
    from prometheus_client.openmetrics.exposition import generate_latest

    registry = CollectorRegistry()

    def gauge(name: str, about: str, value: float | None, /, **labels: str) -> None:
        if value is None:
            return
        metric = known.get(name) or known.setdefault(
            name, Gauge(f"rtmeter_{name}", about, list(labels), registry=registry)
        )
        (metric.labels(**labels) if labels else metric).set(value)

    known: dict[str, Gauge] = {}
    for outcome in sorted(set(state.done.values())):
        count = sum(one == outcome for one in state.done.values())
        gauge("cells_done", "Cells that are stored, by outcome.", count, outcome=outcome)
    gauge("cells_to_come", "Cells that have not begun.", len(state.to_come))
    left = None if state.left_ns is None else state.left_ns / _NS
    gauge("left_seconds", "Time that the releases to come take, as planned.", left)
    gauge("running", "Whether a cell is measured now.", float(state.running is not None))
    if state.running is not None and state.seen is not None:
        _cell(gauge, state.running, state.seen)
    return bytes(generate_latest(registry))  # type: ignore[no-untyped-call]


def _cell(gauge: _Gauge, cell: str, seen: CellSeen) -> None:
    labels = {"cell": cell}
    gauge("settled_share", "Share of the cell's releases that are settled.", seen.share, **labels)
    for end in ("served", "skipped", "lost"):
        about = "Measured releases of the running cell, by how they ended."
        gauge("releases", about, getattr(seen, end), end=end, **labels)
    gauge("late_releases", "Served after the deadline.", seen.late, **labels)
    of = {"quantity": seen.quantity, **labels}
    for name, value in (("max", seen.max_ns), ("p99_9", seen.p99_9_ns), ("last", seen.last_ns)):
        about = f"The judged quantity of the running cell as served: {name}."
        gauge(f"quantity_{name}_seconds", about, None if value is None else value / _NS, **of)
    deadline = None if seen.deadline_ns is None else seen.deadline_ns / _NS
    gauge("deadline_seconds", "The deadline of the running cell.", deadline, **labels)
