"""What a recording on another machine says, as its script and its kernel write it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.conditions.recorder_there import RecorderThere

CLOCKS = """now at 5000 nsecs
  .offset:     0 nsecs
  .offset:     1700000000000000000 nsecs
  .offset:     300 nsecs
  .offset:     1700000037000000000 nsecs
"""


@pytest.fixture
def recorder() -> Any:
    """One that was never started."""
    return RecorderThere.__new__(RecorderThere)


def test_pieces_that_have_ended_are_told_once_each_and_whole_lines_alone_count(recorder: Any) -> None:
    """All pages of a piece begin before its end, which is told to the microsecond."""
    told: list[tuple[int, int, int]] = []
    said = "Last login: never\npiece 0 5 12.345678\npiece 1 7 13.0000"
    recorder._script, recorder._pieces = SimpleNamespace(stdout=lambda: said), 0
    recorder._pages_there = SimpleNamespace(ended=lambda *piece: told.append(piece))
    recorder._heed_pieces()
    said += "01\npiece 2 6 14.000000\n"
    for _ in range(2):
        recorder._heed_pieces()
    assert told == [(0, 5, 12_345_679_000), (1, 7, 13_000_002_000), (2, 6, 14_000_001_000)]


@pytest.mark.parametrize("lines", [5, 4])
def test_the_clocks_there_are_told_together_or_not_at_all(recorder: Any, lines: int) -> None:
    text = "".join(CLOCKS.splitlines(keepends=True)[:lines])
    recorder._there = SimpleNamespace(run=lambda _: (0, text))
    wall_ns, tai_ns = 1_700_000_000 * 10**9, 1_700_000_037 * 10**9
    anchors = {"monotonic_ns": 5000, "realtime_ns": 5000 + wall_ns, "boottime_ns": 5300}
    assert recorder.anchors() == (anchors if lines == 5 else {})
    assert recorder._offsets_ns() == ((wall_ns, 300, tai_ns) if lines == 5 else (0, 0, 0))
