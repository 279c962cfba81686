"""rttest's file: ``iteration timestamp latency minor_pagefaults major_pagefaults``, nanoseconds."""

from __future__ import annotations

import numpy as np

from rtmeter.importers.base import CUT, Imported, Series, Source
from rtmeter.model import Doubt

HEADER = "iteration timestamp latency minor_pagefaults major_pagefaults"


def read(source: Source) -> Imported:
    """The file that ``rttest_write_results`` writes. Latencies are signed: early is negative. Its
    timestamps are multiples of the period, not stamps."""
    lines = source.whole_lines
    if not lines or lines[0].split() != HEADER.split():
        found = lines[0] if lines else ""
        raise source.error("is not rttest's header", line=1, field="header", value=found, remedy=CUT)
    rows: list[tuple[int, int, int, int]] = []
    for number, line in enumerate(lines[1:], 2):
        words = line.split()
        if not words:
            continue
        if len(words) != 5:
            raise source.error("has not five columns", line=number, remedy=CUT)
        if source.count(words[0], "iteration", number) != len(rows):
            raise source.error("is out of order", line=number, field="iteration", value=words[0], remedy=CUT)
        rows.append(
            (
                source.time_ns(words[1], 1, "timestamp", number),
                source.time_ns(words[2], 1, "latency", number, signed=True),
                source.count(words[3], "minor_pagefaults", number),
                source.count(words[4], "major_pagefaults", number),
            )
        )
    if not rows:
        raise source.error("has no samples", remedy=CUT)
    values = np.array(rows, dtype=np.int64)
    steps = np.unique(np.diff(values[:, 0]))
    if len(steps) > 1:
        remedy = "rttest writes multiples of the period: the file was edited or put together"
        raise source.error("are not equally spaced", field="timestamp", remedy=remedy)
    samples = np.ascontiguousarray(values[:, 1])
    source.refuse_steps(samples)
    faults = f"{values[:, 2].sum()} minor, {values[:, 3].sum()} major"
    return Imported(
        "rttest",
        "wake-up latency",
        (Series("rttest", samples=samples),),
        verified=False,
        period_ns=int(steps[0]) if len(steps) else None,
        facts={"page faults": faults},
        doubts=(Doubt("no_warm_up", "rttest marks no warm-up: the first samples are judged as well", ""),),
    )
