"""rtmeter attach beside what programs record of themselves: every kind of sleep, in one recording."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from attached import compiled, here, names_of, records, switches

from cpus import ONLINE, OWN, takes_deadline
from front import ended, running
from rtmeter.model import SKIPPED
from rtmeter.results import store
from rtmeter.results.record import CellRecord
from waiting import until

pytestmark = here

ON_A_GRID = ("absolute", "wall_clock", "condition", "semaphore", "timerfd", "signal", "budget")
RELATIVE = ("relative", "poll", "select", "epoll")
AT_ONCE = ("budget",)
"""Whose wait does not sleep where its next period has come already, of which no event tells: a release that
nobody slept for is skipped."""
URGENT = 'chrt --fifo --pid 1 $$ || renice -n -20 $$; exec "$@"'
"""Of a relative sleep a busy machine leaves no period."""
KINDS = {
    "absolute": "clock_nanosleep",
    "wall_clock": "clock_nanosleep",
    "relative": "clock_nanosleep",
    "poll": "poll",
    "select": "pselect6",
    "epoll": "epoll_wait",
    "condition": "futex",
    "semaphore": "futex",
    "timerfd": "timerfd",
    "signal": "posix_timer",
    "budget": "deadline",
}


def each(names: Iterable[str]) -> list[object]:
    """Of a deadline's budget only where the policy can be had."""
    return [pytest.param(name, marks=[takes_deadline] if name == "budget" else []) for name in names]


@dataclass
class Pair:
    """What was told of a thread, and (due, stamp) of each wake-up as it knows them itself."""

    record: CellRecord
    rows: dict[str, np.ndarray]
    own: np.ndarray


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Pair]]:
    folder = tmp_path_factory.mktemp("attach")
    program, written = compiled("sleepers", folder), folder / "own.txt"
    process = subprocess.Popen(["sh", "-c", URGENT, "sh", program, written])
    wanted = {name for name in KINDS if name != "budget" or OWN == ONLINE}
    enough, out = 6000 if os.environ.get("RTMETER_FULL") == "1" else 200, folder / "cells"
    try:
        until(lambda: names_of(process.pid).keys() >= wanted, of=process)
        tids = [tid for name, tid in names_of(process.pid).items() if name in wanted]
        with running("attach", "--pid", process.pid, "--all", "--duration", "1h", "--out", out) as front:
            until(lambda: any(out.glob(".rows-*")) and records(front), of=front)  # it has looked at them
            before = {tid: switches(process.pid, tid) for tid in tids}
            until(lambda: all(switches(process.pid, tid) >= before[tid] + enough for tid in tids), of=front)
            front.send_signal(signal.SIGINT)
            done = ended(front)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        process.kill()
    assert done.code == 1, done.err
    own: dict[str, list[tuple[int, int]]] = {}
    for line in written.read_text().splitlines():
        name, due, stamp = line.split()
        own.setdefault(name, []).append((int(due), int(stamp)))
    found = {}
    for cell in out.iterdir():
        record = store.read_cell(cell)
        assert record.status == "interrupted", record.error
        name = str(record.threads.client[0]["name"])
        chunks = list(store.chunks(cell)())
        rows = {key: np.concatenate([chunk[key] for chunk in chunks]) for key in chunks[0]}
        found[name] = Pair(record, rows, np.asarray(own[name]))
    return found


def test_every_kind_of_sleep_is_found_and_named(pairs: dict[str, Pair]) -> None:
    assert {
        name: max(pair.record.grid["kinds"], key=pair.record.grid["kinds"].get)
        for name, pair in pairs.items()
    } == {name: kind for name, kind in KINDS.items() if name != "budget" or OWN == ONLINE}


@pytest.mark.parametrize("name", each(KINDS))
def test_each_wake_up_is_told_before_the_programs_own_stamp_and_its_end_after(pairs, name: str) -> None:
    """Where nothing was lost, every stamp of the window lies within the job that served it, one each; what
    waited without a sleep goes on with its job."""
    pair = pairs[name]
    served = pair.rows["status"] == 1
    wakes, frees = pair.rows["wake_ns"][served], pair.rows["free_ns"][served]
    stamps = pair.own[:, 1]
    inside = stamps[(stamps >= wakes[0]) & (stamps <= frees[-1])]
    assert len(wakes) > 10
    jobs = np.searchsorted(wakes, inside) - 1
    known = inside[(jobs >= 0) & (inside < frees[jobs])]
    assert len(set(jobs.tolist())) == len(wakes)
    at_once = int((pair.rows["status"] == SKIPPED).sum()) if name in AT_ONCE else 0
    assert len(wakes) <= len(known) <= len(wakes) + at_once
    if pair.record.counters["unknown"] == 0:
        assert len(known) == len(inside)
        assert (wakes[jobs] < inside).all()


@pytest.mark.parametrize("name", ("absolute", "condition", "semaphore", "timerfd"))
def test_every_release_is_the_time_that_the_program_slept_for(pairs: dict[str, Pair], name: str) -> None:
    pair = pairs[name]
    releases = pair.rows["release_ns"]
    served = set(releases[pair.rows["status"] == 1].tolist())
    asked = {int(due) for due in pair.own[:, 0] if releases[0] <= due <= releases[-1]}
    if pair.record.counters["unknown"] == 0:
        skipped = set(releases[pair.rows["status"] == SKIPPED].tolist())
        assert served <= asked
        assert asked - served <= (skipped if name in AT_ONCE else set())
    assert asked <= set(releases.tolist())


@pytest.mark.parametrize("name", each(ON_A_GRID))
def test_what_sleeps_until_a_time_has_a_grid(pairs: dict[str, Pair], name: str) -> None:
    grid = pairs[name].record.grid
    assert grid["t0_from"] == "timer"
    assert abs(grid["period_ns"] - 10_000_000) <= (1000 if name == "budget" else 0)  # by another clock
    assert grid["drift_ns"] is None


@pytest.mark.parametrize("name", RELATIVE)
def test_the_drift_of_relative_sleeps_is_told_and_nothing_is_skipped(
    pairs: dict[str, Pair], name: str
) -> None:
    record = pairs[name].record
    assert record.grid["t0_from"] is None
    assert record.grid["drift_ns"] > 0
    assert record.summary is not None and record.summary.counts["skipped"] == 0
    assert "relative_sleeps" in {doubt.type for doubt in record.warnings}


def test_a_cell_says_that_it_is_attached_and_what_that_cost(pairs: dict[str, Pair]) -> None:
    for pair in pairs.values():
        record = pair.record
        assert (record.adapter, record.measurement) == ("attached", "loop")
        assert record.instrument["traced_ns_per_job"] > 0
        assert "events_lost" in record.counters
        thread, found = record.threads.client[0], {one.id: one for one in record.findings or ()}
        assert ("normal_policy" in found) == (thread["policy"] == "other"), "as it is, not as rtmeter is"
        above = found["task_at_or_above"].items if "task_at_or_above" in found else []
        assert thread["tid"] not in [one["tid"] for one in above]
        assert list(record.summary.quantities) == ["completion", "latency", "busy", "interval"]
