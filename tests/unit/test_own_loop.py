"""What a program's own loop recorded becomes a cell that every command reads: of scripted logs."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from log_frames import header
from own_loop_logs import NAMES, WARM_UP, locked, log_of, rows, start
from sample_logs import joined, json_frame

import rtmeter
from rtmeter import cli
from rtmeter.errors import RtmeterError
from rtmeter.host import owned
from rtmeter.live.run import FollowedRun
from rtmeter.measure import own_loop
from rtmeter.results import store
from rtmeter.results.cells import find_cells
from rtmeter.results.data import data_of
from rtmeter.samples import reader, segments
from rtmeter.samples.segments import SegmentedLog


def as_json(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    assert cli.invoke([*map(str, words), "--json"]) != 1
    return json.loads(capsys.readouterr().out)


def test_its_segments_are_one_cell_that_is_judged_by_completion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(tmp_path, (0, log_of(0, rows(0, 1200))), (1200, log_of(1200, rows(1200, 1800))))
    verdict = as_json(capsys, "verdict", tmp_path)
    assert (verdict["id"], verdict["quantity"], verdict["n"]) == (
        "arm",
        "completion",
        2990,
    )
    assert verdict["misses"] == 3
    assert verdict["requirement"]["miss_ratio"] == 0.01
    summary = as_json(capsys, "summary", tmp_path / "arm" / "20261101T000000Z")
    assert summary["counts"]["served"] == 2990
    assert summary["counts"]["warm_up"] == WARM_UP
    latency = summary["quantities"]["latency"]["per_release"]
    assert (latency["min_ns"], latency["max_ns"]) == (40_000, 40_000)
    assert summary["quantities"]["completion"]["per_release"]["max_ns"] == 1_502_500


def test_every_command_reads_it(tmp_path: Path) -> None:
    loop = start(tmp_path, (0, log_of(0, rows(0, 3000))))
    read = (
        ["summary", tmp_path],
        ["report", tmp_path, "-o", tmp_path / "r.html"],
        ["export", loop, "--format", "parquet", "-o", tmp_path / "s.parquet"],
        ["export", loop, "--format", "perfetto", "-o", tmp_path / "s.perfetto"],
    )
    for words in read:
        assert cli.invoke([str(word) for word in words]) == 0, words
    assert pq.read_metadata(tmp_path / "s.parquet").num_rows == 3000
    assert rtmeter.read(tmp_path).samples().num_rows == 3000


def test_what_was_let_go_is_not_missing_and_is_said(tmp_path: Path) -> None:
    loop = start(tmp_path, (5000, log_of(5000, rows(5000, 3000))))
    (loop / "bins.json").write_text(json.dumps({"served": 7980, "skipped": 9, "lost": 1, "missed": 8}))
    late = np.concatenate((rows(490, 21), rows(1490, 21)), axis=1)
    (loop / "late-000000000000490.rtlog").write_bytes(log_of(490, late[:, :21], late[:, 21:], sparse=True))
    log = SegmentedLog(loop, segments.LATE)
    assert (log.missing, log.problems) == ([], []), "between late releases nothing is"
    [cell] = rtmeter.read(tmp_path)._cells.values()
    assert cell.record.valid
    assert cell.record.missing == []
    assert cell.record.summary is not None
    assert cell.record.summary.counts["released"] == 3000
    [doubt] = [d for d in cell.record.warnings if d.type == "last_hours_only"]
    assert "from k = 5,000 on: of 7,990 since its start 8 missed" in doubt.message
    [verdict] = rtmeter.read(tmp_path).verdict()
    said = "the last of 7,990 since its start, of which 8 missed 1ms"
    assert said in verdict.conditions, "a verdict is not shown without it"
    assert data_of(cell.folder, cell.record) == cell.folder / store.SAMPLES
    kept = pq.read_table(cell.folder / store.LATE_RELEASES)["k"].to_pylist()
    assert kept == [*range(490, 511), *range(1490, 1511)]


def test_rows_that_a_full_disk_took_make_it_invalid(tmp_path: Path) -> None:
    start(tmp_path, (0, log_of(0, rows(0, 1000))), (1500, log_of(1500, rows(1500, 1000))))
    [cell] = rtmeter.read(tmp_path)._cells.values()
    assert data_of(cell.folder, cell.record) == cell.folder / store.SAMPLES
    assert cell.record.missing == [(1000, 1499)]
    assert not cell.record.valid


def test_a_killed_program_leaves_a_cell_that_says_so(tmp_path: Path) -> None:
    whole = log_of(0, rows(0, 1000), rows(1000, 1000), ended=False)
    start(tmp_path, (0, whole[:-40]))
    [cell] = rtmeter.read(tmp_path)._cells.values()
    assert (cell.record.status, cell.record.valid, cell.record.missing) == ("interrupted", True, [])
    assert data_of(cell.folder, cell.record) == cell.folder / store.SAMPLES
    assert "loop_cut" in {doubt.type for doubt in cell.record.warnings}
    assert cell.record.summary is not None
    assert cell.record.summary.counts["released"] == 990


def test_whether_a_program_closed_its_loop_the_last_log_says(tmp_path: Path) -> None:
    last = log_of(1200, rows(1200, 800), ended=False)
    loop = start(tmp_path, (0, log_of(0, rows(0, 1200))), (1200, last))
    own_loop.adopt(tmp_path)
    record = store.read_cell(loop.with_suffix(""))
    assert (record.status, record.valid, record.missing) == ("interrupted", True, [])
    assert not any("no end frame" in doubt.message for doubt in record.warnings)


def test_starts_of_one_name_are_repeats_of_one_condition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(tmp_path, (0, log_of(0, rows(0, 3000))), name="20261101T000000Z")
    start(tmp_path, (0, log_of(0, rows(0, 2000))), name="20261102T000000Z")
    verdict = as_json(capsys, "verdict", tmp_path)
    [one] = verdict["cells"]
    assert (one["id"], one["n"]) == ("arm", 4980)


def test_a_cell_is_made_anew_only_when_more_was_recorded(tmp_path: Path) -> None:
    loop = start(tmp_path, (0, log_of(0, rows(0, 2000), ended=False)))
    cell = loop.with_suffix("") / store.CELL
    own_loop.adopt(tmp_path)
    first = cell.stat().st_ino
    own_loop.adopt(tmp_path)
    assert cell.stat().st_ino == first
    (loop / f"whole-{0:015}.rtlog").write_bytes(log_of(0, rows(0, 2000), rows(2000, 500)))
    own_loop.adopt(loop)
    assert cell.stat().st_ino != first
    assert store.read_cell(cell.parent).status == "complete"
    (loop / f"late-{490:015}.rtlog").write_bytes(log_of(490, rows(490, 21), sparse=True))
    own_loop.adopt(loop)
    assert pq.read_table(cell.parent / store.LATE_RELEASES)["k"].to_pylist() == [*range(490, 511)]


def test_of_a_loop_that_let_nothing_go_nothing_more_is_said(tmp_path: Path) -> None:
    loop = start(tmp_path, (0, log_of(0, rows(0, 2000))))
    (loop / "bins.json").write_text(json.dumps({"served": 7, "skipped": 0, "lost": 0, "missed": 0}))
    own_loop.adopt(tmp_path)
    record = store.read_cell(loop.with_suffix(""))
    assert "released_since_start" not in record.config
    assert "last_hours_only" not in {doubt.type for doubt in record.warnings}


def test_who_makes_the_same_cell_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = start(tmp_path, (0, log_of(0, rows(0, 2000))))
    other = store.NewCell(cell := loop.with_suffix(""))
    record = own_loop._record(loop, other.folder, running=False)
    record = record.changed(instrument={"recorded": own_loop._recorded(loop)})
    looks = iter([lambda: other.finish(record)])
    monkeypatch.setattr(owned.time, "sleep", lambda _: next(looks)())
    own_loop.adopt(tmp_path)
    assert store.read_cell(cell).instrument == {"recorded": own_loop._recorded(loop)}, "it is the other's"
    assert not other.folder.exists()


def test_who_makes_the_same_cell_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = start(tmp_path, (0, log_of(0, rows(0, 2000))))
    start(tmp_path, (0, log_of(0, rows(0, 2000))), name="20261102T000000Z")
    monkeypatch.setattr(own_loop, "_PATIENCE_S", 0)
    with store.NewCell(loop.with_suffix("")), pytest.raises(RtmeterError, match="by another process"):
        own_loop.adopt(tmp_path)


def test_a_program_that_ended_without_another_release_runs_no_more(tmp_path: Path) -> None:
    loop = start(tmp_path, (0, log_of(0, rows(0, 2000), ended=False)))
    lock = locked(loop)
    for said in ("still_running", "loop_cut"):
        own_loop.adopt(tmp_path)
        assert said in [doubt.type for doubt in store.read_cell(loop.with_suffix("")).warnings]
        if said == "still_running":
            os.close(lock)


def test_a_clock_that_was_put_back_hides_no_program_that_runs(tmp_path: Path) -> None:
    """An earlier start has a later name then."""
    earlier = start(tmp_path, (0, log_of(0, rows(0, 2000))), name="20261102T000000Z")
    loop = start(tmp_path, (0, log_of(0, rows(0, 2000), ended=False)))
    lock = locked(loop)
    assert (own_loop.is_open(loop), own_loop.is_open(earlier)) == (True, False)
    os.close(lock)
    assert not own_loop.is_open(loop)


def test_watching_follows_the_segments_until_the_program_lets_go(tmp_path: Path) -> None:
    loop = start(tmp_path, (0, log_of(0, rows(0, 1200))))
    lock = locked(loop)
    run = FollowedRun.at(tmp_path)
    state = run.state()
    assert (state.running, state.left_ns, state.over) == ("arm", None, False)
    assert state.seen is not None
    assert (state.seen.settled, state.seen.served, state.seen.late) == (1200, 1190, 1)
    (loop / f"whole-{1200:015}.rtlog").write_bytes(log_of(1200, rows(1200, 800), ended=False))
    state = run.state()
    assert state.seen is not None
    assert (state.seen.settled, state.seen.late) == (2000, 2)
    more = log_of(1200, rows(1200, 800), rows(2000, 600), ended=False)
    (loop / f"whole-{1200:015}.rtlog").write_bytes(more)
    state = run.state()
    assert state.seen is not None
    assert (state.seen.settled, state.seen.late) == (2600, 3)
    os.close(lock)
    assert run.state().over


@pytest.mark.parametrize("first", [-1, 2**62, "0", True])
def test_a_first_row_that_is_none_is_refused(tmp_path: Path, first: Any) -> None:
    good = header(measurement="own_loop", columns=[{"name": n, "unit": "ns"} for n in NAMES])
    content = joined([json_frame(b"H", 0, good | {"first_row": first})] * 2)
    loop = start(tmp_path, (0, content))
    with pytest.raises(RtmeterError, match="is no index of a row"):
        own_loop.adopt(loop)


NOTHING = {"before its header": b"", "before its first release": log_of(0, ended=False), "closed": log_of(0)}


@pytest.mark.parametrize("content", NOTHING.values(), ids=NOTHING)
def test_a_start_that_recorded_nothing_is_passed_over_among_others(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in (1, 2):
        start(tmp_path, (0, content), name=f"2026110{day}T000000Z")
    start(tmp_path, (0, log_of(0, rows(0, 2000))), name="20261103T000000Z")
    assert cli.invoke(["verdict", str(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["n"] == 1990
    assert said.err.startswith(f"rtmeter: passed over: {tmp_path}/arm/20261101T000000Z.loop: holds no ")
    assert said.err.endswith("(and 1 more)\n")
    assert len(rtmeter.read(tmp_path)) == 1


@pytest.mark.parametrize(
    ("running", "remedy"), [(False, "its program ended before the first"), (True, "look again later")]
)
def test_a_start_alone_that_has_no_release_says_so(running: bool, remedy: str, tmp_path: Path) -> None:
    loop = start(tmp_path, (0, log_of(0, ended=False)))
    lock = locked(loop) if running else None
    with pytest.raises(RtmeterError, match="holds no release") as refused:
        own_loop.adopt(tmp_path)
    assert remedy in str(refused.value)
    assert not loop.with_suffix("").exists(), "no cell is made"
    if lock is not None:
        os.close(lock)


@pytest.mark.parametrize("when", ["listed", "read"])
def test_a_program_may_let_its_oldest_log_go_while_it_is_read(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [(first, log_of(first, rows(first, 1000))) for first in (0, 1000, 2000)]
    oldest = start(tmp_path, *logs) / "whole-000000000000000.rtlog"
    start(tmp_path, (0, log_of(0, rows(0, 2000))), name="20261103T000000Z")
    frames, listed = SegmentedLog.frames, segments.segments

    def let_go_as_they_are_listed(folder: Path, part: str = segments.WHOLE) -> list[Path]:
        found = listed(folder, part)
        oldest.unlink(missing_ok=True)
        return found

    def let_go_before_they_are_read(log: SegmentedLog) -> Any:
        oldest.unlink(missing_ok=True)
        return frames(log)

    if when == "listed":
        monkeypatch.setattr(segments, "segments", let_go_as_they_are_listed)
    else:
        monkeypatch.setattr(SegmentedLog, "frames", let_go_before_they_are_read)
    assert own_loop.adopt(tmp_path) == []
    assert [cell.record.meta["first_k"] for cell in find_cells(tmp_path)] == [1000, 0]


def test_a_log_that_cannot_be_read_is_not_told_as_one_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = start(tmp_path, (0, log_of(0, rows(0, 100)))) / "whole-000000000000000.rtlog"

    def damaged_disk(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(reader, "read_payload", damaged_disk)
    with pytest.raises(RtmeterError) as told:
        own_loop.adopt(tmp_path)
    assert str(told.value).startswith(f"{log}: cannot be read: Input/output error; see that")


def test_a_start_whose_releases_are_lost_is_none_that_has_none(tmp_path: Path) -> None:
    cut = log_of(0, rows(0, 2000))
    header = len(log_of(0, ended=False))
    damaged = cut[: header + 40] + bytes(40) + cut[header + 80 :]
    start(tmp_path, (0, damaged))
    [cell] = rtmeter.read(tmp_path)._cells.values()
    assert cell.record.missing == [(0, 1999)]
    assert not cell.record.valid
