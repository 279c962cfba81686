"""What a watch makes of a run that goes on under its eyes: from cell to cell, and to its end."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rtmeter.live import metrics
from rtmeter.live.run import FollowedRun, RunState
from rtmeter.live.seen import CellSeen, RunningCell
from rtmeter.results import store
from stored import record, run_json, write_run

GOLDEN = Path(__file__).resolve().parent.parent.parent / "spec" / "golden"
CAMPAIGN = """
name: two
cells:
  - {name: b, measurement: wakeup, adapter: posix, duration: 9s, warm_up: 1s}
  - {name: c, measurement: wakeup, adapter: posix, duration: 59s, warm_up: 1s}
"""
SEEN = CellSeen(
    quantity="latency",
    settled=600,
    planned=1_000,
    period_ns=1_000_000,
    served=580,
    skipped=12,
    lost=3,
    late=4,
    deadline_ns=2_000_000,
    last_ns=50_000,
    p99_9_ns=800_000,
    max_ns=9_000_000,
    counts=np.zeros(1, dtype=np.int64),
    machine={},
    doubts=(),
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Cell b is measured, c is to come."""
    folder = tmp_path / "20261121T090000Z"
    about = {"campaign": "two", "started": "2026-11-21T09:00:00Z", "scale": 1, "host": None}
    write_run(folder, about | {"cells": ["b", "c"]}, CAMPAIGN)
    (folder / "b.partial").mkdir()
    shutil.copy(GOLDEN / "wakeup.rtlog", folder / "b.partial" / store.CLIENT_LOG)
    return folder


def test_a_watch_goes_on_with_the_cell_that_is_measured_next(run: Path) -> None:
    """Also where it looks at no moment between the two."""
    followed = FollowedRun.at(run)
    first = followed.state()
    assert first.running == "b" and first.seen is not None and first.seen.settled > 0
    shutil.rmtree(run / "b.partial")
    store.NewCell(run / "b").finish(record("b"))
    (run / "c.partial").mkdir()
    state = followed.state()
    assert (state.running, state.seen, state.left_ns) == ("c", None, 60_000_000_000)


def test_of_a_run_without_rigs_one_cell_is_measured_at_a_time(run: Path) -> None:
    """Another unfinished one is of a front that was killed."""
    (run / "c.partial").mkdir()
    state = FollowedRun.at(run).state()
    assert (state.begun, state.to_come) == (("b",), ("c",))


def test_a_run_that_ends_before_its_last_cell_is_seen_to(run: Path) -> None:
    followed = FollowedRun.at(run)
    assert not followed.state().ended
    shutil.rmtree(run / "b.partial")
    write_run(run, run_json(run) | {"ended": "2026-11-21T09:01:00Z"}, None)
    state = followed.state()
    assert state.ended and state.over and state.to_come == ("b", "c")


def test_a_release_that_is_waited_for_takes_its_timeout(tmp_path: Path) -> None:
    (tmp_path / store.CLIENT_LOG).write_bytes((GOLDEN / "wakeup.rtlog").read_bytes())
    running = RunningCell(tmp_path)
    running.look()
    _, meta = running._known()
    meta |= {"timeout_ns": 5_000_000, "period_ns": 2_000_000}
    seen = running.look()
    assert seen is not None and seen.period_ns == 5_000_000


def test_more_releases_than_were_planned_leave_no_time() -> None:
    assert (SEEN.left_ns, SEEN.share) == (400_000_000, 0.6)
    more = replace(SEEN, settled=1_200)
    assert (more.left_ns, more.share) == (0, 1.0)
    assert (replace(SEEN, planned=0).left_ns, replace(SEEN, planned=0).share) == (0, 0.0)


def test_every_metric_is_in_its_unit() -> None:
    state = RunState("two", {"a": "pass"}, "b", SEEN, ("c", "d"), 70 * 10**9)
    told = [line for line in metrics.text(state).decode().splitlines() if not line.startswith("#")]
    of = '{cell="b",quantity="latency"}'
    assert sorted(told) == sorted(
        [
            'rtmeter_cells_done{outcome="pass"} 1.0',
            "rtmeter_cells_to_come 2.0",
            "rtmeter_left_seconds 70.0",
            "rtmeter_running 1.0",
            'rtmeter_settled_share{cell="b"} 0.6',
            'rtmeter_releases{cell="b",end="served"} 580.0',
            'rtmeter_releases{cell="b",end="skipped"} 12.0',
            'rtmeter_releases{cell="b",end="lost"} 3.0',
            'rtmeter_late_releases{cell="b"} 4.0',
            f"rtmeter_quantity_max_seconds{of} 0.009",
            f"rtmeter_quantity_p99_9_seconds{of} 0.0008",
            f"rtmeter_quantity_last_seconds{of} 5e-05",
            'rtmeter_deadline_seconds{cell="b"} 0.002',
        ]
    )
