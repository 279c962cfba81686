"""Settings at the edges: the most that may be asked, names that only begin alike, what comes on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planted_kernel import _KERNEL, CPU, CPUSET, PlantedKernel, planted

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions.settings import Settings
from rtmeter.errors import RtmeterError

RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
WORKQUEUES = "/sys/devices/virtual/workqueue/cpumask"
HOUSEKEEPING = f"{CPUSET}/rtmeter-housekeeping/tasks"


def settings(kernel: PlantedKernel, **asked: Any) -> Settings:
    return Settings(SystemSettings.model_validate(asked), kernel)


def effective(kernel: PlantedKernel, **asked: Any) -> dict[str, dict[str, str]]:
    """What the settings made of the machine, which is as it was afterwards."""
    before = kernel.snapshot()
    with settings(kernel, **asked) as standing:
        found: dict[str, dict[str, str]] = standing.facts()["effective"]["settings"]
    assert standing.doubts() == []
    assert kernel.snapshot() == before
    return found


def test_real_time_threads_may_have_all_of_their_period(tmp_path: Path) -> None:
    found = effective(planted(tmp_path / "root"), rt_throttling="1s")
    assert found == {"rt_throttling": {RT_RUNTIME: "1000000"}}


def test_run_time_that_is_no_whole_number_of_microseconds_is_rounded_up(tmp_path: Path) -> None:
    found = effective(planted(tmp_path / "root"), rt_runtime="300001500ns")
    assert found["rt_runtime"][f"{CPU}/rtmeter/cpu.rt_runtime_us"] == "300002"


class Isolating(PlantedKernel):
    """CPU 1 is isolated at boot: the mask that is in effect is without it, whatever was written."""

    def write(self, name: str, text: str) -> None:
        PlantedKernel.write(self, name, text)
        if name == WORKQUEUES:
            self.plant(name, f"{int(text, 16) & 0xD:x}")


def test_a_mask_is_taken_for_what_was_written_where_the_kernel_leaves_out_cpus(tmp_path: Path) -> None:
    kernel = Isolating(planted(tmp_path / "root").path)
    kernel.plant(WORKQUEUES, "d")
    assert effective(kernel, workqueue_cpus="0-1")["workqueue_cpus"][WORKQUEUES] == "00000003"


def test_a_program_that_has_the_name_of_an_interrupts_thread_is_none(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    kernel.plant_thread(900, "irq/30-eth0", 0, "other", "0-3")
    assert effective(kernel, irq_priority={"eth0": 90}) == {
        "irq_priority.eth0": {"irq/30-eth0 (thread 50)": "fifo:90"}
    }


def test_a_name_that_begins_as_a_devices_does_is_not_its(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    with (
        pytest.raises(RtmeterError, match="eth has no interrupts here"),
        settings(kernel, irq_cpus={"eth": 1}),
    ):
        pass
    assert kernel.changes == []


def test_a_thread_of_the_kernel_that_has_no_other_cpu_keeps_its_own(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    kernel.plant_thread(52, "kworker/1:1", _KERNEL, "other", "1")
    moved = effective(kernel, isolate="1", stray_tasks="move")["stray_tasks"]
    assert "khugepaged (thread 51)" in moved and "kworker/1:1 (thread 52)" not in moved


class Forking(PlantedKernel):
    """A task is born as another one is moved."""

    def write(self, name: str, text: str) -> None:
        PlantedKernel.write(self, name, text)
        if name == HOUSEKEEPING and not self.exists("/proc/900"):
            self.plant_thread(900, "born", 0, "other", "0-3")
            self.plant(f"{CPUSET}/tasks", f"{self.read(f'{CPUSET}/tasks')}\n900")


def test_a_task_that_is_born_on_the_way_is_moved_too(tmp_path: Path) -> None:
    kernel = Forking(planted(tmp_path / "root").path)
    with settings(kernel, isolate="1", stray_tasks="move") as standing:
        assert sorted((kernel.read(HOUSEKEEPING) or "").split()) == ["1", "700", "701", "900"]
    assert standing.doubts() == []
    assert "900" in (kernel.read(f"{CPUSET}/tasks") or "").split()
