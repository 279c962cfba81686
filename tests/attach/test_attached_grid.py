"""Which distances of releases are a period, and which are none: jobs made up one by one."""

from __future__ import annotations

from itertools import accumulate

import pytest

from rtmeter.attach import releases
from rtmeter.attach.grid import loop_of
from rtmeter.attach.jobs import Job
from rtmeter.attach.releases import columns_of
from rtmeter.attach.sleeps import MESSAGE
from rtmeter.model import SERVED, SKIPPED

MS = 1_000_000


def jobs(distances: list[int], kind: str = "clock_nanosleep") -> list[Job]:
    """Released at these distances, the first at 1 ms; each is back 100 ns later and works for 300 ns."""
    return [Job(at, at + 100, at + 400, 300, kind, None) for at in accumulate(distances, initial=MS)]


@pytest.mark.parametrize(("periods", "skipped"), [(5, 4), (6, 0)])
def test_a_gap_longer_than_the_largest_is_a_loop_that_was_stopped_and_no_skips(
    monkeypatch: pytest.MonkeyPatch, periods: int, skipped: int
) -> None:
    monkeypatch.setattr(releases, "LARGEST_GAP", 5)
    found = jobs([MS] * 4 + [periods * MS] + [MS] * 4)
    status = columns_of(found, loop_of(found))["status"].tolist()
    assert (status.count(SERVED), status.count(SKIPPED)) == (10, skipped)


@pytest.mark.parametrize(("off_ns", "steady"), [(MS // 4, True), (MS // 4 + 1, False)])
def test_a_period_is_near_most_distances(off_ns: int, steady: bool) -> None:
    found = loop_of(jobs([MS - off_ns, MS + off_ns] * 10, "nanosleep"), MS)
    assert (found.on_grid, found.steady, found.drift_ns) == (False, steady, 0 if steady else None)


@pytest.mark.parametrize(("answers", "paced"), [(1, True), (2, False)])
def test_a_loop_that_waits_once_for_an_answer_in_each_cycle_is_paced_by_its_timer(
    answers: int, paced: bool
) -> None:
    cycles = jobs([MS] * 10)
    waits = [Job(job.free_ns + 50, job.free_ns + 60, job.free_ns + 90, 30, MESSAGE, None) for job in cycles]
    found = sorted(cycles + waits * answers, key=lambda job: job.release_ns)
    loop = loop_of(found)
    assert (loop.by_timer, loop.on_grid) == (paced, paced)
    assert (loop.period_ns == MS) == paced
