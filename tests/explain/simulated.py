"""Random scripts: what the rules say of them beside the scheduler's own truth."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from statistics import median_low
from typing import Any

from scheduler import Scheduler
from scheduler_truth import Key, Truth

from rtmeter.explain.causes import explain
from rtmeter.explain.document import explanation_json
from rtmeter.explain.scripted import read_events, read_releases

COLUMNS = ("time_ns", "cpu", "event", "tid", "target", "state", "priority", "name", "value")
Row = tuple[int, int, int, int]


def said_and_true(seed: int, folder: Path, tid: int | None = None) -> tuple[Any, Any]:
    """The JSON of a script, and what it must be."""
    run = Scheduler(seed)
    dice = random.Random(seed)
    tid = tid or dice.choice(sorted({thread.tid for thread in run.threads}))
    releases: list[Row] = []
    for k in range(12):
        stamp_ns = dice.randint(run.begin_ns, run.end_ns)
        release_ns = max(stamp_ns - dice.choice((-5, 0, 20, 100, 500, 2000)), run.begin_ns)
        releases.append((k, release_ns, stamp_ns, int(dice.random() < 0.5 and stamp_ns >= release_ns)))
    events_csv, releases_csv = folder / "events.csv", folder / "releases.csv"
    with events_csv.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(run.rows)
    with releases_csv.open("w", newline="") as file:
        csv.writer(file).writerows([("k", "release_ns", "stamp_ns", "late"), *releases])
    found = explain(read_events(events_csv), read_releases(releases_csv), tid)
    return explanation_json(found, found.releases), truth(Truth(run), tid, releases)


def truth(true: Truth, tid: int, releases: list[Row]) -> dict[str, object]:
    """As docs/explain.md defines segments, causes and their order, from the scheduler's own account."""
    split = [true.segments(true.at(tid, stamp), release, stamp) for _, release, stamp, _ in releases]
    spent = [{key: sum(b - a for a, b, one in spans if one == key) for _, _, key in spans} for spans in split]
    in_time = [of for of, (*_, late) in zip(spent, releases, strict=True) if not late]
    listed, totals, unknown_ns = [], {}, 0
    for (k, release, stamp, late), spans, of in zip(releases, split, spent, strict=True):
        cause = None
        if late:
            unknown_ns += of.get(("unknown", None, None), 0)
            over = {
                key: ns - (median_low([other.get(key, 0) for other in in_time]) if in_time else 0)
                for key, ns in of.items()
            }
            if over:
                key = sorted(over, key=lambda key: (-over[key], [part or "" for part in key]))[0]
                positive = sum(ns for ns in over.values() if ns > 0)
                cause = named(key) | {"share": over[key] / positive if positive else 0.0}
                count, ns = totals.get(key, (0, 0))
                totals[key] = (count + 1, ns + stamp - release)
        segments = [{"start_ns": a, "end_ns": b} | named(key) for a, b, key in spans]
        listed.append({"k": k, "lateness_ns": stamp - release, "segments": segments, "cause": cause})
    order = sorted(totals, key=lambda key: (-totals[key][1], [part or "" for part in key]))
    causes = [named(key) | {"releases": totals[key][0], "lateness_ns": totals[key][1]} for key in order]
    return {"releases": listed, "causes": causes, "unknown_ns": unknown_ns}


def named(key: Key) -> dict[str, object]:
    return dict(zip(("category", "who", "relation"), key, strict=True))
