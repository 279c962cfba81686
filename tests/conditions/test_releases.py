"""Releases that are told of while they are measured: what of a long recording stays goes by them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rtmeter.conditions import releases
from rtmeter.conditions.releases import LoggedReleases, ToldReleases
from rtmeter.model import SERVED, SKIPPED, WARM_UP_FLAG
from rtmeter.statistics.quantities import Ints
from rtmeter.trace.chosen import span_of

MS = 1_000_000


class Log:
    """A log that grows: each call gives what has come since."""

    def __init__(self, *frames: dict[str, Ints]) -> None:
        self.path, self.header, self._frames = Path("probe.rtlog"), {"any": 1}, list(frames)

    def new(self) -> Iterator[dict[str, Ints]]:
        if self._frames:
            yield self._frames.pop(0)


def frame(first: int, lateness_us: list[int | None], warm_up: int = 0) -> dict[str, Ints]:
    k = np.arange(first, first + len(lateness_us))
    release = k * 10_000_000
    wake = release + np.array([0 if us is None else us * 1000 for us in lateness_us])
    status = np.array([SKIPPED if us is None else SERVED for us in lateness_us])
    status[:warm_up] |= WARM_UP_FLAG
    return {"k": k, "release_ns": release, "wake_ns": wake, "free_ns": wake, "status": status}


@pytest.mark.parametrize("deadline_ns", [100_000, None])
def test_the_log_tells_which_releases_are_late(
    deadline_ns: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(frame(0, [900, 20, 101, None, 20], warm_up=1), frame(5, [20, 500]))
    config = {"period_ns": 10_000_000}
    about = SimpleNamespace(measurement="wakeup", mode=None, config=config)
    monkeypatch.setattr(releases, "Follower", lambda _: log)
    monkeypatch.setattr(releases.LogMeta, "of", lambda *_: about)
    found = LoggedReleases([Path("probe.rtlog")], deadline_ns, 7 * 10**6)
    first, second, third = (list(found.new()) for _ in range(3))
    assert [span.k for span in first] == [1, 2, 4] and [span.k for span in second] == [5, 6] and third == []
    late = [span.k for span in (*first, *second) if span.late]
    assert late[-1] == 6 and (deadline_ns is None or late == [2, 6])
    assert second[1] == span_of(6, 50_000_000, 60_000_000, 60_500_000, late=True, late_ns=7 * 10**6)
    assert second[0] == span_of(5, 40_000_000, 50_000_000, 50_020_000, late=False), "the one before is known"
    assert first[2] == span_of(4, 20_000_000, 40_000_000, 40_020_000, late=False), "one that was served"


def test_of_a_targets_log_what_has_come_is_read_until_the_whole_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, (whole, part) = Log(), (tmp_path / "probe.rtlog", tmp_path / "part")
    monkeypatch.setattr(releases, "Follower", lambda _: log)
    found = LoggedReleases([whole, part], None, 0)
    read = []
    for path in (None, part, whole):
        if path is not None:
            path.touch()
        assert list(found.new()) == []
        read.append(log.path)
    assert read == [whole, part, whole]


def test_of_jobs_that_are_told_one_is_late_by_the_deadline_and_its_k_is_its_time() -> None:
    told = ToldReleases(100_000, 7 * MS)
    assert told.new() == [], "it is recorded before there is anybody to tell"
    one = told.teller()
    assert told.new() == []
    one.tell(10 * MS, 10_100_000, 10_400_000)
    one.tell(20 * MS, 20_100_001, 20_400_000)
    first, second = told.new() or []
    assert first == span_of(10 * MS, None, 10 * MS, 10_400_000, late=False)
    assert second == span_of(20 * MS, 10 * MS, 20 * MS, 20_400_000, late=True, late_ns=7 * MS)
    one.tell(30 * MS, 30_000_500, 30_000_500)
    assert told.new() == [span_of(30 * MS, 20 * MS, 30 * MS, 30_000_500, late=False)]
    assert told.new() == [] and not told.overtaken
    told.nobody_tells()
    assert told.new() is None


def test_without_a_deadline_the_latest_hundredth_that_each_thread_told_is_late() -> None:
    """And what is in the bin of the first of it."""
    told = ToldReleases(None, 0)
    slow, quick = told.teller(), told.teller()
    late_ns = [MS + 1000 * (number * 7 % 1000) for number in range(1000)]
    for number, late in enumerate(late_ns, 1):
        slow.tell(number * 10 * MS, number * 10 * MS + late, 0)
        quick.tell(number * 10 * MS + 1, number * 10 * MS + 1 + late // 1000, 0)
    for one in (slow, quick):
        one.tell(10**12, 10**12, 0)
    found = {span.k for span in told.new() or [] if span.late}
    for remainder in (0, 1):
        late_ones = {k for k in found if k % MS == remainder}
        expected = {n * 10 * MS + remainder for n, late in enumerate(late_ns, 1) if late > 1_990_000}
        assert late_ones >= expected and len(late_ones) <= 26


def test_of_several_threads_what_one_may_still_need_is_not_passed_over() -> None:
    told = ToldReleases(MS, 0)
    slow, quick = told.teller(), told.teller()
    for k in range(1, 4):
        quick.tell(k * MS, k * MS + 5, k * MS + 5)
    assert told.new() == [], "the slow one has told nothing"
    slow.tell(2 * MS + 1, 2 * MS + 9, 2 * MS + 9)
    assert [span.k for span in told.new() or []] == [MS, 2 * MS, 2 * MS + 1]
    quick.tell(4 * MS, 4 * MS + 5, 4 * MS + 5)
    assert told.new() == []
    slow.is_over = lambda: True
    assert [span.k for span in told.new() or []] == [3 * MS, 4 * MS]
    slow.tell(5 * MS, 5 * MS, 5 * MS)
    quick.is_over = slow.is_over
    assert [span.k for span in told.new() or []] == [5 * MS], "of all that are over the rest"


def test_once_all_is_told_nothing_is_held_up() -> None:
    told = ToldReleases(MS, 0)
    quick, _ = told.teller(), told.teller()
    quick.tell(MS, MS, MS)
    assert told.new() == []
    told.end()
    assert [span.k for span in told.new() or []] == [MS]
    assert told.new() == [] and not told.overtaken


@pytest.mark.parametrize("told_before", [False, True])
def test_a_thread_that_lags_behind_for_a_minute_is_waited_for_no_longer(told_before: bool) -> None:
    second = 10**9
    told = ToldReleases(MS, 0)
    slow, quick = told.teller(), told.teller()
    if told_before:
        slow.tell(second, second, second)
    for k in range(1, 71):
        quick.tell(k * second, k * second, k * second)
    assert [span.k // second for span in told.new() or []] == [1] * told_before + [*range(1, 11)]
    assert not told.overtaken
    slow.tell(10 * second, 71 * second, 71 * second)
    assert [span.k // second for span in told.new() or []] == [10] and not told.overtaken, "just in time"
    slow.tell(10 * second - 1, 71 * second, 71 * second)
    told.end()
    assert (told.new() or [])[0].k == 10 * second - 1 and told.overtaken
