"""The recording of a cell where something fails: the cell stays whole, and says what its trace lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rtmeter.conditions import parts_of, recording
from rtmeter.conditions.recording import Recording
from rtmeter.conditions.releases import LoggedReleases, ToldReleases
from rtmeter.errors import RtmeterError
from rtmeter.explain.events import KINDS, Event, Trace
from rtmeter.host.root import Root
from rtmeter.model import LOCAL, Cell
from rtmeter.trace.choice import TraceChoice
from rtmeter.trace.events import GROUPS
from rtmeter.trace.recorder import RecordingTally
from rtmeter.trace.spool import MOST_BYTES
from rtmeter.trace.table import FILE, open_trace


class Fake:
    """A recorder that has ended."""

    def __init__(self, tally: RecordingTally | None = None, error: RtmeterError | None = None) -> None:
        self._tally, self._error, self.tidied = tally, error, False

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def parts(self) -> Iterator[Trace]:
        if self._error is not None:
            raise self._error
        yield Trace([Event(5, 0, KINDS.index("fault"), 7)])

    @property
    def kept(self) -> tuple[int, ...] | None:
        return self._tally.kept if self._tally else None

    def tally(self) -> RecordingTally | None:
        return self._tally

    def tidy(self) -> None:
        self.tidied = True


def recorded(folder: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Recording:
    monkeypatch.setattr(recording, "Recorder", lambda *_: fake)
    with Recording("/t/instances/x", folder, set(), Root()) as part:
        pass
    return part


def test_what_a_trace_lacks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tally = RecordingTally(10, 3, 4096, ("raw_syscalls/sys_enter",), True)
    fake = Fake(tally)
    part = recorded(tmp_path, fake, monkeypatch)
    assert (tmp_path / FILE).is_file() and fake.tidied and part.failure() is None
    counts = {"events": 10, "lost": 3, "bytes": 4096, "missing": ["raw_syscalls/sys_enter"], "kept": None}
    assert part.facts() == {"achieved": {"trace": counts}}
    doubts = {doubt.type: doubt.message for doubt in part.doubts()}
    assert doubts["trace_lost"].startswith("3 events of the kernel were lost")
    assert f"broke off at {MOST_BYTES >> 20} MiB" in doubts["trace_incomplete"]
    assert "raw_syscalls/sys_enter: the kernel is not told from" in doubts["trace_event_missing"]
    whole = recorded(tmp_path, Fake(RecordingTally(10, 0, 4096, (), False)), monkeypatch)
    assert whole.doubts() == []
    tally = RecordingTally(10, 0, 4096, ("sched/sched_pi_setprio",), False)
    (doubt,) = recorded(tmp_path, Fake(tally), monkeypatch).doubts()
    assert doubt.type == "trace_event_missing"
    assert "sched_pi_setprio: whose priority was lent to the holder" in doubt.message


def test_what_was_asked_of_it_goes_to_the_recorder_and_into_what_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    fake = Fake(RecordingTally(10, 0, 4096, (), True))
    monkeypatch.setattr(recording, "Recorder", lambda *words: (given.extend(words), fake)[1])
    groups = tuple(name for name in GROUPS if name not in ("system_calls", "page_faults"))
    choice = TraceChoice(groups, 512 << 20)
    with Recording("/t/instances/x", tmp_path, set(), Root(), choice=choice) as part:
        pass
    assert given[-1] is choice
    calls, faults, cut = sorted(part.doubts(), key=lambda doubt: doubt.type == "trace_incomplete")
    calls, faults = sorted((calls, faults), key=lambda doubt: doubt.message, reverse=True)
    assert calls.type == faults.type == "trace_event_left_out"
    assert calls.message.startswith("system calls were not recorded, as was asked: the kernel is not told")
    assert faults.message.startswith("page faults were not recorded, as was asked: they are not counted")
    assert "broke off at 512 MiB" in cut.message and "--explain-with size=" in cut.hint


@pytest.mark.parametrize(
    ("adapter", "host", "by"),
    [("posix", LOCAL, "LoggedReleases"), ("attached", LOCAL, "ToldReleases"), ("attached", "board", None)],
)
def test_where_nothing_tells_of_releases_all_is_kept_until_there_is_no_more_room(
    adapter: str, host: str, by: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a choice was made by a log that never came, no release at all kept its events."""
    given: list[Any] = []
    fake = Fake(RecordingTally(10, 0, 4096, (), True))
    monkeypatch.setattr(recording, "Recorder", lambda *words: (given.extend(words), fake)[1])
    config = {"measurement": "loop", "cpus": None, "scheduling": {"policy": "other"}}
    cell = Cell("a", adapter, None, {}, config, conditions={"explain": True})
    root = type("RootOf", (Root,), {"host": host})()
    (part,) = (p for p in parts_of(cell, tmp_path, root, real_time=False) if isinstance(p, Recording))
    with part:
        pass
    follow = given[4]
    assert (follow and type(follow.__self__).__name__) == by


def test_what_a_long_run_kept_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = recorded(tmp_path, Fake(RecordingTally(10, 0, 4096, (), False, (3, 9), 1.0)), monkeypatch)
    assert part.facts()["achieved"]["trace"]["kept"] == {"releases": 2, "share_of_late": 1.0}
    assert part.doubts() == [] and open_trace(tmp_path / FILE).kept == {3, 9}
    part = recorded(tmp_path, Fake(RecordingTally(10, 0, 4096, (), False, (3,), 0.75, True)), monkeypatch)
    first, second = part.doubts()
    assert "only 75.00%, chosen at random" in first.message and "before it was told" in second.message


def test_a_trace_that_cannot_be_written_leaves_the_cell_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = RtmeterError("the trace cannot be written: no space left", field="explain", remedy="free space")
    fake = Fake(error=error)
    part = recorded(tmp_path, fake, monkeypatch)
    assert fake.tidied and part.facts() == {} and part.failure() is None
    (doubt,) = part.doubts()
    assert (doubt.type, doubt.hint) == ("trace_incomplete", "free space")
    part = recorded(tmp_path / "gone", Fake(RecordingTally(1, 0, 1, (), False)), monkeypatch)
    assert "cannot be written: failed to open" in part.doubts()[0].message


@pytest.mark.parametrize("by_time", [False, True])
def test_the_trace_says_which_releases_were_kept_by_k_or_where_none_was_known_by_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_time: bool
) -> None:
    fake = Fake(RecordingTally(10, 0, 4096, (), False, (30, 35), 1.0))
    monkeypatch.setattr(recording, "Recorder", lambda *_: fake)
    releases = ToldReleases(None, 0) if by_time else LoggedReleases([tmp_path / "log"], None, 0)
    with Recording("/t/instances/x", tmp_path, set(), Root(), releases):
        pass
    found = open_trace(tmp_path / FILE)
    assert (found.kept, found.kept_ns) == ((None, {30, 35}) if by_time else ({30, 35}, None))


def test_of_a_thread_that_told_too_late_some_releases_are_said_to_be_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = RecordingTally(10, 0, 4096, (), False, (30,), 1.0)
    monkeypatch.setattr(recording, "Recorder", lambda *_: Fake(tally))
    releases = ToldReleases(None, 0)
    with Recording("/t/instances/x", tmp_path, set(), Root(), releases) as part:
        pass
    assert part.doubts() == []
    releases.overtaken = True
    assert "before it was told" in part.doubts()[0].message
    tally = RecordingTally(10, 0, 4096, (), False)
    with Recording("/t/instances/x", tmp_path, set(), Root(), releases) as whole:
        pass
    assert whole.doubts() == [], "of one that keeps all nothing went"
