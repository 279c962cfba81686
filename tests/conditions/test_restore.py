"""What a journal leads to: undone, left to others, told as unknown; never guessed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planted_kernel import PlantedKernel, planted

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions import journal, settings
from rtmeter.conditions.journal_files import FileHere
from rtmeter.conditions.resources import File
from rtmeter.conditions.restore import Restored, restore, restore_before_a_run
from rtmeter.conditions.undo import Undone, undo
from rtmeter.errors import RtmeterError
from rtmeter.host.state import state_folder as folder_of_state

MIGRATION = "/proc/sys/kernel/timer_migration"
RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
KSOFTIRQD = "ksoftirqd/0 (thread 14)"
ASKED = {"rt_throttling": "900ms", "timer_migration": "off", "ksoftirqd_priority": 60}


@pytest.fixture
def kernel(tmp_path: Path) -> PlantedKernel:
    return planted(tmp_path / "root")


def left(kernel: PlantedKernel, **asked: Any) -> Path:
    """The journal of a run that was killed while its settings stood."""
    settings.Settings(SystemSettings.model_validate(asked or ASKED), kernel).__enter__()
    return folder_of_state() / journal.FILE


def endings(restored: Restored) -> dict[str, str]:
    return {ending.entry.resource.name: ending.ending for ending in restored.endings}


def test_all_is_put_back_last_first_and_again_changes_nothing(kernel: PlantedKernel) -> None:
    before = kernel.snapshot()
    path = left(kernel)
    assert kernel.snapshot() != before
    restored = restore(kernel)
    assert [str(ending) for ending in restored.endings] == [
        "ksoftirqd/1 (thread 15): put back to 'other'",
        f"{KSOFTIRQD}: put back to 'other'",
        f"{MIGRATION}: put back to '1'",
        f"{RT_RUNTIME}: put back to '950000'",
    ]
    assert restored.whole and kernel.snapshot() == before and not path.exists()
    done = len(kernel.changes)
    assert restore(kernel) == Restored((), (), None)
    assert len(kernel.changes) == done


def test_values_that_are_as_before_or_another_ones_are_left(kernel: PlantedKernel) -> None:
    left(kernel)
    kernel.plant(RT_RUNTIME, "950000")
    kernel.plant(MIGRATION, "7")
    done = len(kernel.changes)
    restored = restore(kernel)
    assert restored.whole
    assert endings(restored)[RT_RUNTIME] == "unchanged"
    assert endings(restored)[MIGRATION] == "changed_since"
    assert kernel.read(MIGRATION) == "7"
    assert kernel.changes[done:] == ["policy 15", "policy 14"]


def test_threads_that_ended_are_gone_also_if_another_has_their_number(kernel: PlantedKernel) -> None:
    left(kernel, ksoftirqd_priority=60)
    kernel.plant_thread(14, "other", 0, "fifo:60", "0", start=99)
    kernel.at("/proc/15/stat").unlink()
    assert set(endings(restore(kernel)).values()) == {"gone"}


def test_after_another_boot_there_is_nothing_to_undo(kernel: PlantedKernel) -> None:
    path = left(kernel)
    kernel.plant("/proc/sys/kernel/random/boot_id", "boot-2")
    done = len(kernel.changes)
    restored = restore(kernel)
    assert set(endings(restored).values()) == {"rebooted"}
    assert restored.whole and not path.exists() and len(kernel.changes) == done


def test_a_boot_that_is_not_known_is_taken_for_the_same(kernel: PlantedKernel) -> None:
    before = kernel.snapshot()
    left(kernel)
    kernel.at("/proc/sys/kernel/random/boot_id").unlink()
    assert set(endings(restore(kernel)).values()) == {"restored"}
    assert kernel.snapshot().items() < before.items()


def test_what_cannot_be_undone_stays_until_it_can(kernel: PlantedKernel) -> None:
    before = kernel.snapshot()
    path = left(kernel)
    kernel.refused[MIGRATION] = 13
    restored = restore(kernel)
    assert not restored.whole and restored.kept == path
    assert endings(restored)[MIGRATION] == "failed"
    with pytest.raises(
        RtmeterError, match=r"may not be as it was found: .*permission denied.*rtmeter restore"
    ):
        restore_before_a_run(kernel)
    del kernel.refused[MIGRATION]
    assert restore(kernel).whole
    assert kernel.snapshot() == before and not path.exists()


class NotYet(dict[str, int]):
    """Refuses so many more writes of one name, and takes all after."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__({name: number})
        self.more = 0

    def __contains__(self, name: object) -> bool:
        refuses = super().__contains__(name) and self.more > 0
        self.more -= refuses
        return refuses


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.EBUSY, errno.EINVAL])
def test_a_kernel_that_is_not_ready_yet_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr("rtmeter.conditions.undo.PATIENCE_S", 600)
    refused = NotYet(MIGRATION, number)
    kernel = planted(tmp_path / "root", refused=refused)
    before = kernel.snapshot()
    left(kernel)
    refused.more = 3
    restored = restore(kernel)
    assert (restored.whole, refused.more) == (True, 0)
    assert endings(restored)[MIGRATION] == "restored"
    assert kernel.snapshot() == before


def test_a_kernel_that_forbids_it_is_asked_once(tmp_path: Path) -> None:
    refused = NotYet(MIGRATION, errno.EACCES)
    kernel = planted(tmp_path / "root", refused=refused)
    left(kernel)
    refused.more = 3
    assert endings(restore(kernel))[MIGRATION] == "failed"
    assert refused.more == 2


def test_what_does_not_take_its_value_is_told_with_its_change(kernel: PlantedKernel) -> None:
    kernel.deaf.add(MIGRATION)
    kernel.plant(MIGRATION, "0")
    entry = journal.JournalEntry(1, "", "timer_migration", File(MIGRATION), "1", "0")
    assert undo([entry], kernel) == [Undone(entry, "failed", "0", "it did not take the value")]


class Vanishing(PlantedKernel):
    """Files are gone once they are written."""

    def write(self, name: str, text: str) -> None:
        self.at(name).unlink()


@pytest.mark.parametrize(
    ("old", "now", "ending"),
    [
        (None, None, "unchanged"),
        ("1", None, "gone"),
        ("1", "0", "gone"),
        (None, "0", "restored"),
        ("1", "1", "unchanged"),
    ],
)
def test_what_is_not_there_is_gone_unless_it_was_not_there_before(
    tmp_path: Path, old: str | None, now: str | None, ending: str
) -> None:
    kernel = Vanishing(tmp_path)
    if now is not None:
        kernel.plant("/proc/it", now)
    entry = journal.JournalEntry(1, "", "it", File("/proc/it"), old, "0")
    (undone,) = undo([entry], kernel)
    assert undone.ending == ending and undone.settled


@pytest.mark.parametrize("error", [errno.ENOENT, errno.ESRCH])
def test_what_goes_as_it_is_put_back_is_gone(kernel: PlantedKernel, error: int) -> None:
    kernel.plant("/proc/it", "0")
    kernel.refused["/proc/it"] = error
    entry = journal.JournalEntry(1, "", "it", File("/proc/it"), "1", "0")
    assert [one.ending for one in undo([entry], kernel)] == ["gone"]


def test_what_cannot_even_be_read_keeps_nothing_else_from_being_undone(kernel: PlantedKernel) -> None:
    left(kernel, rt_throttling="900ms", workqueue_cpus="0")
    mask = "/sys/devices/virtual/workqueue/writeback/cpumask"
    kernel.plant(mask, "no mask")
    restored = restore(kernel)
    assert endings(restored)[mask] == "failed"
    assert (kernel.read(RT_RUNTIME), restored.whole) == ("950000", False)
    assert any("--set-aside" in line for line in restored.lines())
    assert not any("--set-aside" in line for line in restore(kernel, set_aside=True).lines())


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


DAMAGES: dict[str, tuple[Callable[[list[bytes]], bytes], str, set[str]]] = {
    "a flipped bit": (
        lambda of: of[0] + of[1].replace(b'"old": "1"', b'"old": "3"') + of[2] + of[3],
        "line 2 is damaged: what it says is not known",
        {MIGRATION},
    ),
    "a missing line": (lambda of: of[0] + of[2] + of[3], "1 lines before line 2 are missing", {MIGRATION}),
    "zeros": (
        lambda of: of[0] + b"\0" * len(of[1]) + b"\n" + of[2] + of[3],
        "line 2 is damaged: what it says is not known",
        {MIGRATION},
    ),
    "a cut end": (
        lambda of: b"".join(of)[:-9],
        "line 4 is cut off: what it says is not known; if rtmeter was killed while it wrote it, what it "
        "announces was not done",
        {"ksoftirqd/1 (thread 15)"},
    ),
    "no text": (lambda of: b"\xff\xfe\n", "line 1 is damaged: what it says is not known", set()),
    "a newer rtmeter": (
        lambda of: (
            of[0] + of[1] + of[2] + journal._line({"n": 4, "boot": "boot-1", "resource": {"kind": "x"}})
        ),
        "line 4 is of no kind that this rtmeter knows: what it says is not known",
        {"ksoftirqd/1 (thread 15)"},
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_of_a_damaged_journal_all_that_is_known_is_undone_and_the_rest_told(
    kernel: PlantedKernel, damage: str
) -> None:
    spoil, said, not_undone = DAMAGES[damage]
    before = kernel.snapshot()
    path = left(kernel)
    path.write_bytes(spoil(lines(path)))
    with pytest.raises(RtmeterError, match="may not be as it was found") as caught:
        restore_before_a_run(kernel)
    assert said in caught.value.message
    restored = restore(kernel, set_aside=True)
    assert restored.unknown == (said,) and not restored.whole
    undone = {RT_RUNTIME, MIGRATION, KSOFTIRQD, "ksoftirqd/1 (thread 15)"} - not_undone
    if damage != "no text":
        assert set(endings(restored)) == undone
        assert (kernel.read(MIGRATION) == "1") == (MIGRATION in undone)
        assert (kernel.read(RT_RUNTIME), kernel.snapshot() == before) == ("950000", False)
    assert restored.kept == path.with_name("journal.aside-1") and restored.kept.exists()
    assert restore_before_a_run(kernel) == ()  # told once; the next run goes on


def test_any_cut_or_flipped_byte_is_told_and_leads_to_no_wrong_value(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    path = left(kernel, rt_throttling="900ms", timer_migration="off")
    data, standing = path.read_bytes(), kernel.snapshot()
    for n in range(0, len(data), 7):
        for spoiled in (data[:n], data[:n] + bytes([data[n] ^ 4]) + data[n + 1 :]):
            for name in (RT_RUNTIME, MIGRATION):
                kernel.plant(name, standing[name].strip())
            path.write_bytes(spoiled)
            restored = restore(kernel)
            assert {kernel.read(RT_RUNTIME)} <= {"900000", "950000"}
            assert {kernel.read(MIGRATION)} <= {"0", "1"}
            whole_lines = data.startswith(spoiled) and spoiled[-1:] in (b"", b"\n")
            assert restored.unknown or whole_lines


@pytest.mark.parametrize(("old", "known"), [(None, True), ("", True), ("1", True), (1, False)])
def test_what_was_not_there_before_is_known_and_a_number_is_no_value(
    kernel: PlantedKernel, old: Any, known: bool
) -> None:
    entry = journal.Journal(kernel).intend("it", File("/proc/it"), old, "0")
    past = journal.read(folder_of_state() / journal.FILE)
    assert past.entries == ((entry,) if known else ())
    assert past.unknown == (() if known else ("line 1 is damaged: what it says is not known",))


def test_where_the_kernel_tells_no_boot_the_journal_is_read_all_the_same(kernel: PlantedKernel) -> None:
    kernel.at("/proc/sys/kernel/random/boot_id").unlink()
    entry = journal.Journal(kernel).intend("it", File("/proc/it"), "1", "0")
    assert entry.boot == ""
    assert journal.read(folder_of_state() / journal.FILE) == journal.Past((entry,), ())


def test_a_journal_that_is_gone_may_be_removed_again(kernel: PlantedKernel) -> None:
    path = left(kernel)
    for _ in range(2):
        journal.remove(path)
        assert not path.exists()


def test_a_line_that_lacks_something_cannot_be_read(kernel: PlantedKernel) -> None:
    path = left(kernel)
    path.write_bytes(journal._line({"n": 1, "boot": ""}))
    assert journal.read(path).unknown == ("line 1 cannot be read: what it says is not known",)


def fields_of(error: RtmeterError) -> tuple[str | None, object, str | None]:
    return error.field, error.value, error.remedy


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (Path.mkdir, "is a directory"),
        (os.mkfifo, "it is no regular file"),
        (lambda path: path.symlink_to("nothing"), "no such file or directory"),
    ],
)
def test_what_is_no_journal_is_told_until_it_is_set_aside(
    kernel: PlantedKernel, make: Callable[[Path], None], why: str
) -> None:
    folder_of_state().mkdir()
    path = folder_of_state() / journal.FILE
    make(path)
    said = f"cannot be read: {why}: what it says is not known"
    with pytest.raises(RtmeterError, match=f"{said}; run `rtmeter restore`"):
        restore_before_a_run(kernel)
    assert restore(kernel) == Restored((), (said,), path)
    path.with_name("journal.aside-1").symlink_to("nothing")
    assert restore(kernel, set_aside=True) == Restored((), (said,), path.with_name("journal.aside-2"))
    assert restore_before_a_run(kernel) == ()
    journal.Journal(kernel).close(settled=True)


def test_an_unreadable_journal_says_who_may_read_it(
    kernel: PlantedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = left(kernel)

    def refuse(_: FileHere) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(FileHere, "read", refuse)
    with pytest.raises(RtmeterError, match="cannot be read: permission denied") as caught:
        restore(kernel)
    assert fields_of(caught.value) == ("journal", str(path), "run `sudo rtmeter restore`")


def test_a_journal_that_is_not_undone_is_named_and_how_to_undo_it(kernel: PlantedKernel) -> None:
    path = left(kernel)
    with pytest.raises(RtmeterError, match="holds changes of an earlier run") as caught:
        journal.Journal(kernel)
    assert fields_of(caught.value) == ("journal", str(path), "run `rtmeter restore`")


def test_a_journal_that_cannot_be_written_says_why(kernel: PlantedKernel) -> None:
    folder_of_state().parent.mkdir(exist_ok=True)
    folder_of_state().write_text("a file")
    with pytest.raises(RtmeterError, match="cannot be written") as caught:
        journal.Journal(kernel)
    assert caught.value.message == "cannot be written, so nothing is changed: not a directory"
    field, value, remedy = fields_of(caught.value)
    assert (field, value) == ("journal", str(folder_of_state() / journal.FILE))
    assert remedy and "RTMETER_STATE_DIR" in remedy


def test_what_was_made_is_taken_away(kernel: PlantedKernel) -> None:
    entry = journal.JournalEntry(1, "", "it", File("/proc/it"), None, "0")
    assert str(Undone(entry, "restored")) == "/proc/it: taken away"
    assert str(Undone(entry, "failed", "0", "busy")) == "/proc/it: could not be taken away, is '0': busy"
    assert str(Undone(entry, "unchanged")) == "/proc/it: was not there"


def test_a_journal_that_cannot_be_taken_away_fails_no_cell_but_the_next(
    kernel: PlantedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that the kernel has made read-only meanwhile."""
    before = kernel.snapshot()
    path = folder_of_state() / journal.FILE

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as read_only:
        with settings.Settings(SystemSettings.model_validate(ASKED), kernel) as standing:
            read_only.setattr(FileHere, "remove", refuse)
            read_only.setattr(FileHere, "set_aside", refuse)
        (doubt,) = standing.doubts()
        assert (doubt.type, kernel.snapshot() == before, path.exists()) == ("journal_stays", True, True)
        assert f"the journal {path} cannot be taken away: read-only file system" in doubt.message
        with pytest.raises(RtmeterError, match="cannot be taken away: read-only") as caught:
            restore_before_a_run(kernel)
        assert fields_of(caught.value)[:2] == ("journal", str(path))
        path.write_text("no line")
        with pytest.raises(RtmeterError, match="cannot be taken away: read-only"):
            restore(kernel, set_aside=True)
    assert restore(kernel, set_aside=True).kept == path.with_name("journal.aside-1")
