"""`rtmeter export`: every value, and what reads it back gives the same counts."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from rtmeter.cli import invoke
from rtmeter.errors import RtmeterError
from rtmeter.exports import FORMATS, cyclictest, export
from rtmeter.importers import read
from rtmeter.results import store
from rtmeter.statistics.counted_data import Histogram, Intervals
from rtmeter.statistics.judged import judged_run
from rtmeter.statistics.order import QUANTILES
from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.ranks import quantile_index
from rtmeter.statistics.views import LATER
from stored import cell_json, write_counted
from synthetic import Made, usual, write_cell, write_failed_cell

CYCLICTEST = Path(__file__).parent.parent / "importers" / "data" / "cyclictest.json"


def two_cells(root: Path) -> Path:
    write_cell(root / "a", Made(id="a", samples=3000, delays=usual(1, 50)))
    write_cell(root / "b=1", Made(id="b", samples=2000, delays=usual(2, 80)))
    return root


def judged(folder: Path) -> Ints:
    """The judged quantity per release."""
    return judged_run(store.read_cell(folder).meta, store.chunks(folder)).values


def stalling(k: int) -> list[float | None]:
    """Early, in time, or lost on the way."""
    return [-3_000 if k % 10 == 3 else 50_000, None if k % 25 == 7 else 20_000, 20_000]


# Tables.


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_table_has_every_row_in_order(tmp_path: Path, form: str) -> None:
    root = two_cells(tmp_path / "cells")
    for path, cell in ((root, True), (root / "a", False)):
        out = tmp_path / f"out.{form}"
        export(path, out, form)
        found = duckdb.sql(f"SELECT * FROM read_{'csv_auto' if form == 'csv' else form}('{out}')")
        assert ("cell" in found.columns) == cell
        k = [row[0] for row in found.select("k").fetchall()]
        counts = [pq.read_metadata(p / store.SAMPLES).num_rows for p in store.cell_folders(path)]
        assert k == [row for count in counts for row in range(count)]
        assert not list(tmp_path.glob("*.partial"))


def test_a_parquet_table_keeps_every_value(tmp_path: Path) -> None:
    folder = write_cell(tmp_path / "cell", Made(samples=30))
    export(folder, tmp_path / "out.parquet", "parquet")
    original, exported = pq.read_table(folder / store.SAMPLES), pq.read_table(tmp_path / "out.parquet")
    assert exported.column_names == original.column_names
    assert exported.to_pydict() == original.to_pydict()


def test_a_document_has_the_records_and_every_row(tmp_path: Path) -> None:
    root = two_cells(tmp_path / "cells")
    imported(root / "hist")
    export(root, tmp_path / "out.json", "json")
    found = json.loads((tmp_path / "out.json").read_text())
    assert (found["format"], found["version"]) == ("rtmeter-export", 1)
    folders = store.cell_folders(root)
    assert [cell["cell"] for cell in found["cells"]] == [str(folder.relative_to(root)) for folder in folders]
    for cell, folder in zip(found["cells"], folders, strict=True):
        assert cell["record"] == cell_json(folder)
        table = pq.read_table(folder / f"{cell['data']}.parquet")
        assert cell["columns"] == table.column_names
        assert cell["rows"] == [list(row.values()) for row in table.to_pylist()]
    assert [cell["data"] for cell in found["cells"]] == ["samples", "samples", "histogram", "histogram"]


def imported(folder: Path, code: int = 0) -> Path:
    assert invoke(["import", str(CYCLICTEST), "--out", str(folder)]) == code
    return folder


def test_a_table_of_histograms_has_a_row_a_bin(tmp_path: Path) -> None:
    folder = imported(tmp_path / "cells")
    export(folder, tmp_path / "out.csv", "csv")
    found = duckdb.sql(
        f"SELECT cell, sum(count) FROM read_csv_auto('{tmp_path / 'out.csv'}') GROUP BY 1 ORDER BY 1"
    ).fetchall()
    assert found == [("cyclictest-thread-0", 2000), ("cyclictest-thread-1", 2000)]


def test_samples_and_bins_make_no_one_table(tmp_path: Path) -> None:
    root = two_cells(tmp_path / "cells")
    imported(root / "hist")
    with pytest.raises(RtmeterError, match="samples and with histogram") as caught:
        export(root, tmp_path / "out.csv", "csv")
    assert "json" in (caught.value.remedy or "")


# HdrHistogram logs, read back by the hdrhistogram package.


def histograms(log: Path) -> list[HdrHistogram]:
    reader = HistogramLogReader(str(log), HdrHistogram(1, 10**13, 3))
    return list(iter(reader.get_next_interval_histogram, None))


def test_an_hdr_log_has_the_quantiles_to_three_digits(tmp_path: Path) -> None:
    folder = two_cells(tmp_path) / "a"
    assert export(folder, tmp_path / "out.hlog", "hdr") == []
    (found,) = histograms(tmp_path / "out.hlog")
    values = np.sort(judged(folder))
    assert found.get_total_count() == 3000
    for name, share in QUANTILES:
        exact = int(values[quantile_index(3000, share)])
        theirs = found.get_value_at_percentile(float(100 * share))
        assert exact * 0.999 <= theirs <= exact * 1.001 + 1, name
    assert found.get_min_value() * 0.999 <= values[0] <= found.get_max_value() * 1.001
    assert found.get_start_time_stamp() == pytest.approx(1763701200 * 1000 + 365 * 86400 * 1000, abs=1)


def test_hdr_counts_are_exactly_those_of_its_own_recording(tmp_path: Path) -> None:
    folder = two_cells(tmp_path) / "a"
    export(folder, tmp_path / "out.hlog", "hdr")
    (found,) = histograms(tmp_path / "out.hlog")
    theirs = HdrHistogram(1, int(judged(folder).max()), 3)
    for value in judged(folder).tolist():
        theirs.record_value(value)
    assert [
        (i.value_iterated_to, i.count_added_in_this_iter_step) for i in found.get_recorded_iterator()
    ] == [(i.value_iterated_to, i.count_added_in_this_iter_step) for i in theirs.get_recorded_iterator()]


def test_cells_are_tagged_where_there_are_several(tmp_path: Path) -> None:
    export(two_cells(tmp_path), tmp_path / "out.hlog", "hdr")
    found = histograms(tmp_path / "out.hlog")
    assert [(one.get_tag(), one.get_total_count()) for one in found] == [("a", 3000), ("b=1", 2000)]


def test_what_hdr_cannot_hold_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Made(measurement="roundtrip", samples=500, delays=stalling, loss_timeout_ns=900_000)
    folder = write_cell(tmp_path / "cell", made)
    lost = int((judged(folder) == LATER).sum())
    assert lost
    out = tmp_path / "out.hlog"
    assert invoke(["export", str(folder), "--format", "hdr", "-o", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{out}\n"
    assert f"{lost} lost releases have no value and are left out" in captured.err
    assert f"#[{lost} lost releases" in out.read_text()
    assert histograms(out)[0].get_total_count() == 500 - lost
    assert out.read_text().splitlines()[-1].split(",")[1] == "0.500"  # seconds: 500 releases, lost or not


# cyclictest's histogram, read back by our importer and as scripts read it.


def test_a_cyclictest_histogram_has_every_count(tmp_path: Path) -> None:
    root = two_cells(tmp_path / "cells")
    out = tmp_path / "out.hist"
    export(root, out, "cyclictest-hist")
    for series, folder in zip(read(out).series, store.cell_folders(root), strict=True):
        bins, counts = np.unique(judged(folder) // 1000, return_counts=True)
        assert series.histogram is not None
        assert np.array_equal(series.histogram.lower_ns, bins * 1000)
        assert np.array_equal(series.histogram.counts, counts)
        assert series.histogram.max_ns == judged(folder).max() // 1000 * 1000
    rows = [line.split() for line in out.read_text().splitlines() if line and not line.startswith("#")]
    assert [int(row[0]) for row in rows] == list(range(len(rows)))
    assert {len(row) for row in rows} == {3}


def test_a_cyclictest_histogram_goes_round(tmp_path: Path) -> None:
    folder = imported(tmp_path / "cells")
    notes = export(folder, tmp_path / "out.hist", "cyclictest-hist")
    assert [note.partition(": ")[2] for note in notes] == [
        "3 values beyond the tool's last bin are overflows, and in mean and maximum count as the largest of "
        "them"
    ] * 2
    for back, original in zip(read(tmp_path / "out.hist").series, read(CYCLICTEST).series, strict=True):
        assert back.histogram is not None and original.histogram is not None
        assert np.array_equal(back.histogram.lower_ns, original.histogram.lower_ns)
        assert np.array_equal(back.histogram.counts, original.histogram.counts)
        for deadline_ns in (50_000, 100_000, 150_000, 10_000_000):
            assert back.histogram.misses(deadline_ns) == original.histogram.misses(deadline_ns)
        assert (back.n, back.histogram.max_ns) == (original.n, original.histogram.max_ns)


def test_a_cyclictest_histogram_ends_where_the_first_of_its_tools_ended(tmp_path: Path) -> None:
    """One more microsecond would make what lies beyond surely later than it."""
    ended = Histogram(np.array([5_000]), 1000, np.array([1000]), 192, over_from_ns=10_900, below_ns=1_500_000)
    write_counted(tmp_path / "cells" / "ended", ended)
    write_counted(tmp_path / "cells" / "on", Histogram(np.array([9_000, 20_000]), 1000, np.array([3, 4])))
    notes = export(tmp_path / "cells", tmp_path / "out.hist", "cyclictest-hist")
    assert notes[1:] == ["on: what lies beyond the bins of another cell's tool is overflow"]
    found = [series.histogram for series in read(tmp_path / "out.hist").series]
    assert [one and (one.counts.tolist(), one.over, one.over_from_ns) for one in found] == [
        ([1000], 192, 10_000),
        ([3], 4, 10_000),
    ]
    assert found[0] is not None and found[0].misses(1_000_000) == ended.misses(1_000_000)


def test_a_cyclictest_histogram_has_no_bin_below_a_microsecond(tmp_path: Path) -> None:
    ended = Histogram(np.array([100]), 1, np.array([3]), 2, over_from_ns=400, below_ns=901)
    with pytest.raises(RtmeterError, match="ends before a microsecond"):
        export(write_counted(tmp_path / "cell", ended), tmp_path / "out.hist", "cyclictest-hist")


@pytest.mark.parametrize(
    ("form", "width_ns", "lower_ns", "wide"),
    [
        ("cyclictest-hist", 1_000, 7_000, None),
        ("cyclictest-hist", 1_000, 7_500, "1us"),
        ("cyclictest-hist", 50_000, 50_000, "50us"),
        ("hdr", 1, 7_000, None),
        ("hdr", 1_000, 7_000, "1us"),
        ("hdr", 1_000, 2_048_000, None),  # whose first three digits are the same
    ],
)
def test_bins_that_a_format_would_tell_apart_are_said(
    form: str, width_ns: int, lower_ns: int, wide: str | None, tmp_path: Path
) -> None:
    """Else all their values would be up to a bin too early, and nobody told."""
    data = Histogram(np.array([lower_ns]), width_ns, np.array([3]))
    notes = export(write_counted(tmp_path / "cell", data), tmp_path / "out", form)
    words = f"values were counted in bins of {wide}, and stand where their bin begins"
    assert notes == ([words] if wide else []) and (wide is None or words in (tmp_path / "out").read_text())


def test_what_lies_beyond_the_most_bins_is_overflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cyclictest, "MOST_BINS", 6)
    data = Histogram(np.array([-2000, 0, 5000, 6000]), 1000, np.array([2, 3, 4, 5]))
    folder = write_counted(tmp_path / "cell", data)
    assert export(folder, tmp_path / "out.hist", "cyclictest-hist") == ["2 early values count as 0"]
    (series,) = read(tmp_path / "out.hist").series
    assert series.histogram is not None
    assert series.histogram.counts.tolist() == [5, 4]
    assert (series.histogram.over, series.histogram.max_ns) == (5, 6000)


def test_no_values_are_a_histogram_too(tmp_path: Path) -> None:
    empty = Histogram(np.empty(0, np.int64), 1000, np.empty(0, np.int64))
    folder = write_counted(tmp_path / "cell", empty)
    export(folder, tmp_path / "out.hlog", "hdr")
    assert histograms(tmp_path / "out.hlog")[0].get_total_count() == 0
    export(folder, tmp_path / "out.hist", "cyclictest-hist")
    assert "# Total: 000000000" in (tmp_path / "out.hist").read_text()


def test_maxima_of_intervals_are_no_histogram(tmp_path: Path) -> None:
    data = Intervals(np.array([5, 0]), np.array([0, 2]), np.array([90_000, 0]))
    folder = write_counted(tmp_path / "cell", data)
    for form in ("hdr", "cyclictest-hist"):
        with pytest.raises(RtmeterError, match="only maxima of intervals"):
            export(folder, tmp_path / "out", form)
    export(folder, tmp_path / "out.csv", "csv")
    assert (tmp_path / "out.csv").read_text().splitlines() == ["received,lost,max_ns", "5,0,90000", "0,2,"]


def test_repeats_are_exported_by_the_name_they_share(tmp_path: Path) -> None:
    for number in (1, 2):
        write_cell(tmp_path / f"a-r{number}", Made(id=f"a-r{number}", samples=30, axes={"repeat": number}))
    export(tmp_path / "a", tmp_path / "out.json", "json")
    cells = json.loads((tmp_path / "out.json").read_text())["cells"]
    assert [cell["cell"] for cell in cells] == ["a-r1", "a-r2"]
    export(tmp_path / "a", tmp_path / "out.parquet", "parquet")
    names = pq.read_table(tmp_path / "out.parquet")["cell"]
    assert names.unique().to_pylist() == ["a-r1", "a-r2"]


# What cannot be written.


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "markdown"])  # it reads no samples
def test_what_cannot_be_written_is_said(tmp_path: Path, form: str) -> None:
    folder = write_cell(tmp_path / "cell", Made(samples=30))
    with pytest.raises(RtmeterError, match="in no folder that is there") as caught:
        export(folder, tmp_path / "none" / "out", form)
    assert caught.value.field == "-o" and "mkdir -p" in (caught.value.remedy or "")
    with pytest.raises(RtmeterError, match="is a folder"):
        export(folder, tmp_path, form)
    whole = (folder / store.SAMPLES).read_bytes()
    (tmp_path / "out").write_text("earlier")
    for damaged in (b"PAR1 junk", whole[:20] + b"\xa5" * 60 + whole[80:]):
        (folder / store.SAMPLES).write_bytes(damaged)
        with pytest.raises(RtmeterError) as caught:
            export(folder, tmp_path / "out", form)
        assert caught.value.remedy and "cannot be written" not in caught.value.message
        assert (tmp_path / "out").read_text() == "earlier"
        assert not list(tmp_path.glob("*.partial"))


def test_a_cell_without_samples_has_none_to_export(tmp_path: Path) -> None:
    folder = write_failed_cell(tmp_path / "cell", Made(), {"message": "was not there"})
    with pytest.raises(RtmeterError, match="holds no samples") as caught:
        export(folder, tmp_path / "out.csv", "csv")
    assert (caught.value.field, caught.value.value) == ("path", str(folder)) and caught.value.remedy


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RtmeterError, match="is no format") as caught:
        export(tmp_path, tmp_path / "out.xlsx", "xlsx")
    assert "cyclictest-hist" in (caught.value.remedy or "")
