"""Scripts written by hand: the columns of an event, told apart by spaces, ``-`` for an empty one."""

from __future__ import annotations

import csv
from pathlib import Path

from rtmeter.explain.causes import Explanation, explain
from rtmeter.explain.scripted import read_events, read_releases

T = 10
"""The thread that stamps; its priority as the scheduler's events print it: 19."""

EVENTS = ("time_ns", "cpu", "event", "tid", "target", "state", "priority", "name", "value")
RELEASES = ("k", "release_ns", "stamp_ns", "late")

WAITS = """
0 0 switch 0 10 runnable 19 loop
0 1 switch 0 88 runnable 120 holder
900 0 sys_in 10 - - - {call}
1000 0 switch 10 0 blocked 120 swapper/0
1100 1 irq_in 88 - - - eth0
1150 1 irq_out 88 - - - eth0
1200 1 sys_in 88 - - - {by}
1300 {waking} 10 - 19 loop
1400 0 switch 0 10 runnable 19 loop
1450 0 sys_out 10 - - - {call}
"""
"""T waits in a call for the thread 88 on CPU 1."""


def written(folder: Path, events: str, *releases: tuple[int, int, int, int]) -> tuple[Path, Path]:
    """The two files of a script; of an event, empty columns at the end may be left out."""
    rows = [line.split() for line in events.splitlines() if line.strip()]
    full = [[("" if cell == "-" else cell) for cell in row] + [""] * (len(EVENTS) - len(row)) for row in rows]
    paths = folder / "events.csv", folder / "releases.csv"
    for path, header, lines in zip(paths, (EVENTS, RELEASES), (full, releases), strict=True):
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header, *lines])
    return paths


def explained(folder: Path, events: str, *releases: tuple[int, int, int, int]) -> Explanation:
    paths = written(folder, events, *releases)
    return explain(read_events(paths[0]), read_releases(paths[1]), T)
