"""Counts of an imported cell that cannot be are refused by each command that needs them, by their column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from imported import DATA

from rtmeter.cli import invoke
from stored import with_checksum

Damage = Callable[[pa.Table], pa.Table]


def counts(change: Callable[[np.ndarray], object]) -> Damage:
    def damage(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index("count")
        return table.set_column(place, "count", pa.array(change(table["count"].to_numpy().copy())))

    return damage


def first(value: object) -> Damage:
    return counts(lambda found: pa.array([value, *found[1:].tolist()], pa.int64()))


DAMAGES: list[tuple[Damage, str]] = [
    (first(-1), "count is no count"),
    (first(2**61), "count is no count"),
    (first(None), "count has rows without a value"),
    (counts(lambda found: found.astype(float)), "count is of type double"),
    (lambda table: table.take(list(range(len(table)))[::-1]), "lower_ns does not go up"),
    (lambda table: table.drop_columns(["lower_ns"]), "lower_ns"),
]
COMMANDS = ("verdict {} --deadline 1ms", "export {} --format hdr -o out.hlog", "plot {} --kind ccdf -o p.svg")


@pytest.mark.parametrize(("damage", "said"), DAMAGES, ids=[said for _, said in DAMAGES])
def test_a_histogram_that_cannot_be_is_refused(
    damage: Damage,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(["import", str(DATA / "oslat.json"), "--out", "out"]) == 0
    (file,) = Path("out").rglob("histogram.parquet")
    table = pq.read_table(file)
    pq.write_table(damage(table).replace_schema_metadata(table.schema.metadata), file)
    with_checksum(file.parent)
    capsys.readouterr()
    for command in COMMANDS:
        assert invoke(command.format(file.parent).split()) == 1, command
        error = capsys.readouterr().err
        assert "histogram.parquet" in error and said in error and "import the tool's file again" in error
