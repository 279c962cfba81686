"""A cell's data: the one file that its record has a summary of, or an error that names it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from rtmeter.errors import RtmeterError
from rtmeter.results import counted, store
from rtmeter.results.data import counted_of, data_of, samples_of, view_samples
from rtmeter.statistics.counted_data import Histogram, Intervals
from stored import PROVENANCE, write_counted
from synthetic import Made, write_cell, write_failed_cell

BINS = Histogram(np.array([1000, 3000]), 1000, np.array([5, 2]))
MAXIMA = Intervals(np.array([5, 0]), np.array([0, 2]), np.array([90_000, 0]))


def refusal(folder: Path) -> RtmeterError:
    with pytest.raises(RtmeterError) as caught:
        data_of(folder, store.read_cell(folder))
    assert caught.value.remedy
    return caught.value


def test_a_measured_cell_has_samples(tmp_path: Path) -> None:
    cell = write_cell(tmp_path / "cell", Made(samples=30))
    counted.write(cell, BINS)  # none of its own
    assert data_of(cell, store.read_cell(cell)) == samples_of(cell, store.read_cell(cell))
    assert data_of(cell, store.read_cell(cell)) == cell / store.SAMPLES
    assert counted_of(cell, store.read_cell(cell)) is None


@pytest.mark.parametrize(("data", "file"), [(BINS, counted.HISTOGRAM), (MAXIMA, counted.INTERVALS)])
def test_an_imported_cell_has_what_it_was_made_of(
    tmp_path: Path, data: Histogram | Intervals, file: str
) -> None:
    cell = write_counted(tmp_path / "cell", data)
    record = store.read_cell(cell)
    assert data_of(cell, record) == cell / file
    assert samples_of(cell, record) is None
    found = counted_of(cell, record)
    assert type(found) is type(data) and found.n == data.n
    (cell / file).unlink()
    error = refusal(cell)
    assert error.where == str(cell / file) and "import the tool's file again" in str(error)


def test_a_cell_that_measured_nothing_has_none(tmp_path: Path) -> None:
    cell = write_failed_cell(tmp_path / "cell", Made(), {"message": "was not there"})
    record = store.read_cell(cell)
    assert data_of(cell, record) is samples_of(cell, record) is counted_of(cell, record) is None


def test_what_is_not_there_is_named_with_what_helps(tmp_path: Path) -> None:
    changes = {"measurement": "imported", "imported": PROVENANCE}
    for name, more in (("measured", {}), ("imported", changes)):
        cell = write_cell(tmp_path / name, Made(samples=30, changes=more))
        (cell / store.SAMPLES).unlink()
        error = refusal(cell)
        assert error.where == str(cell / store.SAMPLES) and "is not there" in error.message
        assert ("import" in str(error.remedy)) == (name == "imported")
        assert "recover" not in str(error.remedy)
    (tmp_path / "measured" / store.CLIENT_LOG).write_bytes(b"")
    assert "rtmeter recover" in str(refusal(tmp_path / "measured").remedy)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    cell = write_cell(tmp_path / "cell", Made(samples=30))
    (cell / store.SAMPLES).unlink()
    (cell / store.SAMPLES).mkdir()
    assert refusal(cell).message == "is no file"


def test_samples_of_many_cells_are_one_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "it's"
    write_cell(root / "a", Made(id="a", samples=30))
    write_cell(root / "b=1", Made(id="b", measurement="roundtrip", samples=20))
    monkeypatch.chdir(root)
    with duckdb.connect() as connection:
        view_samples(connection, {Path("a", store.SAMPLES): "it's a", Path("b=1", store.SAMPLES): "b=1"})
        found = connection.sql(
            "SELECT cell, count(*), count(wake_ns), count(received_ns) FROM samples GROUP BY 1 ORDER BY 1"
        ).fetchall()
    rows = [pq.read_metadata(root / name / store.SAMPLES).num_rows for name in ("b=1", "a")]
    assert [(row[0], row[1]) for row in found] == [("b=1", rows[0]), ("it's a", rows[1])]
    assert found[1][2] == rows[1] and found[1][3] == 0
    assert found[0][2] == 0 and found[0][3] > 0
