"""What tests of causes of attached cells share."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from front import rtmeter
from rtmeter.results import store


def assert_explained(cell: Path) -> None:
    """Each late release has segments that sum to its lateness, and a cause or none known; all are counted."""
    record = store.read_cell(cell)
    assert record.verdict is not None
    done = rtmeter("explain", cell, "--json")
    assert done.code == 0, done.err
    releases, causes = done.json["releases"], done.json["causes"]
    assert len(releases) == record.verdict.late > 10, done.err
    for one in releases:
        spans = [(part["start_ns"], part["end_ns"]) for part in one["segments"]]
        assert sum(end - start for start, end in spans) == one["lateness_ns"]
        assert all(end == start for (_, end), (start, _) in pairwise(spans))
    unknown = [one for one in releases if one["cause"] is None]
    assert len(releases) - len(unknown) == sum(cause["releases"] for cause in causes) > 0
