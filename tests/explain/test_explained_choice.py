"""Which releases of a cell count as late, and which in time they are compared with, however the data come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rtmeter.judge.explained import CellExplanation, explained
from rtmeter.results import store
from rtmeter.results.cells import find_cells
from rtmeter.statistics.quantities import Columns
from traced_cells import DEADLINE_NS, LATE_NS, TRACED, USUAL_NS, write_traced

Explains = Callable[[Path], CellExplanation]


@pytest.fixture
def piecewise(monkeypatch: pytest.MonkeyPatch) -> Explains:
    """Explains the cell in the folder, whose samples come seven at a time."""
    whole = store.chunks

    def pieces(folder: Path) -> Callable[[], Iterator[Columns]]:
        (rows,) = whole(folder)()
        cuts = range(0, len(rows["k"]), 7)
        return lambda: ({name: column[at : at + 7] for name, column in rows.items()} for at in cuts)

    def explain(folder: Path) -> CellExplanation:
        (cell,) = find_cells(folder)
        monkeypatch.setattr(store, "chunks", pieces)
        return explained(cell)

    return explain


def late(found: CellExplanation) -> list[int]:
    return [one.release.k for one in found.found.releases if one.release.late]


def test_a_release_at_its_deadline_is_in_time(tmp_path: Path) -> None:
    delays = {3: DEADLINE_NS, 4: DEADLINE_NS + 1}
    made = replace(TRACED, delays=lambda k: (delays.get(k, USUAL_NS),))
    (cell,) = find_cells(write_traced(tmp_path / "cell", "thief", made))
    found = explained(cell)
    assert (late(found), found.in_time) == ([4], TRACED.samples - 1)


def test_without_a_deadline_what_one_in_a_hundred_passes_counts_as_late(tmp_path: Path) -> None:
    order = np.random.default_rng(1).permutation(200)
    made = replace(TRACED, samples=200, deadline_ns=None, delays=lambda k: (1_000 + int(order[k]),))
    (cell,) = find_cells(write_traced(tmp_path / "cell", "thief", made))
    found = explained(cell)
    assert (found.by_deadline, found.late_after_ns) == (False, 1_000 + 197)
    assert sorted(int(order[k]) for k in late(found)) == [198, 199]
    found = explained(cell, deadline_ns=1_150)
    assert (found.by_deadline, found.late_after_ns, len(late(found))) == (True, 1_150, 49)


def test_what_is_compared_is_drawn_of_all_pieces_and_always_the_same(
    tmp_path: Path, piecewise: Explains, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_traced(tmp_path / "cell", "thief")
    monkeypatch.setattr("rtmeter.judge.explained.MOST_IN_TIME", 9)
    found = [piecewise(folder) for _ in range(3)]
    drawn = [[one.release.k for one in each.found.releases if not one.release.late] for each in found]
    assert [each.compared for each in found] == [9] * 3 and drawn == [drawn[0]] * 3
    assert len({k // 7 for k in drawn[0]}) > 1, "they are not of one piece"
    assert drawn[0] != sorted(set(range(TRACED.samples)) - {*late(found[0])})[:9]


def test_neither_the_warm_up_nor_what_was_never_served_is_explained(
    tmp_path: Path, piecewise: Explains
) -> None:
    def delays(k: int) -> tuple[int]:
        return (9 * LATE_NS if k in (2, 9, 23) else USUAL_NS,)  # each passes over three releases

    made = replace(TRACED, warm_up=7, skip=True, delays=delays)
    folder = write_traced(tmp_path / "cell", "thief", made)
    found = piecewise(folder)
    assert late(found) == [9, 23]
    assert found.unserved == 6 and found.in_time == TRACED.samples - 6 - 2
    (cell,) = find_cells(folder)
    for k in (None, 2):
        assert min(one.release.k for one in explained(cell, k).found.releases) == 7
