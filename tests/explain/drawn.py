"""Random scripts with releases of a thread of theirs, for a trace that comes in parts."""

from __future__ import annotations

import csv
import random
from pathlib import Path

from scheduler import Scheduler
from simulated import COLUMNS

from rtmeter.explain.causes import Release
from rtmeter.explain.events import Trace
from rtmeter.explain.scripted import read_events


def drawn(folder: Path, seed: int, losses: int = 0) -> tuple[Trace, list[Release], int]:
    """The trace, the releases and the thread; in as many places as ``losses`` further events are lost."""
    run, dice = Scheduler(seed), random.Random(seed)
    tid = dice.choice(sorted({thread.tid for thread in run.threads}))
    # what comes before the first release is in parts that are gone
    first_ns = run.begin_ns + seed % 3 * (run.end_ns - run.begin_ns) // 3
    left = [row["time_ns"] for row in run.rows if row["event"] == "switch" and row.get("tid") == tid]
    stamps = [dice.choice([at for at in left if at > first_ns] or [run.end_ns]) - 1 for _ in range(12)]
    releases = [
        Release(k, max(stamp - dice.choice((0, 20, 500, 2000)), first_ns), stamp, dice.random() < 0.5)
        for k, stamp in enumerate(stamps)
    ]
    for _ in range(losses):
        place = dice.randrange(40, len(run.rows))
        near = run.rows[place]
        run.rows.insert(place, {"time_ns": near["time_ns"], "cpu": near["cpu"], "event": "lost", "value": 2})
    with (folder / "events.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(run.rows)
    return read_events(folder / "events.csv"), releases, tid
