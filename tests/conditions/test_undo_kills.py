"""Killed at any moment, of applying, running or undoing: `restore` leaves the machine as it was."""

from __future__ import annotations

import functools
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import settings_worker
from confined import confined, irq_device, irq_thread_device, snapshot
from planted_kernel import planted
from settings_worker import APPLYING, STANDING, UNDOING
from test_settings import EVERYTHING

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions.restore import restore
from rtmeter.conditions.settings import Settings

SEED = 20261121

pytestmark = pytest.mark.timeout(3600)  # of a busy machine


def changes_of_everything(folder: Path, version: int) -> int:
    """How often a machine is changed by applying and undoing everything."""
    kernel = planted(folder, version)
    with Settings(SystemSettings.model_validate(asked_of(version)), kernel):
        pass
    return len(kernel.changes)


def asked_of(version: int) -> dict[str, object]:
    return {key: value for key, value in EVERYTHING.items() if version == 1 or key != "rt_runtime"}


@pytest.mark.parametrize("version", [1, 2])
def test_killed_before_and_after_every_single_change(
    tmp_path: Path, state_folder: Path, version: int, sized: Callable[..., int]
) -> None:
    """On a planted machine: every change of applying and of undoing, one after the other; and somewhere in
    restoring once more."""
    total = changes_of_everything(tmp_path / "counted", version)
    moments = [n / 2 for n in range(2 * total)]
    count = sized("moments to be killed at", reduced=16, full=len(moments))
    assert total > 30
    chance = random.Random(SEED)
    for moment in chance.sample(moments, min(count, len(moments))):
        folder = tmp_path / "root"
        before = planted(folder, version).snapshot()
        dying = functools.partial(planted, folder, version, dies_at=moment)
        assert died(settings_worker.once, dying, asked_of(version), state_folder), moment
        dying = functools.partial(planted, folder, version, dies_at=chance.randrange(20) / 2)
        died(settings_worker.restoring, dying, state_folder)  # unless it was done before that change
        restored = restore(planted(folder, version))
        assert restored.whole, (moment, restored)
        assert planted(folder, version).snapshot() == before, moment
        shutil.rmtree(folder)


def died(target: Callable[..., None], *arguments: object) -> bool:
    """Whether the process was killed before its end."""
    process = settings_worker.forks().Process(target=target, args=arguments)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def test_killed_at_random_on_this_machine(state_folder: Path, sized: Callable[..., int]) -> None:
    """This kernel's own settings, cgroups and threads."""
    asked: dict[str, object] = {
        "rt_throttling": "off",
        "timer_migration": "off",
        "workqueue_cpus": "0",
        "ksoftirqd_priority": 2,
        "isolate": "1",
        "stray_tasks": "move",
        "rt_runtime": "100ms",
    }
    asked |= {"irq_cpus": {irq_device(): "0"}} if irq_device() else {}
    asked |= {"irq_priority": {irq_thread_device(): 60}} if irq_thread_device() else {}
    kills = sized("kills", reduced=20, full=200)
    chance = random.Random(SEED)
    context = settings_worker.forks()
    with confined() as root:
        before = snapshot(root)
        changed = 0
        for n in range(kills):
            phase = context.RawValue("i", 0)
            process = context.Process(target=settings_worker.forever, args=(root, asked, state_folder, phase))
            process.start()
            while phase.value != (APPLYING, STANDING, UNDOING)[n % 3] and process.is_alive():
                process.join(0.001)
            process.join(chance.uniform(0, 0.08))
            process.kill()
            process.join()
            assert process.exitcode == -signal.SIGKILL
            changed += snapshot(root) != before
            restored = restore(root)
            assert restored.whole, restored
            assert snapshot(root) == before
    print(f"{kills} kills, {changed} of which left settings changed: all put back")
    assert changed > kills // 4
