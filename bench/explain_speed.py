"""Explains a trace of many events: processor time and memory. Takes a cell that was measured with --explain,
all of it recorded, and repeats its events and releases until there are enough.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from common import machine_line
from rtmeter.explain.causes import Release
from rtmeter.explain.events import NO_VALUE, Trace, joined
from rtmeter.explain.parts import explain_parts
from rtmeter.judge.explained import explained
from rtmeter.results.cells import find_cells
from rtmeter.trace.chosen import MOST_IN_TIME
from rtmeter.trace.table import FILE, open_trace, write_trace

BOUND_S, BOUND_MIB = 30, 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cell", type=Path)
    parser.add_argument("--events", type=int, default=10_800_000)
    args = parser.parse_args()
    (cell,) = find_cells(args.cell)
    found = explained(cell)
    base = joined(open_trace(cell.folder / FILE).parts())
    span_ns = base.time_ns[-1] - base.time_ns[0] + 1
    times = -(-args.events // len(base))
    once = [each.release for each in found.found.releases]
    every = [
        Release(k, one.release_ns + shift * span_ns, one.stamp_ns + shift * span_ns, one.late)
        for k, (shift, one) in enumerate((shift, one) for shift in range(times) for one in once)
    ]
    in_time = [one for one in every if not one.late]
    compared = set(random.Random(0).sample(in_time, min(len(in_time), MOST_IN_TIME)))
    asked = [one for one in every if one.late or one in compared]
    with tempfile.TemporaryDirectory() as folder:
        write_trace(repeated(base, times, span_ns), Path(folder) / FILE)
        del base
        began_s = time.process_time()
        said = explain_parts(open_trace(Path(folder) / FILE).parts(), asked, found.tid)
        took_s = time.process_time() - began_s
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    late = sum(one.late for one in asked)
    assert len(said.releases) == len(asked)
    print(f"{machine_line()}\n{times * len(once):,} releases, {late:,} late, {len(asked) - late:,} compared")
    print(f"processor time {took_s:.1f} s (bound {BOUND_S}), memory {mib:,.0f} MiB (bound {BOUND_MIB})")


def repeated(base: Trace, times: int, span_ns: int) -> Iterator[Trace]:
    for shift in range(times):
        part = base.taken(slice(None))
        times_ns, values = np.asarray(base.time_ns), np.asarray(base.value)
        part.time_ns = array("q", (times_ns + shift * span_ns).tobytes())
        absolute = (values != NO_VALUE) & (values > times_ns[0] // 2)
        part.value = array("q", np.where(absolute, values + shift * span_ns, values).tobytes())
        yield part


if __name__ == "__main__":
    main()
