"""A thread that is followed part by part has the rows that it has at once, and they come meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from programs import Program, T

from rtmeter.attach import follow
from rtmeter.attach import jobs as of_jobs
from rtmeter.attach.follow import Followed, Part
from rtmeter.attach.grid import loop_of
from rtmeter.attach.jobs import Job, jobs_of
from rtmeter.attach.releases import columns_of
from rtmeter.attach.sleeps import sleeps_of
from rtmeter.errors import RtmeterError
from rtmeter.explain.events import Trace
from rtmeter.measure.programs.following import Following

MS = 1_000_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "HEAD", 30)
    monkeypatch.setattr(follow, "PIECE", 16)
    monkeypatch.setattr(of_jobs, "PATIENCE", 30)


def loop(releases: list[int], call: str = "clock_nanosleep", lost_at: tuple[int, ...] = ()) -> Trace:
    program = Program()
    at = 50
    for release in releases:
        program.sleep(at, release, release + 100, call)
        at = release + 400
    for one in lost_at:
        program.lose(one)
    return program.trace


EVEN = [k * MS for k in range(1, 101)]
TRACES = {
    "even": loop(EVEN),
    "skips": loop([release for release in EVEN if release % (7 * MS)]),
    "another_period": loop(EVEN + [100 * MS + 3 * k * MS for k in range(1, 41)]),
    "relative": loop([MS + k * (MS + 400) for k in range(100)], "nanosleep"),
    "relative_lost": loop([MS + k * (MS + 400) for k in range(100)], "nanosleep", (20 * MS + 200,)),
    "messages": loop(EVEN[:3], "nanosleep"),
    "lost": loop(EVEN, lost_at=(20 * MS + 200, 60 * MS - 200, 60 * MS + 150)),
}


def locking() -> Trace:
    """Two waits for a lock in every other job, and one in those between."""
    program, at = Program(), 50
    for release in EVEN:
        program.sleep(at, release, release + 100)
        for lock in (release + 200, release + 300)[: 1 + release // MS % 2]:
            program.wait(lock, lock + 50, lock + 80, "futex")
        at = release + 500
    return program.trace


TRACES["locks"] = locking()


def parts(trace: Trace, rows: int) -> Iterator[Part]:
    for first in range(0, len(trace), rows):
        last = min(first + rows, len(trace))
        yield trace.taken(slice(first, last)), trace.time_ns[last - 1] + 1


@pytest.mark.parametrize("rows", [1, 13, 10_000])
@pytest.mark.parametrize("name", TRACES)
def test_in_parts_of_any_size_its_rows_are_those_of_all_at_once(name: str, rows: int) -> None:
    trace = TRACES[name]
    jobs = list(jobs_of(sleeps_of(trace, T).sleeps))
    whole = columns_of(jobs, loop_of(jobs))
    followed = Followed(T, parts(trace, rows), None, 0)
    pieces = list(followed.pieces())
    for column, values in whole.items():
        assert np.concatenate([piece[column] for piece in pieces]).tolist() == values.tolist()
    assert followed.loop == loop_of(jobs)
    told = sleeps_of(trace, T)
    assert (followed.seen.events, followed.seen.priorities) == (told.events, frozenset({100}))
    assert followed.slept == len(told.sleeps)


def test_rows_come_while_events_are_still_to_come() -> None:
    taken = 0

    def coming() -> Iterator[Part]:
        nonlocal taken
        for part in parts(TRACES["even"], 7):
            taken += 1
            yield part

    pieces = Followed(T, coming(), None, 0).pieces()
    first = next(pieces)
    assert len(first["status"]) == follow.PIECE
    assert taken < len(list(parts(TRACES["even"], 7))) // 2


def test_of_the_skipped_releases_those_that_it_slept_over_are_counted() -> None:
    program = Program()
    for release, at in ((MS, 50), (2 * MS, MS + 400), (3 * MS, 2 * MS + 400), (6 * MS, 4 * MS + 900)):
        program.sleep(at, release, release + 100)
    program.sleep(6 * MS + 400, 7 * MS, 7 * MS + 100)
    program.sleep(7 * MS + 400, 8 * MS, 8 * MS + 100)
    followed = Followed(T, [(program.trace, None)], MS, 0)
    assert sum(len(piece["status"]) for piece in followed.pieces()) == 7
    assert (followed.skipped, followed.slept_over) == (2, 1)


@pytest.mark.parametrize("warm_up_ms", [0, 10, 70])
def test_the_first_piece_has_the_whole_warm_up(warm_up_ms: int) -> None:
    followed = Followed(T, parts(TRACES["even"], 7), None, warm_up_ms * MS)
    first = next(followed.pieces())
    assert followed.warm_up == sum(release < warm_up_ms * MS for release in EVEN)
    assert len(first["status"]) >= warm_up_ms


def test_what_cannot_be_written_is_told_while_it_records(tmp_path: Path) -> None:
    following = Following(T, tmp_path / "none" / "rows", None, 0)
    for part, until_ns in parts(TRACES["even"], 7):
        following.see(part, until_ns)
    with pytest.raises(RtmeterError, match=r"cannot be written: .*no such file"):
        following.end()
    following.end(given_up=True)


@pytest.mark.parametrize("name", [name for name in TRACES if name != "locks"])
def test_jobs_are_told_as_they_end(name: str) -> None:
    told: list[Job] = []
    followed = Followed(T, parts(TRACES[name], 7), None, 10 * MS, tell=told.append)
    for _ in followed.pieces():
        pass
    jobs = [job for job in jobs_of(sleeps_of(TRACES[name], T).sleeps) if job.known]
    late = [replace(job, waits=0) for job in jobs if job.release_ns >= followed._warm_until_ns]
    assert told == late and (len(late) > 70 or name == "messages")


def test_long_before_there_are_rows_of_them() -> None:
    told: list[Job] = []
    some = list(parts(TRACES["even"], 7))[:20]
    assert not [*Followed(T, iter(some[:-1]), None, 0, tell=told.append).pieces()] or told
    assert 0 < len(told) < follow.HEAD


@pytest.mark.parametrize("has_timers", [False, True])
def test_a_wait_for_a_lock_ends_no_job_that_is_told_of_a_thread_that_timers_pace(has_timers: bool) -> None:
    program, told, at = Program(), list[Job](), 50
    for release in EVEN[:10]:
        if has_timers:
            program.sleep(at, release, release + 100)
        program.wait(release + 200, release + 250, release + 280, "futex")
        at = release + 500
    for _ in Followed(T, [(program.trace, None)], None, 0, tell=told.append).pieces():
        pass
    at_ends, at_locks = [k * MS + 520 for k in range(1, 10)], [k * MS + 220 for k in range(2, 11)]
    assert [job.free_ns for job in told] == (at_ends if has_timers else at_locks)
