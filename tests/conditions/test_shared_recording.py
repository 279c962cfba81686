"""One recording of several cells: each has its table, and all that is to be said of it."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_recording import Fake
from test_tracing import plant

from rtmeter.conditions import journal_files, parts_of, recording, shared_recording
from rtmeter.conditions.shared_recording import OfOneCell, SharedRecording
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.measure.probe.supervise import Stop
from rtmeter.measure.programs.attached_all import Together
from rtmeter.model import Cell
from rtmeter.trace.choice import TraceChoice
from rtmeter.trace.recorder import RecordingTally
from rtmeter.trace.table import FILE

CONFIG: dict[str, Any] = {
    "measurement": "loop",
    "cpus": None,
    "scheduling": {"policy": "other"},
    "duration_ns": 1_000_000_000,
    "attach": {"pid": 1},
}
INSTANCES = "sys/kernel/tracing/instances"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    """A planted machine with tracefs."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(journal_files, "require_trusted", lambda *_, **__: None)  # of whoever runs this
    monkeypatch.setenv("RTMETER_STATE_DIR", str(tmp_path / "state"))
    machine = tmp_path / "machine"
    plant(machine, "proc/filesystems", "nodev\ttracefs\n")
    plant(machine, "proc/mounts", "t /sys/kernel/tracing tracefs rw 0 0\n")
    (machine / "proc/self/ns").mkdir(parents=True)
    (machine / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    (machine / INSTANCES).mkdir(parents=True)
    return Root(machine)


def asking(**conditions: Any) -> Cell:
    return Cell("a", "attached", None, {}, CONFIG, conditions=conditions)


def recorded(folder: Path, root: Root, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> list[OfOneCell]:
    """Two cells, the first of which has it recorded while it is measured."""
    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr(recording, "Recorder", lambda *words: (made.append(words), fake)[1])
    shared = SharedRecording(asking(explain={"size_bytes": 512 << 20}))
    (folder / "shared").mkdir()
    parts = []
    for name in ("one", "two"):
        (folder / name).mkdir()
        with shared.part(folder / name) as part:
            if not made:
                assert (part.facts(), part.doubts()) == ({}, [])
                with shared.into(folder / "shared", root):
                    [instance] = (root.path / INSTANCES).iterdir()
        parts.append(part)
    [(where, _, _, _, follow, choice)] = made
    assert Path(where).name == instance.name
    assert follow == shared.told.new  # of this machine's threads
    assert choice == TraceChoice.of({"size_bytes": 512 << 20})
    assert not any((root.path / INSTANCES).iterdir())
    return parts


def test_each_cell_has_the_one_table_and_what_is_to_be_said_of_it(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Fake(RecordingTally(10, 3, 4096, (), True))
    one, two = recorded(tmp_path, root, fake, monkeypatch)
    assert fake.tidied and (tmp_path / "one" / FILE).samefile(tmp_path / "two" / FILE)
    assert one.facts()["achieved"]["trace"]["lost"] == 3
    assert one.facts()["effective"]["settings"]["explain"]  # its instance
    assert one.facts() == two.facts() and one.doubts() == two.doubts()
    assert {doubt.type for doubt in two.doubts()} == {"trace_lost", "trace_incomplete"}
    assert one.failure() is two.failure() is None


def no_link(*_: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


def test_where_the_file_system_has_no_links_each_cell_has_a_copy(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_link)
    recorded(tmp_path, root, Fake(RecordingTally(10, 0, 4096, (), False)), monkeypatch)
    one, two = tmp_path / "one" / FILE, tmp_path / "two" / FILE
    assert one.read_bytes() == two.read_bytes() and not one.samefile(two)


def test_a_cell_for_whose_copy_there_is_no_room_is_whole_and_says_so(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copyfile

    def full(source: Path, target: Path) -> None:
        if target.parent.name == "one":
            copy(source, target)
            return
        target.write_bytes(b"PAR1")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", no_link)
    monkeypatch.setattr(shared_recording.shutil, "copyfile", full)
    one, two = recorded(tmp_path, root, Fake(RecordingTally(10, 0, 4096, (), False)), monkeypatch)
    assert one.doubts() == [] and (tmp_path / "one" / FILE).is_file()
    assert not (tmp_path / "two" / FILE).exists()
    [doubt] = two.doubts()
    assert (doubt.type, two.facts(), two.failure()) == ("trace_incomplete", {}, None)
    assert "cannot be written: no space left on device" in doubt.message


def test_a_recording_that_cannot_be_written_leaves_every_cell_whole_and_each_says_so(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = RtmeterError("the trace cannot be written: no space left", field="explain", remedy="free space")
    parts = recorded(tmp_path, root, Fake(error=error), monkeypatch)
    assert not [*tmp_path.glob(f"*/{FILE}")]
    for part in parts:
        [doubt] = part.doubts()
        assert (doubt.type, doubt.hint, part.failure()) == ("trace_incomplete", "free space", None)
        assert "achieved" not in part.facts()


def test_a_cell_of_several_has_no_recording_of_its_own(tmp_path: Path, root: Root) -> None:
    cell = asking(explain=True)
    parts = parts_of(cell, tmp_path, root, real_time=False, recording=SharedRecording(cell))
    assert [type(part).__name__ for part in parts] == ["Strain", "OfOneCell"]


@pytest.mark.parametrize("name", ["settings", "load", "traffic"])
def test_what_is_had_by_one_thread_at_a_time_is_refused(name: str) -> None:
    with pytest.raises(RtmeterError, match=f"contradicts {name}, which") as refused:
        Together(asking(**{name: {"any": 1}}), Stop()).refuse_conditions("--all")
    assert refused.value.remedy == "leave it out, or measure the threads one by one, with --thread"


def test_causes_may_be_asked_for_of_all_at_once() -> None:
    together = Together(asking(explain=True), Stop())
    together.refuse_conditions("--all")
    assert together.recording is not None and Together(asking(), Stop()).recording is None
