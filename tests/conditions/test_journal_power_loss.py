"""The disk with the journal loses its power at every moment, and the machine that was changed lives on: a
robot whose controller died. Whatever the disk kept, the robot can be put back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from planted_kernel import PlantedKernel

from power_loss import Disk, calls_of, every_moment, lay
from rtmeter.conditions import journal
from rtmeter.conditions.restore import restore

PREPARE = """
import sys
from pathlib import Path
from planted_kernel import PlantedKernel
from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions import journal
from rtmeter.conditions import journal
from rtmeter.conditions.restore import restore
from rtmeter.conditions.settings import Settings
kernel = PlantedKernel(Path(sys.argv[1]))
settings = Settings(SystemSettings(rt_throttling="900ms", timer_migration="off"), kernel)
"""
SCRIPTS = {
    "a run": "with settings: pass\nprint('over', flush=True)",
    "a run that was killed, and what undoes it": (
        "settings.__enter__()\nassert restore(kernel).whole\nprint('over', flush=True)"
    ),
}
SET_ASIDE = "settings.__enter__()\njournal.set_aside(journal.path_of('local'))\nprint('aside', flush=True)"
FILES = {
    "/proc/sys/kernel/random/boot_id": "boot-1",
    "/proc/sys/kernel/sched_rt_runtime_us": "950000",
    "/proc/sys/kernel/sched_rt_period_us": "1000000",
    "/proc/sys/kernel/timer_migration": "1",
    "/sys/devices/system/cpu/online": "0-3",
}


class Scene:
    """A machine, and beside it an empty disk for the journal."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch, self._folder = monkeypatch, folder
        (folder / "disk").mkdir()
        kernel = PlantedKernel(folder / "machine")
        for name, text in FILES.items():
            kernel.plant(name, text)
        self.before = kernel.snapshot()

    def moments(self, script: str) -> Iterator[tuple[str, PlantedKernel, Path]]:
        """What had been said, the machine, and what the disk may have kept, at every moment of the script;
        the state folder is on that disk then."""
        disk, machine = Disk(self._folder / "disk"), Disk(self._folder / "machine")
        state = {"RTMETER_STATE_DIR": str(self._folder / "disk" / "lib" / "rtmeter")}
        path = os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]])
        calls = calls_of(PREPARE + script, self._folder / "machine", PYTHONPATH=path, **state)
        again = self._folder / "again"
        self._monkeypatch.setenv("RTMETER_STATE_DIR", str(again / "disk" / "lib" / "rtmeter"))
        for said in every_moment(disk, calls, machine.heed):
            for left in disk.left():
                shutil.rmtree(again, ignore_errors=True)
                lay(machine.now(), again / "machine")
                lay(left, again / "disk")
                yield said, PlantedKernel(again / "machine"), again / "disk"


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


@pytest.mark.parametrize("script", SCRIPTS)
def test_whatever_the_disk_kept_the_machine_can_be_put_back(scene: Scene, script: str) -> None:
    changed = moments = 0
    for said, kernel, disk in scene.moments(SCRIPTS[script]):
        moments += 1
        changed += kernel.snapshot() != scene.before
        journals = list(disk.rglob("journal*"))
        assert not (said and journals), "a journal that is settled came back"
        restore(kernel)
        assert kernel.snapshot() == scene.before, moments
    assert moments > 20 and changed > 5


def test_a_journal_that_was_set_aside_stays_aside_and_whole(scene: Scene) -> None:
    restored = 0
    for said, kernel, disk in scene.moments(SET_ASIDE):
        if said:
            restored += 1
            assert [path.name for path in disk.rglob("journal*")] == ["journal.aside-1"]
            assert len(journal.read(journal.path_of("local").with_name("journal.aside-1")).entries) == 2
            assert kernel.snapshot() != scene.before
    assert restored
