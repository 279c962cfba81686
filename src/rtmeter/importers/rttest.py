"""rttest's file: ``iteration timestamp latency minor_pagefaults major_pagefaults``, nanoseconds."""

from __future__ import annotations

import numpy as np

from rtmeter.importers.base import CUT, Imported, ImportedSeries, SourceFile
from rtmeter.model import Doubt
from rtmeter.statistics.quantities import Ints

HEADER = "iteration timestamp latency minor_pagefaults major_pagefaults"

_NO_WARM_UP = Doubt("no_warm_up", "rttest marks no warm-up: the first samples are judged as well", "")


def read(source: SourceFile) -> Imported:
    """The file that ``rttest_write_results`` writes. Latencies are signed: early is negative. Its
    timestamps are multiples of the period, not stamps."""
    header = source.text.partition("\n")[0]
    if header.split() != HEADER.split():
        raise source.error("is not rttest's header", line=1, field="header", value=header, remedy=CUT)
    values = source.whole_numbers(5, " ")
    if values is None or (values[0] != np.arange(values.shape[1])).any() or values[[1, 3, 4]].min() < 0:
        values = _by_line(source)
    _, timestamps, samples, *faults = values
    steps = np.unique(np.diff(timestamps))
    if len(steps) > 1:
        remedy = "rttest writes multiples of the period: the file was edited or put together"
        raise source.error("are not equally spaced", field="timestamp", remedy=remedy)
    step = int(steps[0]) if len(steps) else None
    steps_doubted = source.check_steps(samples)
    said = " and ".join(f"{c.sum()} {kind}" for c, kind in zip(faults, ("minor", "major"), strict=True))
    return Imported(
        "rttest",
        "wake-up latency",
        (ImportedSeries("rttest", samples=samples),),
        verified=False,
        period_ns=None if step is None else source.period_ns(step, "step of timestamp", step),
        facts={"page faults": said},
        doubts=(_NO_WARM_UP, *steps_doubted),
    )


def _by_line(source: SourceFile) -> Ints:
    """The columns, shape (5, rows), or the line at fault."""
    rows: list[tuple[int, ...]] = []
    for number, line in enumerate(source.whole_lines[1:], 2):
        words = line.split()
        if not words:
            continue
        if len(words) != 5:
            raise source.error("has not five columns", line=number, remedy=CUT)
        if source.count(words[0], "iteration", number) != len(rows):
            raise source.error("is out of order", line=number, field="iteration", value=words[0], remedy=CUT)
        rows.append(
            (
                len(rows),
                source.time_ns(words[1], 1, "timestamp", number),
                source.time_ns(words[2], 1, "latency", number, signed=True),
                source.count(words[3], "minor_pagefaults", number),
                source.count(words[4], "major_pagefaults", number),
            )
        )
    if not rows:
        raise source.error("has no samples", remedy=CUT)
    return np.array(rows, dtype=np.int64).T
