"""Exports at their edges: units, a value at a border, cells of several beginnings, spans that touch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader

from rtmeter.exports import cyclictest, export, hdr, perfetto, phases
from rtmeter.exports.mcap_file import McapFile
from rtmeter.model import ABSENT, LOST, SERVED, SKIPPED, WARM_UP_FLAG, Requirement
from rtmeter.results import store
from rtmeter.statistics.counted_data import Histogram
from stored import write_counted
from synthetic import Made, write_cell
from wakeups import draw, write_wakeups

MS = 1_000_000


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_cyclictests_mean_is_of_whole_microseconds_and_has_their_unit(tmp_path: Path) -> None:
    cell = write_wakeups(tmp_path / "cell", np.array([1_999, 3_999, 6_000]))
    export(cell, tmp_path / "out.hist", "cyclictest-hist")
    assert {"# Min Latencies: 00001", "# Avg Latencies: 00003", "# Max Latencies: 00006"} <= {
        *lines_of(tmp_path / "out.hist")
    }


def test_cyclictests_histogram_ends_at_a_second(tmp_path: Path) -> None:
    cell = write_wakeups(tmp_path / "cell", np.array([2_000, 999_999_999, 1_000_000_000]))
    export(cell, tmp_path / "out.hist", "cyclictest-hist")
    found = lines_of(tmp_path / "out.hist")
    assert [line for line in found if line.startswith("# Histogram Over")] == ["# Histogram Overflows: 00001"]
    assert [line for line in found if not line.startswith("#")][-1] == "999999 000001"


ENDED = Histogram(np.array([5_000]), 1000, np.array([10]), 2, over_from_ns=10_000, below_ns=20_000)


@pytest.mark.parametrize(
    ("other", "last_us", "overflows", "told"),
    [
        (ENDED, 9, "00002 00000", True),
        (ENDED, 10, "00002 00003", True),
        (replace(ENDED, over=0, below_ns=None), 10, "00000 00000", False),  # nothing lies beyond it
    ],
)
def test_a_cell_is_cut_where_values_of_another_ones_tool_lie_beyond_its_last_bin(
    other: Histogram, last_us: int, overflows: str, told: bool, tmp_path: Path
) -> None:
    write_counted(tmp_path / "cells/ended", other)
    write_counted(tmp_path / "cells/on", Histogram(np.array([last_us * 1000]), 1000, np.array([3])))
    notes = export(tmp_path / "cells", tmp_path / "out.hist", "cyclictest-hist")
    assert ["overflows" in note for note in notes if note.startswith("ended")] == [True] * told
    assert ["another cell" in note for note in notes if note.startswith("on")] == [True] * (
        last_us == 10 and told
    )
    assert f"# Histogram Overflows: {overflows}" in lines_of(tmp_path / "out.hist")


def test_what_lies_beyond_the_formats_own_last_bin_is_laid_to_no_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cyclictest, "MOST_BINS", 6)
    (note,) = export(write_counted(tmp_path / "cell", ENDED), tmp_path / "out.hist", "cyclictest-hist")
    assert "2 values beyond the tool's last bin" in note
    assert lines_of(tmp_path / "out.hist")[-1] == "# Histogram Overflows: 00002"


def test_values_beyond_the_last_bin_of_which_the_largest_is_not_known_count_as_its_end(
    tmp_path: Path,
) -> None:
    cell = write_counted(tmp_path / "cell", replace(ENDED, below_ns=None))
    notes = export(cell, tmp_path / "out.hlog", "hdr")
    assert notes[-1] == "2 values beyond the tool's last bin count as the end of that"
    assert lines_of(tmp_path / "out.hlog")[-1].split(",")[2] == "0.010"


def test_values_that_the_tool_left_out_are_told(tmp_path: Path) -> None:
    cell = write_counted(tmp_path / "cell", Histogram(np.array([0]), 1000, np.array([3]), dropped=True))
    (note,) = export(cell, tmp_path / "out.hist", "cyclictest-hist")
    assert "left out values beyond its last bin" in note


def test_an_hdr_logs_times_are_those_of_its_cells_and_its_maxima_milliseconds(tmp_path: Path) -> None:
    for name, day, most in (("a", 2, 7_250_000), ("b", 1, 1_000_000)):
        values = np.array([1_000, most])
        write_wakeups(tmp_path / name, values, changes={"started": f"2026-11-0{day}T00:00:00+00:00"})
    export(tmp_path, tmp_path / "out.hlog", "hdr")
    found = lines_of(tmp_path / "out.hlog")
    first = 1_793_491_200.0
    assert any(line.startswith(f"#[StartTime: {first:.3f} ") for line in found)
    assert [line.split(",")[:4] for line in found if line.startswith("Tag=")] == [
        ["Tag=a", f"{first + 86_400:.3f}", "0.002", "7.250"],
        ["Tag=b", f"{first:.3f}", "0.002", "1.000"],
    ]


def test_hdr_keeps_three_digits_of_every_value() -> None:
    values = np.array([2_047, 2_048, 2_049, 4_097, 10**9 + 1])
    assert hdr.rounded(values).tolist() == [2_047, 2_048, 2_048, 4_096, 10**9 + 1 & ~((1 << 19) - 1)]


def test_lost_releases_of_all_pieces_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(measurement="roundtrip", samples=40, warm_up=0, delays=lambda k: (0, None if k % 4 else 9, 9))
    cell = write_cell(tmp_path / "cell", made)
    (rows,) = store.chunks(cell)()
    pieces = [{name: column[at : at + 10] for name, column in rows.items()} for at in range(0, 40, 10)]
    monkeypatch.setattr(store, "chunks", lambda _folder: lambda: iter(pieces))
    assert export(cell, tmp_path / "out.hist", "cyclictest-hist") == [
        "30 lost releases have no value and are left out"
    ]


def test_a_miss_is_lost_skipped_or_beyond_the_deadline_and_never_of_the_warm_up() -> None:
    status = np.array([LOST, SERVED, SKIPPED, SERVED, LOST, SERVED, SERVED])
    status[:3] |= WARM_UP_FLAG
    values = np.array([ABSENT, 900, ABSENT, 500, ABSENT, 501, ABSENT])
    found = phases.marks({"status": status}, values, 500)
    assert {name: rows.tolist() for name, rows in found.items()} == {"lost": [4], "skipped": [], "late": [5]}
    assert "late" not in phases.marks({"status": status}, values, None)


@pytest.mark.parametrize("measurement", ["roundtrip", "request"])
def test_what_the_other_end_does_stands_on_its_thread(measurement: str) -> None:
    found = phases.phases({"measurement": measurement, "mode": None, "interface": "service"})
    assert {one.name for one in found if one.thread == phases.SERVER} == {"answers"}


def test_spans_that_touch_share_a_lane_and_those_that_overlap_do_not() -> None:
    tracks: list[str] = []
    events: list[int] = []
    trace: Any = type("Trace", (), {})()
    trace.track = lambda name, _parent: tracks.append(name) or len(tracks)
    trace.event = lambda track, *_given, **_about: events.append(track)
    lanes = perfetto._Lanes(trace, "works", 0)
    for begin, end in ((0, 10), (10, 20), (19, 30), (20, 25)):
        lanes.span(begin, end, 0)
    assert tracks == ["works", "works 2"] and events == [1, 1, 1, 1, 2, 2, 1, 1]


def test_a_span_that_ends_before_it_begins_is_drawn_and_called_early() -> None:
    events: list[tuple[int, str]] = []
    trace: Any = type("Trace", (), {})()
    trace.track = lambda _name, _parent: 1
    trace.event = lambda _track, at, _kind, name="", **_about: events.append((at, name))
    for begin, end in ((10, 20), (40, 30)):
        perfetto._Lanes(trace, "sleeps", 0).span(begin, end, 0)
    assert events == [(10, "sleeps"), (20, ""), (30, "sleeps (early)"), (40, "")]


def test_an_mcap_channel_goes_on_counting_and_its_span_is_that_of_all(tmp_path: Path) -> None:
    out, data = tmp_path / "out.mcap", np.zeros(3, "S8")
    with out.open("wb") as file:
        writer = McapFile(file, "ros2", "test")
        channel = writer.channel("/a", "x/msg/A", "int64 k", {})
        for times in ([100, 200, 300], [50, 60, 70]):
            writer.messages(channel, np.array(times), data)
        writer.finish()
    with out.open("rb") as file:
        reader = make_reader(file)
        summary = reader.get_summary()
        assert summary is not None and summary.statistics is not None
        span = summary.statistics.message_start_time, summary.statistics.message_end_time
        assert span == (50, 300)
        found = [(message.log_time, message.sequence) for _, _, message in reader.iter_messages()]
    assert sorted(found) == [(50, 3), (60, 4), (70, 5), (100, 0), (200, 1), (300, 2)]


def test_mcap_has_wall_clock_times_where_the_cell_knows_them(tmp_path: Path) -> None:
    anchors = {"realtime_ns": 5 * 10**18, "monotonic_ns": 10**12}
    cell = write_wakeups(tmp_path / "cell", draw(1, 3), changes={"clock": {"anchors": anchors}})
    (rows,) = store.chunks(cell)()
    export(cell, tmp_path / "out.mcap", "mcap")
    with (tmp_path / "out.mcap").open("rb") as file:
        times = [message.log_time for _, _, message in make_reader(file).iter_messages()]
    assert times == (rows["release_ns"] + 5 * 10**18 - 10**12).tolist()


def test_the_2020_tools_files_at_their_borders(tmp_path: Path) -> None:
    """999,999 ns are in its last bin, a whole millisecond is beyond; of equal ones the later is first."""
    values = np.array([5_000, 999_999, 1_000_000, 1_000_000])
    cell = write_wakeups(tmp_path / "cell", values)
    notes = export(cell, tmp_path / "hist.csv", "ros2-timer-hist")
    assert "2 values beyond 1,000 us are left out, as the tool does" in notes
    assert lines_of(tmp_path / "hist.csv")[-1] == "999,1"
    export(cell, tmp_path / "topn.csv", "ros2-timer-topn")
    assert lines_of(tmp_path / "topn.csv")[1:] == ["1000000,3", "1000000,2", "999999,1", "5000,0"]


def test_the_2014_tests_peaks_begin_at_100_ms(tmp_path: Path) -> None:
    late = [99_999_999 + 300, 100_000_000 + 300, 5_000]
    made = Made(measurement="timer", mode="one_shot", samples=3, warm_up=0, delays=lambda k: (late[k], 0, 0))
    export(write_cell(tmp_path / "cell", made), tmp_path / "out.log", "ros1-timer-log")
    assert "# Peak values of over 100ms in loops: | 1 | " in lines_of(tmp_path / "out.log")


def test_the_worst_cell_is_the_first_row_of_markdown(tmp_path: Path) -> None:
    asked = Requirement(deadline_ns=MS, miss_ratio=0.1)
    for name, values in (("a", draw(1, 2_000)), ("b", draw(2, 2_000) + 2 * MS)):
        write_wakeups(tmp_path / "run" / name, values, requirement=asked)
    export(tmp_path / "run", tmp_path / "out.md", "markdown")
    rows = [line.split(" | ")[1] for line in lines_of(tmp_path / "out.md") if line.startswith("| ")][1:]
    assert rows == ["b", "a"]


@pytest.mark.parametrize("form", ["hdr", "cyclictest-hist"])
def test_no_name_of_a_folder_makes_a_line_of_a_file(tmp_path: Path, form: str) -> None:
    for name in ("calm", "a\n000000 000999\nb"):
        write_wakeups(tmp_path / "cells" / name, np.array([1_000, 2_000]))
    export(tmp_path / "cells", tmp_path / "out", form)
    told = [line for line in lines_of(tmp_path / "out") if "000999" in line]
    assert told and all(line.startswith(("#", "Tag=a-000000-000999-b,")) for line in told)
