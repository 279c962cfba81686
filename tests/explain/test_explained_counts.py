"""What of a cell's releases is explained: counted, compared, and within what was kept of the events."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rtmeter.errors import RtmeterError
from rtmeter.explain.causes import Explained, Release
from rtmeter.explain.parts import explain_parts
from rtmeter.judge.explained import explained
from rtmeter.judge.why import _classes, _state_of
from rtmeter.results import store
from rtmeter.results.cells import StoredCell, find_cells
from rtmeter.results.record import text_of
from rtmeter.trace.chosen import span_of
from rtmeter.trace.table import FILE, open_trace, write_trace
from traced_cells import DEADLINE_NS, TRACED, write_traced

LATE = [k for k in range(TRACED.samples) if k % 5 == 0]
MS = 1_000_000


def kept(cell: Path, releases: Sequence[int] | None) -> StoredCell:
    """The cell, as if only these releases' surroundings had been kept."""
    parts = list(open_trace(cell / FILE).parts())
    write_trace(parts, cell / FILE, releases)
    (stored,) = find_cells(cell)
    return stored


def test_late_releases_and_those_that_they_are_compared_with_are_counted(tmp_path: Path) -> None:
    (cell,) = find_cells(write_traced(tmp_path / "cell", "thief"))
    found = explained(cell)
    in_time = TRACED.samples - len(LATE)
    assert (found.late_after_ns, found.by_deadline) == (DEADLINE_NS, True)
    assert (found.in_time, found.compared, found.unserved, found.unrecorded) == (in_time, in_time, 0, 0)
    assert [each.release.k for each in found.found.releases if each.release.late] == LATE
    assert explained(cell, k=7).compared == in_time, "also the one that is asked for"


def test_of_what_was_kept_no_more_is_compared_and_the_rest_is_counted(tmp_path: Path) -> None:
    found = explained(kept(write_traced(tmp_path / "cell", "thief"), [0, 5, 7, 8]))
    assert (found.in_time, found.compared) == (TRACED.samples - len(LATE), 2)
    assert found.unrecorded == len(LATE) - 2
    asked_for = explained(kept(write_traced(tmp_path / "other", "thief"), [0, 5, 7, 8]), k=9)
    assert asked_for.compared == 2 and 9 in {each.release.k for each in asked_for.found.releases}
    assert asked_for.unrecorded == found.unrecorded, "it is not late"
    assert explained(kept(write_traced(tmp_path / "third", "thief"), [0, 5, 7, 8]), k=8).compared == 2


def test_what_is_kept_of_a_cell_is_of_its_files_as_they_were_written_last(tmp_path: Path) -> None:
    folder = write_traced(tmp_path / "cell", "thief")
    before = _state_of(folder)
    os.utime(folder / FILE, ns=(MS, MS))
    assert before is not None and _state_of(folder) not in (before, None)


@pytest.mark.parametrize(
    ("limit_ns", "late_ns", "classes"),
    [
        (100, (101, 200, 201, 400, 801, 9000), [(100, 200, 2), (200, 400, 2), (800, None, 2)]),
        (0, (5, 8, 9), [(4, 8, 2), (8, None, 1)]),
    ],
)
def test_a_class_of_lateness_reaches_from_beyond_its_beginning_to_twice_that(
    limit_ns: int, late_ns: Sequence[int], classes: list[tuple[int, int | None, int]]
) -> None:
    late = [Explained(Release(k, 0, ns, True), (), (), None) for k, ns in enumerate(late_ns)]
    assert [(one.from_ns, one.to_ns, one.releases) for one in _classes(late, limit_ns)] == classes


@pytest.mark.parametrize("asked", [True, {"margin_ns": 5 * MS}, {"margin_ns": 50 * MS}])
def test_what_is_known_of_a_late_release_reaches_as_far_as_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: bool | dict[str, int]
) -> None:
    cell = kept(write_traced(tmp_path / "cell", "thief"), [5, 7])
    conditions = (cell.record.conditions or {}) | {"asked": {"explain": asked}}
    conditions = {"effective": {}, "achieved": {}} | conditions
    (cell.folder / store.CELL).write_text(
        text_of(cell.record.changed(conditions=conditions)), encoding="utf-8"
    )
    (cell,) = find_cells(cell.folder)
    given: list[Any] = []

    def spy(parts: Any, releases: Sequence[Release], tid: int, spans: Any, **roles: Any) -> Any:
        given.extend(zip(releases, spans, strict=True))
        return explain_parts(parts, releases, tid, spans, **roles)

    monkeypatch.setattr("rtmeter.judge.explained.explain_parts", spy)
    explained(cell)
    margin_ns = asked["margin_ns"] if isinstance(asked, dict) else 20 * MS
    late, (from_ns, to_ns) = next(pair for pair in given if pair[0].k == 5)
    usual = span_of(5, late.release_ns - TRACED.period_ns, late.release_ns, late.stamp_ns, late=False)
    assert (from_ns, to_ns) == (usual.from_ns - margin_ns, usual.to_ns + margin_ns)
    in_time, (from_ns, to_ns) = next(pair for pair in given if pair[0].k == 7)
    near = span_of(7, in_time.release_ns - TRACED.period_ns, in_time.release_ns, in_time.stamp_ns, late=False)
    assert (from_ns, to_ns) == (near.from_ns, near.to_ns)
    given.clear()
    explained(cell, deadline_ns=1000)
    beyond = next(span for release, span in given if release.k == 7)
    assert beyond == (near.from_ns, near.to_ns), "it was in time when recorded"


def test_a_cell_of_two_threads_that_stamp_is_refused_by_its_folder(tmp_path: Path) -> None:
    folder = write_traced(tmp_path / "cell", "thief")
    (cell,) = find_cells(folder)
    threads = [dict(one) | {"stamps": True} for one in cell.record.threads.client]
    record = cell.record.changed(threads=cell.record.threads.model_copy(update={"client": threads * 2}))
    (folder / store.CELL).write_text(text_of(record), encoding="utf-8")
    (cell,) = find_cells(folder)
    with pytest.raises(RtmeterError) as caught:
        explained(cell)
    assert caught.value.value == str(folder) and f"has {2 * len(threads)} threads" in caught.value.message


def test_the_thread_that_is_known_to_stamp_is_followed_and_not_the_measured_one(tmp_path: Path) -> None:
    folder = write_traced(tmp_path / "cell", "thief")
    (cell,) = find_cells(folder)
    (measured,) = (one for one in cell.record.threads.client if one["role"] == "measured")
    assert explained(cell).tid == measured["tid"]
    executor = dict(measured) | {"role": "executor", "tid": 4321, "stamps": True}
    threads = cell.record.threads.model_copy(update={"client": [measured, executor]})
    assert explained(StoredCell(folder, cell.record.changed(threads=threads))).tid == 4321


@pytest.mark.parametrize("deadline_ns", [DEADLINE_NS, None])
def test_a_cell_whose_every_release_was_skipped_is_refused_by_its_folder(
    tmp_path: Path, deadline_ns: int | None
) -> None:
    stalled = replace(TRACED, warm_up=1, skip=True, delays=lambda k: (60 * MS,), deadline_ns=deadline_ns)
    folder = write_traced(tmp_path / "cell", "thief", stalled)
    (cell,) = find_cells(folder)
    with pytest.raises(RtmeterError) as caught:
        explained(cell)
    assert (caught.value.field, caught.value.value) == ("cell", str(folder))
    assert "has no release that was served" in caught.value.message


def test_a_cell_without_events_is_refused_by_its_folder(tmp_path: Path) -> None:
    folder = write_traced(tmp_path / "cell", "thief")
    (folder / FILE).unlink()
    (cell,) = find_cells(folder)
    with pytest.raises(RtmeterError) as caught:
        explained(cell)
    assert (caught.value.field, caught.value.value) == ("cell", str(folder))
