"""Exports in the formats of the 2014 and 2020 timer tools: what reads them back gives the same counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rtmeter.cli import invoke
from rtmeter.errors import RtmeterError
from rtmeter.exports import OF_QUANTITY, export, timer2014
from rtmeter.importers import read
from stored import cell_json
from synthetic import Made, write_cell

SHOTS = [5_000, 5_999, 42_000, 900, -750, 123_456, 0, 7_100] * 25
"""How late the shots fire, ns; stamped after arming, two of eight are early."""


def one_shots(folder: Path, late: Callable[[int], float | None] = lambda k: SHOTS[k]) -> Path:
    made = Made(
        measurement="timer", mode="one_shot", samples=200, warm_up=0, delays=lambda k: (late(k), 0, 0)
    )
    return write_cell(folder, made)


@pytest.mark.parametrize(
    ("quantity", "shift", "title"),
    [(None, -300, "measured"), ("measured", 0, "measured"), ("reported", -1_100, "reported")],
)
def test_a_log_of_the_2014_tests_is_read_back(
    quantity: str | None, shift: int, title: str, tmp_path: Path
) -> None:
    values = np.array(SHOTS) + shift
    out = tmp_path / "out.log"
    export(one_shots(tmp_path / "cell"), out, "ros1-timer-log", quantity)
    found = read(out)
    [series] = found.series
    assert found.quantity.startswith(title) and found.period_ns == 1_000_000 and series.n == len(SHOTS)
    assert series.histogram is not None
    expected = {
        int(edge): int(count)
        for edge, count in zip(*np.unique(values // 1000, return_counts=True), strict=True)
    }
    bins = zip(series.histogram.lower_ns.tolist(), series.histogram.counts.tolist(), strict=True)
    assert {edge // 1000: count for edge, count in bins if count} == expected


@pytest.mark.parametrize("latest", [-3_000, -1_500, -1_000, -1])
@pytest.mark.parametrize("earliest", [-9_500, -999])
def test_shots_that_all_were_early_are_read_back(earliest: int, latest: int, tmp_path: Path) -> None:
    values = np.linspace(min(earliest, latest), latest, 200).round().astype(int)
    out = tmp_path / "out.log"
    export(one_shots(tmp_path / "cell", lambda k: int(values[k])), out, "ros1-timer-log", "measured")
    [series] = read(out).series
    assert series.histogram is not None
    # Whole microseconds were truncated towards zero, so that -3.0 stands with what lies above -4.
    edges, counts = np.unique(np.fix(values / 1000).astype(int) - 1, return_counts=True)
    assert series.histogram.lower_ns.tolist() == (1000 * edges).tolist()
    assert series.histogram.counts.tolist() == counts.tolist()
    assert series.histogram.max_ns == 1000 * edges[-1]


def test_the_log_holds_the_minima_means_and_maxima_of_all_three(tmp_path: Path) -> None:
    cell = one_shots(tmp_path / "cell")
    assert invoke(["export", str(cell), "--format", "ros1-timer-log", "-o", str(tmp_path / "out.log")]) == 0
    lines = (tmp_path / "out.log").read_text().splitlines()
    after = cell_json(cell)["summary"]["quantities"]["measured_after"]["as_served"]
    least, mean, most = (int(after[f"{what}_ns"] / 1000) for what in ("min", "mean", "max"))
    assert lines[1] == "# Timeout: 1000us, LoopLength: 200"
    assert lines[2] == f"# Measured:\t MIN: {least}us \tAVG: {mean}us \tMAX: {most}us"
    assert lines[4] == "# Difference:\t MIN: 0us \tAVG: 0us \tMAX: 0us"
    assert lines[5] == "000000 \t000025"  # those early by 300 ns are in no row


def test_the_mean_difference_is_that_of_its_sizes_and_all_other_means_have_a_sign() -> None:
    values = np.array([-4_000, 2_000, -1_000])
    cell = SimpleNamespace(of=lambda _: [values], record=SimpleNamespace(config={"timeout_ns": 1_000_000}))
    bins = {name: timer2014._bins(cell, name) for name in ("Measured", "Difference")}  # type: ignore[arg-type]
    _, _, measured, difference, *_ = timer2014._lines(cell, bins, "Measured")  # type: ignore[arg-type]
    assert measured == "# Measured:\t MIN: -4us \tAVG: -1us \tMAX: 2us"
    assert difference == "# Difference:\t MIN: -4us \tAVG: 2us \tMAX: 2us"


def test_releases_that_were_under_way_at_the_end_are_told_as_left_out(tmp_path: Path) -> None:
    cell = one_shots(tmp_path / "cell")
    about = cell_json(cell)
    about["summary"]["counts"] |= {"lost": 2, "in_flight": 1}
    (cell / "cell.json").write_text(json.dumps(about))
    notes = export(cell, tmp_path / "out.csv", "ros2-timer-series")
    assert notes[1:] == [
        "2 releases that were lost have no value and are left out",
        "1 releases that were in flight have no value and are left out",
        "25 early values are written as if late by as much: the format has no sign",
    ]


def test_peaks_are_named_and_lost_shots_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def late(k: int) -> float | None:
        return None if k == 7 else 150_000_000 if k == 9 else 5_000

    cell = one_shots(tmp_path / "cell", late)
    out = tmp_path / "out.log"
    assert invoke(["export", str(cell), "--format", "ros1-timer-log", "-o", str(out)]) == 0
    assert "1 releases that were lost have no value and are left out" in capsys.readouterr().err
    assert "# Peak values of over 100ms in loops: | 8 | " in out.read_text().splitlines()
    assert read(out).series[0].n == 199


def wakeups(folder: Path) -> tuple[Path, list[int]]:
    late = [
        3_000 + 17 * (k % 50) - (9_000 if k == 30 else 0) + (1_500_000 if k in (60, 90) else 0)
        for k in range(200)
    ]
    made = Made(samples=200, warm_up=0, period_ns=10_000_000, delays=lambda k: (late[k], 0, 0))
    return write_cell(folder, made), late


def test_the_files_of_the_2020_tool_are_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell, late = wakeups(tmp_path / "cell")
    files = {kind: tmp_path / f"run_{kind}.csv" for kind in ("series", "hist", "topn")}
    for kind, out in files.items():
        assert invoke(["export", str(cell), "--format", f"ros2-timer-{kind}", "-o", str(out)]) == 0
    said = capsys.readouterr().err
    assert "1 early values are written as if late by as much" in said and "2 values beyond 1,000 us" in said
    absolute = [abs(value) for value in late]
    [series] = read(files["series"]).series
    assert series.samples is not None and series.samples.tolist() == absolute
    [series] = read(files["hist"]).series
    assert series.histogram is not None and series.n == 200
    assert series.histogram.max_ns == 1_503_000 and series.histogram.misses(1_000_000).surely == 2
    rows = files["topn"].read_text().splitlines()
    largest = sorted(range(200), key=lambda k: (-absolute[k], -k))[:10]
    assert rows == ["latency,index", *(f"{absolute[k]},{k}" for k in largest)]


@pytest.mark.parametrize("form", OF_QUANTITY)
def test_what_these_formats_cannot_hold_is_refused(form: str, tmp_path: Path) -> None:
    one_shots(tmp_path / "cells" / "a")
    write_cell(tmp_path / "cells" / "b", Made(id="b", samples=10))
    for path, quantity, message in (
        (tmp_path / "cells", None, "is no cell, and this format holds one"),
        (tmp_path / "cells" / "a", "latency", "is no"),
        (tmp_path / "cells" / "b", "measured", "is no"),
    ):
        with pytest.raises(RtmeterError, match=message) as caught:
            export(path, tmp_path / "out", form, quantity)
        assert caught.value.remedy
        assert not list(tmp_path.glob("out*"))


def test_a_quantity_means_nothing_for_other_formats(tmp_path: Path) -> None:
    with pytest.raises(RtmeterError, match="means nothing for csv"):
        export(one_shots(tmp_path / "cell"), tmp_path / "out.csv", "csv", "measured")
