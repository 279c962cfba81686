"""What many records have alike is kept once, and each of them says what it said."""

from __future__ import annotations

from pathlib import Path

from rtmeter.results import store
from rtmeter.results.cells import find_cells
from rtmeter.results.overview import cell_entries
from rtmeter.results.record import text_of
from synthetic import Made, write_cell


def test_what_cells_have_alike_is_kept_once(tmp_path: Path) -> None:
    doubts = [{"type": "steal", "message": "m", "hint": "h"}]
    for name, delay in (("a", 50_000), ("b", 50_000), ("c", 90_000)):
        write_cell(
            tmp_path / name,
            Made(
                id=name,
                samples=50,
                delays=lambda k, by=delay: (by + k,),
                changes={"warnings": doubts, "axes": {"load": name}},
            ),
        )
    for cells in (find_cells(tmp_path), cell_entries(tmp_path)):
        first, *others = (cell.record for cell in cells)
        assert first is not None and len(others) == 2
        for cell in cells:
            assert cell.record is not None
            assert text_of(cell.record) == text_of(store.read_cell(cell.folder))
            assert cell.record == store.read_cell(cell.folder)
        for other in others:
            assert other is not None
            assert other.config is first.config and other.machine is first.machine
            assert other.axes is not first.axes and other.warnings == first.warnings
            assert other.model_fields_set is first.model_fields_set
