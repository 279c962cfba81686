"""What a watch keeps of its rows: whole in the file, and no more in memory the longer it goes on."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rtmeter.conditions.monitor_table import ROWS_A_GROUP, MonitorRow, MonitorTable

COLUMNS = 60


def row(i: int) -> MonitorRow:
    """Whole numbers beyond what a float holds, and a value that is not always known."""
    row: MonitorRow = {"at_ns": 2**60 + i, "temperature": None if i % 3 == 0 else i / 7}
    return row | {f"cpu{n}_busy": float(i + n) for n in range(COLUMNS)}


@pytest.mark.parametrize("count", [1, 2, ROWS_A_GROUP, ROWS_A_GROUP + 1, 3 * ROWS_A_GROUP + 5])
def test_every_row_is_in_the_file(tmp_path: Path, count: int) -> None:
    table = MonitorTable(tmp_path / "monitor.parquet")
    for i in range(count):
        table.add(row(i))
    table.close()
    assert pq.read_table(tmp_path / "monitor.parquet").to_pylist() == [row(i) for i in range(count)]
    assert table.broken is None


def test_a_name_that_comes_later_is_left_out_and_one_that_goes_is_null(tmp_path: Path) -> None:
    table = MonitorTable(tmp_path / "monitor.parquet")
    for values in ({"a_ns": 1, "b": 2.0}, {"a_ns": 2, "c": 3.0}):
        table.add(dict(values))
    table.close()
    found = pq.read_table(tmp_path / "monitor.parquet").to_pylist()
    assert found == [{"a_ns": 1, "b": 2.0}, {"a_ns": 2, "b": None}]


def test_rows_take_no_memory_beyond_the_first(tmp_path: Path) -> None:
    """Counted in bytes allocated: a group of rows as objects would take more than a megabyte."""
    table = MonitorTable(tmp_path / "monitor.parquet")
    table.add(row(0))
    tracemalloc.start()
    try:
        for i in range(1, ROWS_A_GROUP):
            table.add(row(i))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 10_000
    table.close()


def test_nothing_is_imported_when_the_run_has_begun(tmp_path: Path) -> None:
    """Writing begins with the first row, and a group later brings no module."""
    code = f"""
import sys
from pathlib import Path
from rtmeter.conditions.monitor_table import ROWS_A_GROUP, MonitorTable
path = Path({str(tmp_path / "monitor.parquet")!r})
table = MonitorTable(path)
table.add({{"at_ns": 1, "busy": None}})
assert path.stat().st_size > 0, "not begun"
before = set(sys.modules)
for i in range(2 * ROWS_A_GROUP):
    table.add({{"at_ns": i, "busy": i / 2}})
table.close()
print(sorted(set(sys.modules) - before), "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[] False\n", "")
