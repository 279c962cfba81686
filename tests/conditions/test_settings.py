"""Settings on a planted machine: made, read back, and all as it was afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from planted_kernel import CPU, CPUSET, V2, PlantedKernel, planted

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions import journal
from rtmeter.conditions import settings as settings_module
from rtmeter.conditions.change import Change
from rtmeter.conditions.resources import Affinity
from rtmeter.conditions.settings import Settings

EVERYTHING: dict[str, Any] = {
    "governor": "performance",
    "rt_throttling": "off",
    "timer_migration": "off",
    "workqueue_cpus": "0",
    "irq_cpus": {"eth0": "2-3", "*": "0"},
    "irq_priority": {"eth0": 90},
    "ksoftirqd_priority": 60,
    "isolate": "1",
    "stray_tasks": "move",
    "rt_runtime": "500ms",
}


def settings(kernel: PlantedKernel, **asked: Any) -> Settings:
    return Settings(SystemSettings.model_validate(asked), kernel)


def effective(kernel: PlantedKernel, **asked: Any) -> dict[str, dict[str, str]]:
    """What the settings made of the machine, which is as it was afterwards."""
    before = kernel.snapshot()
    with settings(kernel, **asked) as standing:
        found = standing.facts()["effective"]["settings"]
        for about in found.values():
            for name, value in about.items():
                assert not name.startswith("/") or not kernel.at(name).is_file() or kernel.read(name) == value
    assert standing.doubts() == []
    assert kernel.snapshot() == before
    return found


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (
            {"governor": "performance"},
            {f"/sys/devices/system/cpu/cpufreq/policy{n}/scaling_governor": "performance" for n in (0, 2)},
        ),
        (
            {"rt_throttling": False},  # YAML's off
            {
                "/proc/sys/kernel/sched_rt_runtime_us": "-1",
                "/sys/kernel/debug/sched/fair_server/cpu0/runtime": "0",
                "/sys/kernel/debug/sched/fair_server/cpu1/runtime": "0",
            },
        ),
        ({"rt_throttling": "900ms"}, {"/proc/sys/kernel/sched_rt_runtime_us": "900000"}),
        ({"timer_migration": "off"}, {"/proc/sys/kernel/timer_migration": "0"}),
        (
            {"workqueue_cpus": "0,2"},
            {
                "/sys/devices/virtual/workqueue/cpumask": "00000005",
                "/sys/devices/virtual/workqueue/writeback/cpumask": "00000005",
            },
        ),
        (
            {"ksoftirqd_priority": 60},
            {"ksoftirqd/0 (thread 14)": "fifo:60", "ksoftirqd/1 (thread 15)": "fifo:60"},
        ),
    ],
)
def test_a_setting_is_made_and_undone(
    tmp_path: Path, asked: dict[str, Any], expected: dict[str, str]
) -> None:
    assert effective(planted(tmp_path / "root"), **asked) == {next(iter(asked)): expected}


def test_interrupts_follow_their_device(tmp_path: Path) -> None:
    found = effective(
        planted(tmp_path / "root"), irq_cpus={"*": "0", "eth0": "2-3"}, irq_priority={"eth0": 90}
    )
    affinity = {name: f"/proc/irq/{name}/smp_affinity_list" for name in (24, 30, 31, 40)}
    assert found == {
        "irq_cpus.*": {affinity[24]: "0", affinity[40]: "0"},
        "irq_cpus.eth0": {affinity[30]: "2-3", affinity[31]: "2-3"},
        "irq_priority.eth0": {"irq/30-eth0 (thread 50)": "fifo:90"},
    }


def test_the_measured_process_is_isolated_from_all_others(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    found = effective(kernel, isolate="1", stray_tasks="move")
    assert found["isolate"][f"{CPUSET}/rtmeter/cpuset.cpus"] == "1"
    assert found["stray_tasks"] == {
        "khugepaged (thread 51)": "0,2-3",  # a thread of the kernel that it lets go
        f"{CPUSET}/docker/abc/cpuset.cpus": "2",
        f"{CPUSET}/docker/cpuset.cpus": "0,2-3",
        f"{CPUSET}/rtmeter-housekeeping": "made",
        f"{CPUSET}/rtmeter-housekeeping/cpuset.mems": "0",
        f"{CPUSET}/rtmeter-housekeeping/cpuset.cpus": "0,2-3",
        f"tasks left in {CPUSET}": "0",
    }


def test_who_moved_and_who_was_born_meanwhile_goes_back(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    with settings(kernel, isolate="1", stray_tasks="move"):
        moved = (kernel.read(f"{CPUSET}/rtmeter-housekeeping/tasks") or "").split()
        assert sorted(moved) == ["1", "700", "701"]  # not the kernel's threads
        kernel.plant(f"{CPUSET}/rtmeter-housekeeping/tasks", "\n".join([*moved, "702"]))
    assert sorted((kernel.read(f"{CPUSET}/tasks") or "").split()) == [
        "1",
        "14",
        "15",
        "2",
        "50",
        "700",
        "701",
        "702",
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_a_kernel_that_forgets_chosen_cpus_is_reminded(tmp_path: Path, version: int) -> None:
    kernel = planted(tmp_path / "root", version=version)
    before = kernel.snapshot()
    with settings(kernel, isolate="1", stray_tasks="move") as standing:
        assert "Cpus_allowed_list:\t0,2-3" in (
            kernel.read("/proc/701/status") or ""
        )  # had chosen CPU 1 alone
        assert not any("pinned" in name for name in standing.facts()["effective"]["settings"]["stray_tasks"])
    assert standing.doubts() == []
    assert kernel.snapshot() == before


def test_cpus_that_a_task_chooses_meanwhile_are_its_own_affair(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    with settings(kernel, isolate="1", stray_tasks="move") as standing:
        moved = (kernel.read(f"{CPUSET}/rtmeter-housekeeping/tasks") or "").split()
        kernel.plant(f"{CPUSET}/rtmeter-housekeeping/tasks", "\n".join({*moved} - {"701"}))
        kernel.plant_thread(701, "pinned", 0, "fifo:10", "3")
    assert standing.doubts() == []
    assert (kernel.read("/proc/701/status") or "").endswith("\t3")


def test_cgroup_v2_isolates_by_a_partition(tmp_path: Path) -> None:
    found = effective(planted(tmp_path / "root", version=2), isolate="1-2", stray_tasks="move")
    assert found == {
        "isolate": {
            f"cpuset in {V2}/cgroup.subtree_control": "+",
            f"{V2}/rtmeter": "made",
            f"{V2}/rtmeter/cpuset.cpus": "1-2",
        },
        "stray_tasks": {f"{V2}/rtmeter/cpuset.cpus.partition": "root"},
    }


def test_groups_above_get_the_run_time_that_a_group_needs(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    kernel.plant("/proc/self/cgroup", "4:cpuset:/\n3:cpu:/box/inner\n0::/")
    for group, runtime in (("box", "100000"), ("box/inner", "0"), ("box/other", "100000")):
        kernel.plant(f"{CPU}/{group}/cpu.rt_runtime_us", runtime)
        kernel.plant(f"{CPU}/{group}/cpu.rt_period_us", "1000000")
    found = effective(kernel, rt_runtime="300ms")
    assert found == {
        "rt_runtime": {
            f"{CPU}/box/cpu.rt_runtime_us": "400000",  # 300 for inner and 100 for other
            f"{CPU}/box/inner/cpu.rt_runtime_us": "300000",
            f"{CPU}/box/inner/rtmeter": "made",
            f"{CPU}/box/inner/rtmeter/cpu.rt_runtime_us": "300000",
        }
    }


def test_probes_start_in_the_groups_and_a_server_elsewhere_does_not(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    with settings(kernel, isolate="1", rt_runtime="300ms") as standing:
        shell, option, script = standing.launcher(None)
        assert (shell, option) == ("/bin/sh", "-c")
        joined = [f"{kernel.at(group)}/rtmeter/cgroup.procs" for group in (CPUSET, CPU)]
        assert [script.index(file) for file in joined] == sorted(script.index(file) for file in joined)
        assert standing.launcher((1, 2)) == [shell, option, script]
        assert standing.launcher((0, 2)) == []
    with settings(kernel, isolate="1", stray_tasks="move") as standing:
        script = standing.launcher(None)[2]
        assert f"{CPUSET}/rtmeter/" in script and "housekeeping" not in script, "that is of the others"
    with settings(kernel, timer_migration="off") as standing:
        assert standing.launcher(None) == []


def test_everything_at_once_is_undone(tmp_path: Path, state_folder: Path) -> None:
    found = effective(planted(tmp_path / "root"), **EVERYTHING)
    assert {setting.partition(".")[0] for setting in found} == set(EVERYTHING)
    assert not (state_folder / journal.FILE).exists()


def test_nothing_is_changed_that_was_not_asked_for(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    with settings(kernel):
        assert kernel.changes == []
    with settings(kernel, timer_migration="on", rt_throttling="950ms"):  # as it is already
        assert kernel.changes == []


def test_what_another_one_changed_meanwhile_is_left_and_doubted(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    asked = SystemSettings.model_validate({"rt_throttling": "900ms", "timer_migration": "off"})
    with Settings(asked, kernel, strict=True) as standing:
        assert standing.failure() is None
        kernel.plant("/proc/sys/kernel/sched_rt_runtime_us", "800000")
    assert kernel.read("/proc/sys/kernel/sched_rt_runtime_us") == "800000"
    assert kernel.read("/proc/sys/kernel/timer_migration") == "1"
    (doubt,) = standing.doubts()
    assert doubt.type == "setting_changed_meanwhile"
    assert "'800000' now" in doubt.message and "'900000'" in doubt.message and "'950000'" in doubt.message
    failure = standing.failure()
    assert failure is not None and failure.field == "conditions.rt_throttling"


def test_a_thread_that_ends_on_the_way_is_no_doubt(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    asked = SystemSettings.model_validate({"isolate": "1", "stray_tasks": "move"})
    changes = settings_module.changes(asked, kernel)
    standing = Settings(asked, kernel, strict=True)

    def ending() -> Iterator[Change]:
        for change in changes:
            if isinstance(change.resource, Affinity):
                shutil.rmtree(kernel.at(f"/proc/{change.resource.tid}"))
            yield change

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings_module, "changes", lambda asked, root: ending())
        with standing:
            assert not any(
                "thread" in name for name in standing.facts()["effective"]["settings"]["stray_tasks"]
            )
    assert (standing.doubts(), standing.failure()) == ([], None)
