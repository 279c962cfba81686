"""A journal of which half is told, and what is said of a machine that was put back."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from planted_kernel import PlantedKernel, planted

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions import journal, target
from rtmeter.conditions.resources import File
from rtmeter.conditions.restore import restore, restore_before_a_run
from rtmeter.conditions.settings import Settings
from rtmeter.conditions.undo import Undone
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.state import state_folder as folder_of_state

MIGRATION = "/proc/sys/kernel/timer_migration"
RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
BOOT_ID = "/proc/sys/kernel/random/boot_id"


@pytest.fixture
def kernel(tmp_path: Path) -> PlantedKernel:
    return planted(tmp_path / "root")


def left(kernel: PlantedKernel) -> None:
    """A run was killed while its settings stood."""
    asked = {"rt_throttling": "900ms", "timer_migration": "off"}
    Settings(SystemSettings.model_validate(asked), kernel).__enter__()


def test_what_was_changed_in_a_boot_that_was_not_known_is_put_back(kernel: PlantedKernel) -> None:
    kernel.at(BOOT_ID).unlink()
    left(kernel)
    kernel.plant(BOOT_ID, "boot-1")
    assert [one.ending for one in restore(kernel).endings] == ["restored", "restored"]
    assert (kernel.read(RT_RUNTIME), kernel.read(MIGRATION)) == ("950000", "1")


def test_before_a_run_only_what_is_not_put_back_is_said(kernel: PlantedKernel) -> None:
    left(kernel)
    kernel.refused[MIGRATION] = errno.EACCES
    with pytest.raises(RtmeterError) as caught:
        restore_before_a_run(kernel)
    assert caught.value.message == (
        "says that the machine may not be as it was found: "
        f"{MIGRATION}: could not be put back to '1', is '0': permission denied"
    )
    assert kernel.read(RT_RUNTIME) == "950000"


def test_a_line_that_the_disk_takes_half_of_announces_nothing(
    kernel: PlantedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, write = journal.Journal(kernel), os.write
    own = writing._file._file  # type: ignore[attr-defined]
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda to, data: write(to, data[:9] if to == own else data))
        with pytest.raises(RtmeterError) as caught:
            writing.intend("it", File("/proc/it"), "1", "0")
    assert caught.value.message == "cannot be written, so nothing is changed: no space left on device"
    past = journal.read(folder_of_state() / journal.FILE)
    assert past.entries == () and "line 1 is cut off" in past.unknown[0]


def test_who_measures_is_told_what_was_put_back_and_what_others_have_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = journal.JournalEntry(1, "", "it", File("/proc/it"), "1", "0")
    endings = (
        Undone(entry, "changed_since", "7"),
        Undone(entry, "unchanged", "1"),
        Undone(entry, "restored"),
    )
    monkeypatch.setattr(target, "restore_before_a_run", lambda root: endings)
    target._put_back(Root(), "rtmeter: left by an earlier cell")
    assert capsys.readouterr().err == (
        f"rtmeter: left by an earlier cell: {endings[0]}\nrtmeter: left by an earlier cell: {endings[2]}\n"
    )
