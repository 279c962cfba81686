"""A cell of synthetic wake-ups with the kernel's events that made some of them late."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np

from rtmeter.explain.events import IRQ_IN, IRQ_OUT, LENT, SWITCH, TIMER_FIRED, WAKING, Event, Trace
from rtmeter.model import ABSENT
from rtmeter.results import store
from rtmeter.results.cells import find_cells
from rtmeter.trace.table import FILE, write_trace
from synthetic import Made, write_cell, write_samples

DEADLINE_NS = 100_000
LATE_NS, USUAL_NS = 400_000, 50_000
THIEF, LENDER = 4711, 4712


TRACED = Made(
    id="traced",
    samples=40,
    warm_up=0,
    delays=lambda k: (LATE_NS if k % 5 == 0 else USUAL_NS,),
    deadline_ns=DEADLINE_NS,
)


def write_traced(
    folder: Path, thief: str, made: Made = TRACED, other: str | None = None, lender: str | None = None
) -> Path:
    """Each fifth release waits for the thread ``thief``, as urgent as it may be; the others run at once.
    ``other``: what the thief calls itself each second time; ``lender``: who lent it its priority."""
    cell = write_cell(folder, made)
    (stored,) = find_cells(cell)
    tid = next(one["tid"] for one in stored.record.threads.client if one["role"] == "measured")
    write_trace([Trace(_events(cell, tid, (thief, other or thief), lender))], cell / FILE)
    return cell


def write_called(folder: Path, callers: tuple[int, ...], thief: str | None = None) -> Path:
    """A callback that these threads of an executor call in turn, as rtmeter attach stores it; TRACED else.
    ``thief``: as of write_traced, before whichever thread is to call it; without one there is no trace."""
    cell = write_cell(folder, replace(TRACED, adapter="attached"))
    rows = next(iter(store.chunks(cell)()))
    columns = {name: rows[name] for name in ("k", "release_ns", "wake_ns", "status")}
    columns["free_ns"] = columns["wake_ns"] + 4000
    columns["busy_ns"], columns["by_timer"] = (np.full(len(rows["k"]), value) for value in (4000, 1))
    columns["interval_ns"] = np.concatenate(([ABSENT], np.diff(columns["wake_ns"])))
    columns["tid"] = np.resize(callers, len(rows["k"]))
    about = {"measurement": "loop", "mode": None, "period_ns": TRACED.period_ns}
    write_samples(cell / store.SAMPLES, columns, about | {"warm_up": TRACED.warm_up})
    record = json.loads((cell / store.CELL).read_text())
    measured = record["threads"]["client"][0] | {"stamps": True}
    record["threads"]["client"] = [measured | {"tid": tid, "name": f"caller {tid}"} for tid in callers]
    record["adapter_facts"]["callback"] = "timer 1 ms"
    record["measurement"] = record["config"]["measurement"] = "loop"
    (cell / store.CELL).write_text(json.dumps(record))
    if thief is not None:
        write_trace([Trace(_events(cell, callers[0], (thief, thief), None))], cell / FILE)
    return cell


def _events(cell: Path, tid: int, thieves: tuple[str, str], lender: str | None) -> Iterator[Event]:
    """Of the thread ``tid``, or of each row's own."""
    rows = next(iter(store.chunks(cell)()))
    ran = rows["tid"] if "tid" in rows else np.full(len(rows["k"]), tid)
    served = zip(rows["release_ns"].tolist(), rows["wake_ns"].tolist(), ran.tolist(), strict=True)
    names = cycle(thieves)
    for release, wake, tid in served:
        if wake == ABSENT:
            continue
        on = 0 if wake - release < DEADLINE_NS else THIEF
        if on:
            yield Event(release - 1000, 1, SWITCH, 0, THIEF, 1, 3, next(names))
        if on and lender:
            yield Event(release - 1000, 2, SWITCH, 0, LENDER, 1, 3, lender)
            yield Event(release - 900, 2, LENT, LENDER, THIEF, priority=3, value=120)
        yield Event(release + 1000, 1, IRQ_IN, on, name="local_timer")
        yield Event(release + 2000, 1, TIMER_FIRED, on, tid, value=release)
        yield Event(release + 3000, 1, WAKING, on, tid, 0, 19, "measured")
        yield Event(release + 4000, 1, IRQ_OUT, on, name="local_timer")
        yield Event(wake - 1000, 1, SWITCH, on, tid, 2 if on else 1, 19, "measured")
        yield Event(wake + 5000, 1, SWITCH, tid, 0, 2, 120, "[swapper/1]")
