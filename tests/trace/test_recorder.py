"""A recording where something goes wrong on the way from the kernel to the disk; the last two for real."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from rtmeter.conditions.tracing import Mount
from rtmeter.errors import RtmeterError
from rtmeter.explain.events import LOST, Event, Trace
from rtmeter.host.root import Root
from rtmeter.trace import recorder
from rtmeter.trace.choice import TraceChoice
from rtmeter.trace.chosen import Span
from rtmeter.trace.events import ALWAYS, GROUPS
from rtmeter.trace.recorder import Recorder
from rtmeter.trace.spool import Spool
from waiting import until

PAGE = 4096


@contextmanager
def pages_of(source: Path, folder: Path) -> Iterator[recorder._Pages]:
    spool = Spool(folder, [0], PAGE, None)
    try:
        with ExitStack() as stack:
            pages = recorder._Pages(stack, spool)
            pages.add(0, source)
            yield pages
    finally:
        spool.tidy()


def test_at_the_end_what_is_in_no_whole_page_is_read_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[bool] = []
    monkeypatch.setattr(recorder._Pages, "move", lambda _, size, *, rest: rests.append(rest))
    recording: Any = Recorder("/none", tmp_path, set(), Root(tmp_path))
    recording._form = SimpleNamespace(size=PAGE)
    recording._done.set()
    recording._move(Spool(tmp_path, [], PAGE, None))
    assert rests == [True]


def test_lost_events_count_as_many_as_is_told_and_what_was_left_out_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [Event(1, 0, LOST, value=77), Event(2, 0, LOST), Event(3, 0, LOST, value=0)]
    parts = [Trace(told), Trace([Event(4, 0, LOST, value=3)])]
    monkeypatch.setattr(recorder, "parts_of", lambda *_: iter(parts))
    recording: Any = Recorder("/none", tmp_path, set(), Root(tmp_path))
    recording._form, recording._formats, recording._before = None, [], {}
    assert list(recording.parts()) == parts
    tally = recording.tally()
    assert (tally.events, tally.lost) == (4, 77 + 1 + 3)


def test_a_kernel_that_writes_as_fast_as_we_read_is_not_read_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = recorder._MOST_BYTES_AT_ONCE
    assert most > 1024 * recorder.BUFFER_KIB
    monkeypatch.setattr(recorder, "_MOST_BYTES_AT_ONCE", 10 * PAGE)
    splices: list[int] = []
    monkeypatch.setattr(recorder.os, "splice", endless(splices))
    with pages_of(Path("/dev/zero"), tmp_path) as pages:
        pages.move(PAGE, rest=False)
        assert pages.moved == 16 * PAGE and len(splices) == 2
        pages.move(PAGE, rest=True)
        assert pages.moved == (16 + 16 + 10) * PAGE


@pytest.mark.parametrize(("whole", "chooses"), [(True, False), (False, True)])
def test_where_nobody_tells_of_releases_nothing_is_chosen_unless_pages_went_already(
    whole: bool, chooses: bool, tmp_path: Path
) -> None:
    told: list[list[Span] | None] = [[], None, None]
    found: Any = Recorder("/none", tmp_path, set(), Root(tmp_path), lambda: told.pop(0))
    spool: Any = SimpleNamespace(whole=True, keep_all=lambda: kept.append(1))
    kept: list[int] = []
    found._heed_releases(spool)
    assert found._chooser is not None and not kept
    spool.whole = whole
    found._heed_releases(spool)
    found._heed_releases(spool)
    assert (found._chooser is not None, kept) == (chooses, [] if chooses else [1])


def endless(splices: list[int]) -> Callable[..., int]:
    def splice(source: int, target: int, count: int, **_: object) -> int:
        splices.append(count)
        return count

    return splice


@pytest.fixture
def tracefs(tmp_path: Path) -> Iterator[Path]:
    """Mounted at a place of the test's own."""
    if os.geteuid() != 0 or "tracefs" not in Path("/proc/filesystems").read_text().split():
        pytest.skip("needs root and tracefs")
    place = tmp_path / "tracing"
    place.mkdir()
    mount = Mount(str(place))
    mount.write(Root(), "made")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)


@contextmanager
def recording(tracefs: Path, folder: Path, choice: TraceChoice = TraceChoice()) -> Iterator[Recorder]:  # noqa: B008
    instance = tracefs / "instances" / f"rtmeter-{os.getpid()}-0123456789ab"
    instance.mkdir()
    found = Recorder(str(instance), folder, set(), Root(), choice=choice)
    try:
        found.start()
        yield found
    finally:
        found.stop()
        found.tidy()
        if not instance.exists():
            Mount(str(tracefs)).write(Root(), "made")
        until(lambda: _gone(instance))


def _open_files(name: str) -> int:
    """How many of tracefs by that name this process has open."""
    files = (os.path.realpath(file) for file in Path("/proc/self/fd").iterdir())
    return sum(file.endswith(f"/{name}") for file in files)


def _gone(instance: Path) -> bool:
    """Who looks into it keeps it for a moment."""
    try:
        instance.rmdir()
    except OSError:
        return False
    return True


def test_it_ends_whole_if_tracefs_is_taken_away_meanwhile(tracefs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    with recording(tracefs, folder) as found:
        until(lambda: _open_files("trace_pipe_raw") == len(found._cpus))
        subprocess.run(["umount", "--lazy", tracefs], check=True)
        gone_ns = time.monotonic_ns()
        subprocess.run(["true"], check=True)
        found.stop()
        assert found.trace().time_ns[-1] > gone_ns


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (OSError(errno.ENOMEM, "No memory"), "no memory .*; see dmesg"),
        (OSError(errno.EACCES, "Denied"), "denied .*; run rtmeter as root"),
        (MemoryError("of ours"), "of ours"),
    ],
)
def test_one_that_could_not_start_leaves_its_instance_free_to_be_removed(
    failure: Exception, said: str, tracefs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "page_form", Mock(side_effect=failure))
    with pytest.raises((RtmeterError, MemoryError), match=said), recording(tracefs, tmp_path):
        pass
    assert not _open_files("tracing_on")


def test_what_is_left_out_is_not_switched_on_nor_missed(tracefs: Path, tmp_path: Path) -> None:
    choice = TraceChoice(tuple(name for name in GROUPS if name != "system_calls"), 32 << 20)
    with recording(tracefs, tmp_path, choice) as found:
        instance = tracefs / "instances" / Path(found._instance).name
        switched = {event: (instance / "events" / event / "enable").read_text().strip() for event in ALWAYS}
        calls = {
            (instance / "events" / event / "enable").read_text().strip() for event in GROUPS["system_calls"]
        }
        found.stop()
        assert set(switched.values()) == {"1"} and calls == {"0"}
        assert found.most_bytes == 32 << 20
        assert len(found.trace()) and not set(found.tally().missing) & set(GROUPS["system_calls"])


def test_a_full_disk_is_named_with_what_the_trace_took_of_it(tracefs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], check=True)
    try:
        with recording(tracefs, folder) as found:
            until(lambda: [os.getppid() for _ in range(1000)] and found._failed)
            found.stop()
            with pytest.raises(RtmeterError) as error:
                found.trace()
    finally:
        until(lambda: subprocess.run(["umount", folder], capture_output=True).returncode == 0)
    said = f"the trace cannot be written: no space left on device ({folder}, 0 MiB free; the trace has 2 MiB)"
    assert (error.value.message, error.value.remedy) == (said, "free space there, or leave it out")
