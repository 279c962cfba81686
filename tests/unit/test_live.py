"""A run while it goes on: its log as it grows, its state from its files, its picture and its metrics."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from rich.console import Console

from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.cli import screen as screens
from rtmeter.cli.screen import histogram, line, screen
from rtmeter.conditions.monitor import NOW
from rtmeter.errors import RtmeterError
from rtmeter.live import metrics
from rtmeter.live.run import FollowedRun, RunState, outcome_of
from rtmeter.live.seen import CellSeen, RunningCell
from rtmeter.model import SERVED, WARM_UP_FLAG, Requirement
from rtmeter.results import store
from rtmeter.samples import read_log
from rtmeter.samples.follow import Follower
from rtmeter.samples.frames import FILE_HEAD_BYTES, scan
from rtmeter.statistics import bins
from rtmeter.statistics.quantities import judged_quantity
from stored import run_json, write_run
from wakeups import draw, write_wakeups

GOLDEN = Path(__file__).resolve().parent.parent.parent / "spec" / "golden"
CAMPAIGN = """
name: three
cells:
  - {name: a, measurement: wakeup, adapter: posix, duration: 9s, warm_up: 1s}
  - {name: b, measurement: wakeup, adapter: posix, duration: 9s, warm_up: 1s}
  - {name: c, measurement: wakeup, adapter: posix, duration: 59s, warm_up: 1s}
"""


def growing(log: Path, target: Path, steps: int) -> Iterator[None]:
    """The log as a reader sees it who looks while it is written: so many bytes more each time."""
    content = log.read_bytes()
    for step in range(1, steps + 1):
        target.write_bytes(content[: len(content) * step // steps])
        yield


@pytest.mark.parametrize("name", ["wakeup", "client", "torn"])
@pytest.mark.parametrize("steps", [1, 7, 200])
def test_a_log_is_followed_row_by_row(tmp_path: Path, name: str, steps: int) -> None:
    if not (GOLDEN / f"{name}.rtlog").exists():
        pytest.fail(f"no golden log {name}: {sorted(p.name for p in GOLDEN.iterdir())}")
    follower = Follower(tmp_path / "probe.rtlog")
    assert list(follower.new()) == []  # there is none yet
    found = [rows for _ in growing(GOLDEN / f"{name}.rtlog", follower.path, steps) for rows in follower.new()]
    whole = read_log(GOLDEN / f"{name}.rtlog")
    assert np.concatenate([rows["k"] for rows in found]).tolist() == whole.k.tolist()
    for column, values in whole.columns.items():
        assert np.concatenate([rows[column] for rows in found]).tolist() == values.tolist()


def test_room_in_a_log_that_has_yet_to_be_written_is_no_damage(tmp_path: Path) -> None:
    log = GOLDEN / "wakeup.rtlog"
    content = log.read_bytes()
    with log.open("rb") as file:
        frames = [item[0] for item in scan(file, FILE_HEAD_BYTES, len(content)) if isinstance(item, tuple)]
    follower, found = Follower(tmp_path / "probe.rtlog"), []
    for frame in frames:
        follower.path.write_bytes(content[: frame.at] + bytes(64))
        found += follower.new()
    follower.path.write_bytes(content)
    found += follower.new()
    assert follower.damaged == 0
    assert np.concatenate([rows["k"] for rows in found]).tolist() == read_log(log).k.tolist()


def test_the_rows_of_a_log_that_grows_are_there_as_soon_as_their_frame_is_whole(tmp_path: Path) -> None:
    content = (GOLDEN / "wakeup.rtlog").read_bytes()
    with (GOLDEN / "wakeup.rtlog").open("rb") as file:
        frames = [item[0] for item in scan(file, FILE_HEAD_BYTES, len(content)) if isinstance(item, tuple)]
    follower = Follower(tmp_path / "probe.rtlog")
    for frame in frames:
        for end, rows in ((frame.end - 1, 0), (frame.end, frame.row_count)):
            follower.path.write_bytes(content[:end])
            assert sum(len(found["k"]) for found in follower.new()) == rows


def test_a_place_in_a_log_that_is_passed_over_is_counted(tmp_path: Path) -> None:
    content = (GOLDEN / "wakeup.rtlog").read_bytes()
    follower = Follower(tmp_path / "probe.rtlog")
    follower.path.write_bytes(content[:FILE_HEAD_BYTES] + bytes(50) + content[FILE_HEAD_BYTES:])
    assert sum(len(rows["k"]) for rows in follower.new()) > 0 and follower.damaged == 1


def test_what_is_seen_is_what_the_log_holds(tmp_path: Path) -> None:
    running = RunningCell(tmp_path)
    assert running.look() is None
    for _ in growing(GOLDEN / "wakeup.rtlog", tmp_path / store.CLIENT_LOG, 5):
        running.look()
    machine = {"cpu0_busy": 0.5, "cpu0_steal": 0.25, "quota_throttles": 2, "thermal_throttles": 0}
    (tmp_path / NOW).write_text(json.dumps(machine | {"x": None}))
    seen = running.look()
    assert seen is not None
    log = read_log(GOLDEN / "wakeup.rtlog")
    quantity = judged_quantity({"measurement": "wakeup", "mode": None})
    served = log.columns["status"] == SERVED
    values = quantity.of(log.columns, 0)[served]
    assert seen.settled == len(log.k)
    assert seen.served == len(values) == seen.counts.sum()
    assert (seen.last_ns, seen.max_ns) == (values[-1], values.max())
    assert seen.p99_9_ns is None  # of so few releases it would be the maximum
    running._counts *= 1000
    long = running.look()
    assert long is not None and long.p99_9_ns is not None and long.max_ns is not None
    assert np.quantile(values, 0.999, method="inverted_cdf") <= long.p99_9_ns <= long.max_ns
    assert (log.columns["status"] & WARM_UP_FLAG).any() == (
        seen.settled > seen.served + seen.skipped + seen.lost
    )
    assert {"the hypervisor takes 25% of a CPU", "a CPU quota stops tasks"} <= set(seen.doubts)
    assert "heat slows CPUs" not in seen.doubts
    assert seen.machine == machine


def test_what_passes_the_deadline_is_late_and_the_warm_up_is_planned_too(tmp_path: Path) -> None:
    (tmp_path / store.CLIENT_LOG).write_bytes((GOLDEN / "wakeup.rtlog").read_bytes())
    running = RunningCell(tmp_path)
    rows = list(running._log.new())
    quantity, meta = running._known()
    values = np.concatenate([quantity.of(part, 0)[part["status"] == SERVED] for part in rows])
    meta |= {"deadline_ns": int(np.sort(values)[-2]), "samples": 1_000, "warm_up": 7, "period_ns": 2_000_000}
    for part in rows:
        running._take(part)
    (tmp_path / NOW).write_text(json.dumps({"cpu0_steal": 0.02}))
    seen = running.look()
    assert seen is not None and seen.late == (values > meta["deadline_ns"]).sum() == 1
    assert seen.planned == 1_007 and seen.left_ns == (1_007 - seen.settled) * 2_000_000
    assert "the hypervisor takes 2% of a CPU" in seen.doubts


def test_what_does_not_run_is_told_as_that_and_damage_ends_a_watch_with_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = RunState("x", {"a": "pass"}, None, None, ("b",), 0)
    assert b"rtmeter_running 0.0" in metrics.text(state)
    assert b"rtmeter_running 1.0" in metrics.text(replace(state, running="b"))
    run = a_run(tmp_path)
    assert cli.invoke(["watch", str(run), "--once"]) == exit_codes.PASS
    (run / "a" / store.CELL).write_text("{", encoding="utf-8")
    assert cli.invoke(["watch", str(run), "--once"]) == exit_codes.ERROR
    assert str(run / "a") in capsys.readouterr().err


def test_the_run_that_began_last_is_followed(tmp_path: Path) -> None:
    for day in (22, 21):
        about = {"campaign": "three", "started": f"2026-11-{day}T09:00:00Z", "scale": 1, "host": None}
        write_run(tmp_path / f"202611{day}T090000Z", about | {"cells": ["a"]}, CAMPAIGN)
    assert FollowedRun.at(tmp_path).folder.name == "20261122T090000Z"


def test_the_outcome_of_a_cell_says_first_that_its_data_are_no_good(tmp_path: Path) -> None:
    asked = Requirement(deadline_ns=10**9, miss_ratio=0.1)
    record = store.read_cell(write_wakeups(tmp_path / "a", draw(1, 2_000), requirement=asked))
    assert outcome_of(record) == "pass"
    assert outcome_of(record.changed(valid=False)) == "invalid"
    assert outcome_of(record.changed(valid=False, status="interrupted")) == "interrupted"


@pytest.mark.parametrize(
    ("log", "counted", "said"),
    [
        ("client", {"udp_buffer_drops": 9}, {"full receive buffers drop datagrams"}),
        ("client", {"ip_reassembly_failures": 1}, {"packets lack fragments"}),
        ("client", {"udp_buffer_drops": 0, "ip_reassembly_failures": 0}, set()),
        ("wakeup", {"udp_buffer_drops": 9, "ip_reassembly_failures": 1}, set()),
    ],
)
def test_what_the_kernel_drops_is_said_where_messages_are_lost(
    tmp_path: Path, log: str, counted: dict[str, int], said: set[str]
) -> None:
    running = RunningCell(tmp_path)
    (tmp_path / store.CLIENT_LOG).write_bytes((GOLDEN / f"{log}.rtlog").read_bytes())
    (tmp_path / NOW).write_text(json.dumps(counted))
    seen = running.look()
    assert seen is not None and (seen.lost > 0) == (log == "client")
    drops = {"full receive buffers drop datagrams", "packets lack fragments"}
    assert drops & set(seen.doubts) == said


def a_run(folder: Path) -> Path:
    """Cell a is stored, b is measured, c is to come."""
    run = folder / "robot" / "three" / "20261121T090000Z"
    about = {"campaign": "three", "started": "2026-11-21T09:00:00Z", "scale": 1, "host": None}
    write_run(run, about | {"cells": ["a", "b", "c"]}, CAMPAIGN)
    write_wakeups(run / "a", draw(1, 1000))
    (run / "b.partial").mkdir()
    return run


def test_the_state_of_a_run_is_told_from_its_files(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    followed = FollowedRun.at(tmp_path)
    state = followed.state()
    assert (state.done, state.running, state.to_come) == ({"a": "measured"}, "b", ("c",))
    assert state.seen is None  # its log is not there yet
    assert state.left_ns == 70_000_000_000
    shutil.copy(GOLDEN / "wakeup.rtlog", run / "b.partial" / store.CLIENT_LOG)
    state = followed.state()
    assert state.seen is not None and state.seen.settled > 0
    assert state.left_ns == 60_000_000_000 + state.seen.left_ns != 70_000_000_000
    (run / "b.partial").rename(run / "b")
    shutil.copy(run / "a" / "cell.json", run / "b" / "cell.json")
    state = followed.state()
    assert (set(state.done), state.running, state.over) == ({"a", "b"}, None, False)


def test_a_cell_that_is_tried_again_runs(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    write_wakeups(run / "b", draw(1, 1000))  # from the try before
    state = FollowedRun.at(run).state()
    assert (set(state.done), state.running) == ({"a"}, "b")


def test_all_that_rigs_measure_at_once_have_begun_and_what_is_left_is_not_known(tmp_path: Path) -> None:
    """The campaign's file alone names no rig, so none of its cells is one of these."""
    run = a_run(tmp_path)
    ids = [f"{cell}-rig-{rig}" for cell in "ab" for rig in range(4)]
    rig = {"address": "ssh://rig", "labels": {}, "set": {}, "place": None}
    rigs = {f"rig-{number}": rig for number in range(4)}
    write_run(run, run_json(run) | {"cells": ids, "rigs": rigs}, CAMPAIGN)
    (run / "b.partial").rmdir()
    for cell in ids[:5]:
        (run / f"{cell}{store.PARTIAL}").mkdir()
    state = FollowedRun.at(run).state()
    assert (state.begun, state.to_come, state.left_ns) == (tuple(ids[:5]), tuple(ids[5:]), None)
    assert line(state) == "[5/8] measured: a-rig-0, a-rig-1, a-rig-2 and 2 more"
    assert list(screens._lines(state, "#"))[1:] == [
        "to come: b-rig-1, b-rig-2, b-rig-3",
        "measured at the same time: a-rig-1, a-rig-2, a-rig-3 and 1 more",
        "a-rig-0: starts",
    ]
    told = metrics.text(state).decode()
    assert "rtmeter_cells_to_come 3.0" in told and "left_seconds" not in told


def test_a_cell_alone_is_followed_too(tmp_path: Path) -> None:
    (tmp_path / "cell.partial").mkdir()
    shutil.copy(GOLDEN / "wakeup.rtlog", tmp_path / "cell.partial" / store.CLIENT_LOG)
    state = FollowedRun.at(tmp_path / "cell").state()
    assert state.running == "cell" and state.seen is not None
    with pytest.raises(RtmeterError, match="holds no run"):
        FollowedRun.at(tmp_path / "nowhere")


def seen(**changes: Any) -> CellSeen:
    values = np.concatenate((draw(1, 100_000), [9_000_000]))
    known: dict[str, Any] = {
        "quantity": "round_trip",
        "settled": 600,
        "planned": 1000,
        "period_ns": 1_000_000,
        "served": len(values),
        "skipped": 12,
        "lost": 3,
        "late": 4,
        "deadline_ns": 1_000_000,
        "last_ns": int(values[0]),
        "p99_9_ns": 800_000,
        "max_ns": int(values.max()),
        "counts": bins.count(values),
        "machine": {"cpu0_busy": 0.5, "cpu1_busy": 0.25, "load_workers": 8.0},
        "doubts": ("3 lost",),
    }
    return CellSeen(**(known | changes))


STATE = RunState(
    "a-campaign-with-a-name, 20261121T090000Z",
    {"a": "pass", "b": "fail"},
    "c-cell",
    seen(),
    ("d",),
    70 * 10**9,
)


@pytest.mark.parametrize(
    ("encoding", "lc_all", "bar"),
    [("utf-8", "", "█"), ("utf-8", "C", "#"), ("ascii", "", "#"), ("latin-1", "", "#")],
)
def test_the_picture_fits_80_columns_in_any_encoding(
    encoding: str, lc_all: str, bar: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", lc_all)

    class Terminal(StringIO):
        @property
        def encoding(self) -> str:  # type: ignore[override]
            return encoding

    out = Terminal()
    console = Console(file=out, width=80, force_terminal=True, no_color=True, highlight=False)
    console.print(screen(STATE, console))
    text = out.getvalue()
    text.encode(encoding)
    assert {"█", "#"} & set(text) == {bar}
    assert max(map(len, text.splitlines())) <= 80
    for words in ("2 of 4 cells done (1 fail, 1 pass)", "to come: d", "60% of 1,000", "skipped 12", "lost 3"):
        assert words in text
    for words in (
        "p99.9 800.0",
        "max 9,000.0",
        "later than 1,000.0 us: 4",
        "8 load workers",
        "warning: 3 lost",
    ):
        assert words in text


def test_what_a_narrow_terminal_does_not_hold_goes_on_in_the_next_line() -> None:
    machine = {f"cpu{number}_busy": 1.0 for number in range(32)} | {"psi_io_some": 0.004, "running": 15.0}
    state = replace(
        STATE, seen=seen(machine=machine), to_come=tuple(f"a-cell-with-a-name-{n}" for n in range(9))
    )
    out = StringIO()
    console = Console(file=out, width=50, force_terminal=True, no_color=True, highlight=False)
    console.print(screen(state, console))
    assert max(map(len, out.getvalue().splitlines())) <= 50
    words = " ".join(out.getvalue().split())
    assert "a-cell-with-a-name-2 and 6 more" in words
    assert f"CPUs busy {' '.join(['100%'] * 32)}, 15 running" in words


def test_every_value_is_in_one_row_of_the_histogram() -> None:
    counts = seen().counts
    rows = [row.split() for row in histogram(counts, "#")]
    assert sum(int(row[1].replace(",", "")) for row in rows) == counts.sum()
    starts = [float(row[0].replace(",", "")) for row in rows]
    assert starts == sorted(starts) and 2 < len(rows) <= 12
    assert list(histogram(np.zeros_like(counts), "#")) == []
    assert len(list(histogram(bins.count(np.array([-5_000])), "#"))) == 1


def test_a_line_says_the_same() -> None:
    assert (
        line(STATE) == "[3/4] c-cell: 60%, max 9,000.0 us, 4 late, 3 lost, 12 skipped, 0:01:10 left; 3 lost"
    )


def test_metrics_are_openmetrics(tmp_path: Path) -> None:
    path = tmp_path / "rtmeter.prom"
    metrics.write(path, STATE)
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(path.read_text())
        for sample in family.samples
    }
    cell = ("cell", "c-cell")
    assert found["rtmeter_cells_done", ("outcome", "pass")] == 1
    assert found["rtmeter_cells_to_come",] == 1
    assert found["rtmeter_running",] == 1
    assert found["rtmeter_releases", cell, ("end", "lost")] == 3
    assert found["rtmeter_late_releases", cell] == 4
    assert found["rtmeter_quantity_max_seconds", cell, ("quantity", "round_trip")] == 0.009
    assert path.stat().st_mode & 0o777 == 0o644
    with pytest.raises(RtmeterError, match="cannot be written"):
        metrics.write(tmp_path / "no" / "such", STATE)
    assert list(tmp_path.iterdir()) == [path]


def test_watch_looks_once_and_ends_with_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run(tmp_path)
    assert cli.invoke(["watch", str(tmp_path), "--once", "--metrics", str(tmp_path / "m.prom")]) == 0
    assert capsys.readouterr().out == "[2/3] b: starts\n"
    assert "rtmeter_cells_to_come 1.0" in (tmp_path / "m.prom").read_text()
    (run / "b.partial").rmdir()
    for cell in ("b", "c"):
        write_wakeups(run / cell, draw(1, 1000))
    assert cli.invoke(["watch", str(run)]) == 0  # over: it does not wait
    assert capsys.readouterr().out == "[3/3] three, 20261121T090000Z: done\n"
    shutil.rmtree(run / "c")  # interrupted before it
    about = run_json(run)
    write_run(run, about | {"ended": "2026-11-21T09:01:00Z"}, None)
    assert cli.invoke(["watch", str(run)]) == 0
    assert capsys.readouterr().out == "[2/3] three, 20261121T090000Z: ended\n"
    assert cli.invoke(["watch", str(run), "--every", "0s"]) == 1
    assert "--every" in capsys.readouterr().err
