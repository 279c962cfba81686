"""This machine, but for what a test must not touch: its own cgroups and tasks, and settings that may
change for a moment. Everything is the kernel's; the folder only leaves out the rest."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from real_settings import one_at_a_time
from rtmeter.conditions.restore import restore
from rtmeter.host.root import Root
from rtmeter.host.threads import Task, allowed_cpus, read_tasks
from waiting import until

CPUSETS, CPUS = Path("/sys/fs/cgroup/cpuset"), Path("/sys/fs/cgroup/cpu")
_LINKS = (
    "proc/sys",
    "proc/irq",
    "sys/kernel/irq",
    "sys/class/net",
    "sys/devices/virtual/workqueue",
    "sys/devices/system/cpu",
)
_FILES = (
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/timer_migration",
    "/sys/devices/virtual/workqueue/cpumask*",
    "/sys/devices/virtual/workqueue/*/cpumask",
    "/proc/irq/[0-9]*/smp_affinity_list",
    "/sys/fs/cgroup/cpu*/*cpu*.cpus",
    "/sys/fs/cgroup/cpu*/*/cpuset.cpus",
    "/sys/fs/cgroup/cpu*/*/tasks",
    "/sys/fs/cgroup/cpu*/tasks",
    "/sys/fs/cgroup/cpu*/cpu.rt_runtime_us",
    "/sys/fs/cgroup/cpu*/*/cpu.rt_runtime_us",
)
_KERNEL_THREADS = re.compile(r"ksoftirqd/\d+|irq/\d+-.*|khugepaged|kcompactd0")


def irq_device() -> str:
    """A quiet device of this machine whose interrupts can be moved."""
    actions = {
        path.parent.name: path.read_text().strip() for path in Path("/sys/kernel/irq").glob("*/actions")
    }
    quiet = [name.rpartition("-")[0] for name in actions.values() if name.startswith("virtio")]
    return next(iter(sorted(quiet)), "")


def irq_thread_device() -> str:
    """A device whose interrupts have threads here, as some have on every kernel."""
    named = (task.name.partition("-")[2] for task in read_tasks(Root()) if task.name.startswith("irq/"))
    return next((name for name in named if len(name) < 8), "")  # the kernel cuts longer ones


def snapshot(root: Root) -> dict[str, object]:
    """Every value that a setting of the tests may change."""
    found: dict[str, object] = {}
    for pattern in _FILES:
        for name in root.glob(pattern):
            text = root.read(name) or ""
            found[name] = sorted(text.split()) if name.endswith("tasks") else text
    for task in read_tasks(root):
        found[f"{task.name} {task.tid}"] = (task.scheduling, _settled_cpus(root, task))
    return found


def _settled_cpus(root: Root, task: Task) -> object:
    """None of threads of interrupts: the kernel changes theirs by and by as their interrupt's."""
    return None if task.name.startswith("irq/") else allowed_cpus(root, task)


@contextlib.contextmanager
def confined() -> Iterator[Root]:
    """The folder; whatever happened, the machine is as it was afterwards."""
    if os.geteuid() != 0 or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs root and two CPUs")
    if not (CPUSETS / "cpuset.cpus").exists() or not (CPUS / "cpu.rt_runtime_us").exists():
        pytest.skip("needs cgroup version 1 with cpuset and cpu, and groups with real-time run time")
    with (
        one_at_a_time(),
        tempfile.TemporaryDirectory() as folder,
        contextlib.ExitStack() as stack,
    ):
        root = Root(Path(folder))
        for link in _LINKS:
            _link(root, link)
        cpuset, cpu = CPUSETS / f"rtmeter-test-{os.getpid()}", CPUS / f"rtmeter-test-{os.getpid()}"
        for group in (cpuset, cpuset / "box", cpu, cpu / "inner"):
            group.mkdir()
            stack.callback(_remove, group)
        for group in (cpuset, cpuset / "box"):
            for name in ("cpuset.cpus", "cpuset.mems"):
                (group / name).write_text((CPUSETS / name).read_text())
        for name, target in (("cpuset", cpuset), ("cpu", cpu)):
            _link(root, f"sys/fs/cgroup/{name}", target)
        root.at("/proc/self").mkdir()
        mounts = [f"30 25 0:26 / /sys/fs/cgroup/{c} rw - cgroup cgroup rw,{c}" for c in ("cpuset", "cpu")]
        root.at("/proc/self/mountinfo").write_text("\n".join(mounts))
        root.at("/proc/self/cgroup").write_text("4:cpuset:/\n3:cpu:/inner\n")
        for before, group in (([], cpuset), (["taskset", "-c", "1"], cpuset), ([], cpuset / "box")):
            sleeper = subprocess.Popen([*before, "sleep", "1000"])
            stack.callback(sleeper.wait)
            stack.callback(sleeper.kill)
            (group / "tasks").write_text(str(sleeper.pid))
            name = Path(f"/proc/{sleeper.pid}/comm")
            until(lambda name=name: name.read_text() == "sleep\n")  # taskset becomes it
            _link(root, f"proc/{sleeper.pid}")
        for task in read_tasks(Root()):
            if task.is_kernel and _KERNEL_THREADS.fullmatch(task.name):
                _link(root, f"proc/{task.pid}")
        stack.callback(restore, root)  # where a test failed
        before_all = snapshot(root)
        yield root
        assert snapshot(root) == before_all


def _link(root: Root, name: str, target: Path | None = None) -> None:
    path = root.at(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target or Path("/") / name)


def _remove(group: Path) -> None:
    for below in [*group.iterdir()]:
        if below.is_dir():
            _remove(below)
    for task in (group / "tasks").read_text().split():
        with contextlib.suppress(OSError):
            (group.parent / "tasks").write_text(task)
    group.rmdir()
