"""A cell's data: the one file that its record has a summary of, or an error that names it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rtmeter import cli
from rtmeter.errors import RtmeterError
from rtmeter.model import SERVED
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


def test_samples_of_another_number_or_kind_are_refused(tmp_path: Path) -> None:
    cell = write_cell(tmp_path / "cell", Made(samples=30, warm_up=10))
    file = cell / store.SAMPLES
    whole = file.read_bytes()
    for columns, said in (
        ({"wake_ns": None}, "lacks columns that cell.json has a summary of: wake_ns"),
        ({"wake_ns": pa.array(np.arange(40.0))}, "wake_ns is of type double, not int64"),
        ({"k": pa.array(["x"] * 40)}, "k is of type string, not int64"),
        ({"k": None}, "it has no column k"),
        ({"status": None}, "it has no column status"),
        ({"status": [1] * 40}, "status is of type int64, not dictionary"),
        ({"warm_up": [1] * 40}, "warm_up is of type int64, not bool"),
    ):
        altered(file, **columns)
        error = refusal(cell)
        assert error.where == str(file) and said in error.message
        file.write_bytes(whole)
    for rows in (0, 39):
        pq.write_table(pq.read_table(file).slice(0, rows), file)
        assert refusal(cell).message == f"holds {rows} releases, and cell.json counts 40"
        file.write_bytes(whole)
    for text in (pa.string(), pa.large_string()):  # as other tools write it
        altered(file, status=pa.array(["served"] * 40, text))
        assert data_of(cell, store.read_cell(cell)) == file
        assert next(iter(store.chunks(cell)()))["status"][10] == SERVED


def test_a_column_is_needed_where_a_quantity_or_a_skipped_release_is_made_of_it(tmp_path: Path) -> None:
    late = Made(samples=30, warm_up=0, skip=True, delays=lambda k: [2_500_000 if k == 5 else 1000])
    for name, made, needed in (("skips", late, True), ("none", replace(late, skip=False), False)):
        cell = write_cell(tmp_path / name, made)
        skipped = store.read_cell(cell).summary.counts["skipped"]
        assert bool(skipped) == needed
        altered(cell / store.SAMPLES, free_ns=None)
        if needed:
            assert "free_ns" in refusal(cell).message
        else:
            assert data_of(cell, store.read_cell(cell)) is not None
    trips = Made(measurement="roundtrip", samples=30, warm_up=0, skip=True)
    trips.delays = lambda k: [2_500_000 if k == 5 else 1000, 1000, 1000]
    skipping = write_cell(tmp_path / "skipping", trips)
    assert store.read_cell(skipping).summary.counts["skipped"]
    altered(skipping / store.SAMPLES, free_ns=None)
    assert data_of(skipping, store.read_cell(skipping)) is not None
    ping = write_cell(tmp_path / "ping", Made(measurement="roundtrip", samples=30))
    altered(ping / store.SAMPLES, server_sent_ns=None)
    assert "server_sent_ns" in refusal(ping).message


@pytest.mark.parametrize(("measurement", "mode"), [("timer", "one_shot"), ("cycle", None), ("request", None)])
def test_every_release_is_counted_once(tmp_path: Path, measurement: str, mode: str | None) -> None:
    """Whatever becomes of it (an own loop's last hours: test_own_loop.py; a recovered one: test_cli.py)."""
    made = Made(measurement=measurement, mode=mode, samples=40, warm_up=7, delays=losing)
    cell = write_cell(tmp_path / "cell", made)
    assert data_of(cell, store.read_cell(cell)) == cell / store.SAMPLES
    pq.write_table(pq.read_table(cell / store.SAMPLES).slice(1), cell / store.SAMPLES)
    assert refusal(cell).message == "holds 46 releases, and cell.json counts 47"


def losing(k: int) -> list[float | None]:
    gone = k % 10 == 3
    return [None, None, None] if gone and k % 20 == 3 else [1000, None if gone else 1000, 1000]


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


def altered(file: Path, **columns: object) -> None:
    """Other columns in the file, or none."""
    table = pq.read_table(file)
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.remove_column(place)
        if values is not None:
            array = values if isinstance(values, pa.Array) else pa.array(values, pa.int64())
            table = table.add_column(place, name, array)
    pq.write_table(table, file)


def refused(cell: Path, name: str, columns: dict[str, object]) -> str:
    """What is said of the file, which has these columns instead."""
    altered(cell / name, **columns)
    error = refusal(cell)
    assert error.where == str(cell / name)
    return error.message


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"count": [5, -2]}, "count is no count in each row"),
        ({"count": [5, None]}, "count has rows without a value"),
        ({"count": [5, 3]}, "holds 8 values, and cell.json counts 7"),
        ({"count": [2**62, 2**62]}, "count is no count in each row"),
        ({"count": pa.array([5.0, 2.0])}, "count is of type double, not int64"),
        ({"count": None}, "it has no column count"),
        ({"upper_ns": None}, "it has no column upper_ns"),
        ({"lower_ns": [3000, 1000]}, "lower_ns does not go up"),
        ({"lower_ns": [1000, 1000]}, "lower_ns does not go up"),
        ({"lower_ns": [None, 1000]}, "lower_ns has rows without a value"),
    ],
)
def test_a_histogram_that_cannot_be_one_is_refused(
    tmp_path: Path, columns: dict[str, object], said: str
) -> None:
    assert said in refused(write_counted(tmp_path / "cell", BINS), counted.HISTOGRAM, columns)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"received": [6, 0]}, "holds 8 values, and cell.json counts 7"),
        ({"received": [5, -1], "lost": [0, 3]}, "received is no count in each row"),
        ({"lost": pa.array([0, 2], pa.int32())}, "lost is of type int32, not int64"),
        ({"max_ns": None}, "it has no column max_ns"),
        ({"max_ns": [None, None]}, "max_ns has rows without a value where messages were received"),
        (
            {"received": [1, 0], "max_ns": [None, None]},
            "max_ns has rows without a value where messages were received",
        ),
    ],
)
def test_intervals_that_cannot_be_some_are_refused(
    tmp_path: Path, columns: dict[str, object], said: str
) -> None:
    assert said in refused(write_counted(tmp_path / "cell", MAXIMA), counted.INTERVALS, columns)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"width_ns": 0}, "contradict its rows"),
        ({"over": 3}, "contradict its rows"),
        ({"over": -2}, "contradict its rows"),
        ({"width_ns": "1"}, "another type: width_ns"),
        ({"dropped": None}, "another type: dropped"),
        ({"below_ns": 1.5}, "another type: below_ns"),
        ({"over_from_ns": None}, "another type: over_from_ns"),
        ({"version": 2}, "of version 2"),
    ],
)
def test_metadata_that_contradict_the_rows_are_refused(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    cell = write_counted(tmp_path / "cell", BINS)
    file = cell / counted.HISTOGRAM
    table = pq.read_table(file)
    about = json.loads(table.schema.metadata[b"rtmeter"])
    for key, value in changes.items():
        pq.write_table(table.replace_schema_metadata({"rtmeter": json.dumps(about | {key: value})}), file)
        assert said in refusal(cell).message
        lacking = {name: about[name] for name in about if name != key}
        pq.write_table(table.replace_schema_metadata({"rtmeter": json.dumps(lacking)}), file)
        assert f"its metadata have no '{key}'" in refusal(cell).message
    pq.write_table(table.replace_schema_metadata(None), file)
    assert "its metadata have no" in refusal(cell).message


def test_values_beyond_the_last_bin_are_a_row_of_their_own(tmp_path: Path) -> None:
    data = Histogram(np.array([1000]), 1000, np.array([5]), over=2, over_from_ns=9000)
    cell = write_counted(tmp_path / "cell", data)
    found = counted_of(cell, store.read_cell(cell))
    assert isinstance(found, Histogram)
    assert (found.over, found.counts.tolist(), found.n) == (2, [5], 7)
    altered(cell / counted.HISTOGRAM, count=[6, 1])
    assert "contradict its rows" in refusal(cell).message


def test_a_histogram_without_rows_is_refused_where_there_were_some(tmp_path: Path) -> None:
    cell = write_counted(tmp_path / "cell", BINS)
    pq.write_table(pq.read_table(cell / counted.HISTOGRAM).slice(0, 0), cell / counted.HISTOGRAM)
    assert "holds 0 values, and cell.json counts 7" in refusal(cell).message


def test_of_maxima_of_intervals_no_waterfall_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their quantiles are not known."""
    cells = [str(write_counted(tmp_path / name, MAXIMA)) for name in ("a", "b")]
    assert cli.invoke(["plot", *cells, "--kind", "waterfall", "-o", str(tmp_path / "out.svg")]) == 1
    assert "--at = 'p99': is not known of a or b" in capsys.readouterr().err
