"""Run inside the kernel guests (test_kernels.py starts them): settings on cgroup version 2, with threads for
all interrupts, on a kernel that forgets the CPUs that tasks chose."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions.restore import restore
from rtmeter.conditions.settings import Settings
from rtmeter.host.root import Root
from rtmeter.host.threads import allowed_cpus, read_tasks
from waiting import until

ROOT = Root()
PARTITION = "/sys/fs/cgroup/rtmeter/cpuset.cpus.partition"
RT = ROOT.exists("/sys/kernel/realtime")
FILES = (
    "/proc/irq/[0-9]*/smp_affinity_list",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/timer_migration",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/devices/virtual/workqueue/*/cpumask",
    "/sys/fs/cgroup/cgroup.subtree_control",
    "/sys/fs/cgroup/*/cpuset.cpus",
    "/sys/kernel/debug/sched/fair_server/*/runtime",
)


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """One that chose the CPU to be isolated, one that chose none."""
    monkeypatch.setenv("RTMETER_STATE_DIR", str(tmp_path))
    started = [subprocess.Popen([*before, "sleep", "1000"]) for before in (["taskset", "-c", "1"], [])]
    until(lambda: [task.name for task in read_tasks(ROOT) if task.name == "sleep"] == ["sleep", "sleep"])
    yield [process.pid for process in started]
    for process in started:
        process.kill()
        process.wait()


def asked() -> SystemSettings:
    threads = [task.name for task in read_tasks(ROOT) if task.name.startswith("irq/")]
    given: dict[str, Any] = {
        "rt_throttling": "off",
        "timer_migration": "off",
        "workqueue_cpus": "0",
        "irq_cpus": {"*": "0"},
        "ksoftirqd_priority": 60,
        "isolate": "1",
        "stray_tasks": "move",
    } | ({"irq_priority": {threads[0].partition("-")[2]: 90}} if RT else {})
    return SystemSettings.model_validate(given)


def snapshot() -> dict[str, object]:
    """All of it, but for the CPUs of threads that only the kernel can bind."""
    found: dict[str, object] = {name: ROOT.read(name) for pattern in FILES for name in ROOT.glob(pattern)}
    for task in read_tasks(ROOT):
        if task.tid != os.getpid() and not task.name.startswith("kworker"):
            found[f"{task.name} {task.tid}"] = task.scheduling, not task.is_bound and allowed_cpus(ROOT, task)
    return found


def compared(before: dict[str, object]) -> dict[str, object]:
    """The same values now, and what differs: tasks come and go."""
    now = snapshot()
    return {
        name: (before[name], now[name]) for name in before.keys() & now.keys() if before[name] != now[name]
    }


def cpus_of(pid: int) -> str:
    return next(
        line.split()[1] for line in (ROOT.read(f"/proc/{pid}/status") or "").splitlines() if "_list" in line
    )


def test_the_measured_process_has_its_cpu_for_itself(tasks: list[int]) -> None:
    before = snapshot()
    assert [cpus_of(pid) for pid in tasks] == ["1", "0-1"]
    with Settings(asked(), ROOT) as standing:
        assert ROOT.read(PARTITION) == "root"
        assert [cpus_of(pid) for pid in tasks] == ["0", "0"]
        command = [*standing.launcher(None), "grep", "Cpus_allowed_list", "/proc/self/status"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.stdout.split() == ["Cpus_allowed_list:", "1"], done.stderr
    assert {doubt.type for doubt in standing.doubts()} <= {"setting_refused"}  # interrupts 0 and 2 of a PC
    assert compared(before) == {}


def test_killed_at_random_then_restored(tasks: list[int]) -> None:
    before, settings = snapshot(), asked()
    for _ in range(6):
        child = os.fork()
        if child == 0:
            try:
                while True:
                    with Settings(settings, ROOT):
                        time.sleep(random.uniform(0, 0.2))
            finally:
                os._exit(1)
        time.sleep(random.uniform(0, 2))
        os.kill(child, signal.SIGKILL)
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
        restored = restore(ROOT)
        assert restored.whole, restored
        assert compared(before) == {}
