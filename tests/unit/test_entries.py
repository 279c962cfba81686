"""Which cells are repeats of one condition, and what the state of one makes of all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rtmeter.judge.entries import by_condition
from rtmeter.results.overview import CellEntry, cell_entries
from synthetic import Made, write_cell


def write(folder: Path, *repeats: int, name: str = "a", **made: Any) -> Path:
    for number in repeats:
        axes = {"repeat": number}
        write_cell(folder / f"{name}-r{number}", Made(id=f"{name}-r{number}", axes=axes, samples=10, **made))
    return folder


def condition(folder: Path, *states: Any) -> CellEntry:
    """Of repeats in these states."""
    cells = cell_entries(write(folder, *range(1, len(states) + 1)))
    (found,) = by_condition([replace(cell, state=state) for cell, state in zip(cells, states, strict=True)])
    return found


@pytest.mark.parametrize(
    ("states", "outcome"),
    [
        (("complete", "damaged", "failed"), "error"),
        (("running", "failed", "complete"), "error"),
        (("not run", "running", "complete"), "unfinished"),
        (("interrupted", "skipped", "complete"), "unfinished"),
        (("complete", "interrupted", "complete"), "inconclusive"),
    ],
)
def test_the_state_of_one_repeat_is_that_of_all(
    tmp_path: Path, states: tuple[str, ...], outcome: str
) -> None:
    found = condition(tmp_path, *states)
    assert (found.state, found.outcome) == (states[1], outcome)


def test_a_repeat_whose_data_are_invalid_makes_all_of_them_an_error(tmp_path: Path) -> None:
    write(tmp_path, 1, 3)
    write(tmp_path, 2, changes={"valid": False})
    (found,) = by_condition(cell_entries(tmp_path))
    assert (found.id, found.state, found.outcome) == ("a", "complete", "error")
    assert [one.id for one in found.repeats] == ["a-r1", "a-r2", "a-r3"]


def test_what_is_wrong_with_one_is_said_with_its_name_in_the_first_place_of_all(tmp_path: Path) -> None:
    cells = {cell.id: cell for cell in cell_entries(write(tmp_path, 1, 2, 10))}
    first, tenth = (replace(cells[name], place=place) for name, place in (("a-r1", 9), ("a-r10", 7)))
    broken = replace(cells["a-r2"], place=8, state="failed", problem="the probe died")
    (found,) = by_condition([tenth, broken, first])
    assert (found.problem, found.place, found.id) == ("a-r2: the probe died", 7, "a")
    assert [one.id for one in found.repeats] == ["a-r1", "a-r2", "a-r10"], "in whatever order they come"


def test_cells_of_another_requirement_or_run_are_no_repeats(tmp_path: Path) -> None:
    write(tmp_path / "one", 1, 2)
    write(tmp_path / "two", 1, 2)
    assert [len(one.repeats) for one in by_condition(cell_entries(tmp_path))] == [2, 2]
    write(tmp_path / "two", 3, deadline_ns=2_000_000)
    assert [len(one.repeats) for one in by_condition(cell_entries(tmp_path))] == [2, 0, 0, 0]
