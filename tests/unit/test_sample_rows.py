"""samples.parquet is read column by column: what is not needed is not decoded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rtmeter.errors import RtmeterError
from rtmeter.model import ABSENT, STATUS_NAMES, WARM_UP_FLAG
from rtmeter.results import store
from rtmeter.samples import rows
from rtmeter.samples.rows import Samples
from rtmeter.statistics.judged import judged_run
from rtmeter.statistics.summary import summarise
from synthetic import Made, columns_of, meta_of, rows_of, usual, write_samples

GROUP = 100
CELLS = {
    "wakeup": Made(samples=450, warm_up=50, delays=usual(1, 50)),
    "skipping": Made(
        samples=450, warm_up=50, skip=True, delays=lambda k: [2_500_000 if k % 60 == 7 else 50_000]
    ),
    "roundtrip": Made(
        measurement="roundtrip",
        samples=350,
        delays=lambda k: (50_000, None if k % 90 == 20 else 9_000, 9_000),
    ),
    "cycle": Made(measurement="cycle", samples=400, delays=usual(2, 20)),
}


def write(path: Path, made: Made) -> dict[str, np.ndarray]:
    """The cell's samples in row groups of GROUP rows."""
    columns, whole = columns_of(made, rows_of(made)), path.with_suffix(".whole")
    write_samples(whole, columns, meta_of(made))
    pq.write_table(pq.read_table(whole), path, row_group_size=GROUP)
    return columns


@pytest.fixture(params=list(CELLS))
def made(request: pytest.FixtureRequest) -> Made:
    return CELLS[str(request.param)]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each column of a row group was decoded."""
    counted: Counter[str] = Counter()
    whole = rows._Group._read

    def counting(self: rows._Group, *names: str) -> pa.Table:
        counted.update(names)
        return whole(self, *names)

    monkeypatch.setattr(rows._Group, "_read", counting)
    return counted


@pytest.mark.parametrize("most", [10**6, GROUP - 1], ids=["by group", "in parts"])
@pytest.mark.parametrize("chunk", [37, 10**6])
def test_every_column_is_what_was_written(
    tmp_path: Path, made: Made, most: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_MOST_GROUP_ROWS", most)
    monkeypatch.setattr(rows, "_CHUNK_ROWS", chunk)
    columns = write(tmp_path / "samples.parquet", made)
    found = list(Samples(tmp_path / "samples.parquet").chunks(*columns))
    assert all(set(part) == set(columns) for part in found)
    assert all("k" in part and "no_column" not in part for part in found)
    for name, values in columns.items():
        assert np.array_equal(np.concatenate([part[name] for part in found]), values), name


def test_a_verdict_decodes_no_column_that_it_does_not_need(
    tmp_path: Path, made: Made, read: Counter[str]
) -> None:
    columns = write(tmp_path / store.SAMPLES, made)
    groups = -(-len(columns["k"]) // GROUP)
    from_file = judged_run(meta_of(made), store.chunks(tmp_path))
    needed = {"wakeup": {"wake_ns", "release_ns"}, "roundtrip": {"received_ns", "release_ns"}}
    needed |= {"cycle": {"start_ns", "response_received_ns", "release_ns"}}
    passes = 2 if made.measurement == "cycle" else 1
    times = {name: count for name, count in read.items() if name.endswith("_ns") and name != "free_ns"}
    assert read["k"] == 0
    assert set(times) == needed[made.measurement]
    assert max(times.values()) <= passes * groups
    assert read["free_ns"] <= sum(
        bool((part != ABSENT).any())
        for part in np.split(columns["free_ns"], range(GROUP, len(columns["k"]), GROUP))
    )
    whole = judged_run(meta_of(made), lambda: [columns])
    assert np.array_equal(from_file.values, whole.values)


def test_what_is_the_same_in_a_whole_row_group_is_not_decoded(tmp_path: Path, read: Counter[str]) -> None:
    columns = write(tmp_path / store.SAMPLES, CELLS["wakeup"])
    assert summarise(meta_of(CELLS["wakeup"]), store.chunks(tmp_path)) == summarise(
        meta_of(CELLS["wakeup"]), lambda: [columns]
    )
    assert read["free_ns"] == 0
    assert read["status"] == 1  # of the row group in which the warm-up ends
    assert read["wake_ns"] == read["release_ns"] == read["k"] == 5


def test_the_statistics_of_a_file_are_not_taken_for_more_than_they_say(tmp_path: Path) -> None:
    k = pa.array(range(4))
    status = pa.array(["served", None, "served", "served"]).dictionary_encode()
    lost = pa.array(["lost"] * 4).dictionary_encode()
    warm_up = pa.array([True] * 4)
    names = ["k", "wake_ns", "status", "warm_up"]
    wakes = pa.array([None, None, None, 7], pa.int64())
    for states, expected in ((lost, STATUS_NAMES.index("lost") | WARM_UP_FLAG), (status, None)):
        pq.write_table(pa.table([k, wakes, states, warm_up], names=names), tmp_path / "samples.parquet")
        samples = Samples(tmp_path / "samples.parquet")
        if expected is not None:
            (chunk,) = samples.chunks("wake_ns")
            assert chunk["wake_ns"].tolist() == [ABSENT] * 3 + [7]
            assert chunk["status"].tolist() == [expected] * 4
        else:
            (chunk,) = samples.chunks("wake_ns")
            with pytest.raises(RtmeterError, match="a row has no status"):
                chunk["status"]
    without = pq.ParquetWriter(
        tmp_path / "samples.parquet",
        pa.table([k, wakes, lost, warm_up], names=names).schema,
        write_statistics=False,
    )
    without.write_table(pa.table([k, wakes, lost, warm_up], names=names))
    without.close()
    (chunk,) = Samples(tmp_path / "samples.parquet").chunks("wake_ns")
    assert chunk["status"].tolist() == [STATUS_NAMES.index("lost") | WARM_UP_FLAG] * 4
    assert chunk["wake_ns"].tolist() == [ABSENT] * 3 + [7]


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("wake_ns", "wake_ns"),
        ("k", "a row has no k"),
        ("status", "a row has no status"),
        ("warm_up", "a row has no status"),
    ],
)
def test_samples_that_lack_a_column_or_its_values_are_refused_by_name(
    tmp_path: Path, gone: str, said: str
) -> None:
    write(tmp_path / store.SAMPLES, CELLS["wakeup"])
    table = pq.read_table(tmp_path / store.SAMPLES)
    if gone == "k":
        place = table.schema.get_field_index("k")
        table = table.set_column(place, "k", pa.nulls(len(table), pa.int64()))
    elif gone in ("status", "warm_up"):
        values = pa.array([None, *table.column(gone).to_pylist()[1:]])
        table = table.set_column(table.schema.get_field_index(gone), gone, values)
    else:
        table = table.drop_columns([gone])
    pq.write_table(table, tmp_path / store.SAMPLES)
    with pytest.raises(RtmeterError, match=f"cannot be read: .*{said}") as caught:
        if gone == "k":
            Samples(tmp_path / store.SAMPLES).k_range()
        else:
            judged_run(meta_of(CELLS["wakeup"]), store.chunks(tmp_path))
    assert caught.value.where == str(tmp_path / store.SAMPLES) and caught.value.remedy
