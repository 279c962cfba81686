"""CPUs of its own for the measured process: a cpuset, and everything else away from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar

from rtmeter.conditions.change import Change, refuse
from rtmeter.conditions.resources import MADE, Affinity, Cgroup, Controller, File, Plain, members
from rtmeter.host.cgroups import HOUSEKEEPING, Hierarchy
from rtmeter.host.root import Root
from rtmeter.host.threads import Task, allowed_cpus, cpu_set, read_task, read_tasks
from rtmeter.values import format_cpus

_NO_CPUSET = "mount the cpuset controller (see cgroups(7)); in a container run it with --privileged"
_PASSES = 20


@dataclass(frozen=True, slots=True)
class TasksLeft(Plain):
    """How many tasks, but for the kernel's, are left in a group: 0 once they have moved to the target,
    also those born meanwhile. Taking the target away moves them back."""

    source: str
    target: str
    kind: ClassVar[str] = "tasks"

    @property
    def name(self) -> str:
        return f"tasks left in {self.source}"

    def read(self, root: Root) -> str | None:
        return str(len(self._left(root)))

    def write(self, root: Root, value: str | None) -> None:
        refused: set[str] = set()
        for _ in range(_PASSES):
            left = set(self._left(root)) - refused
            for member in left:
                try:
                    root.write(f"{self.target}/{members(self.source, root)[0]}", member)
                except OSError:  # it has ended, or may not be moved, which reading back shows
                    refused.add(member)
            if not left:
                return

    def _left(self, root: Root) -> list[str]:
        who = members(self.source, root)[1]
        return [member for member in who if (task := read_task(root, int(member))) and not task.is_kernel]


def isolate(cpus: tuple[int, ...], move: bool, cpusets: Hierarchy | None, root: Root) -> Iterator[Change]:
    """The group of the measured process; with ``move`` nothing else runs on its CPUs."""
    if cpusets is None:
        raise refuse("isolate", "there are no cpusets here", _NO_CPUSET)
    if cpusets.version == 2:
        yield from _partition(cpusets, cpus, move, root)
        return
    yield from new_group("isolate", cpusets, root, format_cpus(cpus))
    if move:
        yield from _housekeeping(cpusets, frozenset(cpus), root)


def new_group(setting: str, cpusets: Hierarchy, root: Root, cpus: str | None = None) -> Iterator[Change]:
    """The measured process's group under version 1; where cpusets belong to it, they must be filled."""
    group = cpusets.group
    yield Change(setting, Cgroup(group), MADE, _NO_CPUSET)
    for name, value in (("cpuset.mems", None), ("cpuset.cpus", cpus)):
        own = value or root.read(f"{cpusets.own}/{name}")
        if own is not None:
            remedy = (
                f"the group above has the CPUs {root.read(f'{cpusets.own}/cpuset.cpus')}: choose among them"
            )
            yield Change(setting, File(f"{group}/{name}", "cpus"), own, remedy, covered=True)


def _partition(cpusets: Hierarchy, cpus: tuple[int, ...], move: bool, root: Root) -> Iterator[Change]:
    """Under version 2 the kernel keeps everything else away from the CPUs of a partition."""
    group, top = cpusets.group, f"{cpusets.mount}/cgroup.subtree_control"
    remedy = "no processes may be in the group above; in a container run it with --privileged --cgroupns=host"
    if move:
        yield from _pinned(_all_tasks(cpusets.mount, root), frozenset(cpus), root)
    yield Change("isolate", Controller(top, "cpuset"), "+", remedy)
    yield Change("isolate", Cgroup(group), MADE, remedy)
    listed = format_cpus(cpus)
    remedy = "choose CPUs that are online"
    yield Change("isolate", File(f"{group}/cpuset.cpus", "cpus"), listed, remedy, covered=True)
    if move:
        remedy = "see why in cpuset.cpus.partition of cgroup v2: a CPU must be left, and no group claim these"
        partition = File(f"{group}/cpuset.cpus.partition")  # undone, for the kernel puts off what rmdir does
        yield Change("stray_tasks", partition, "root", remedy)


def _housekeeping(cpusets: Hierarchy, isolated: frozenset[int], root: Root) -> Iterator[Change]:
    """Under version 1: groups lose the CPUs; tasks of groups that must keep them get another one."""
    keep = cpusets.above()
    others = [group for group in _groups(cpusets.mount, root) if group not in (*keep, cpusets.group)]
    for group in keep:
        if not _cpus_of(group, root) - isolated:
            message, remedy = f"no CPU of {group} would be left", "leave one out of conditions.isolate"
            raise refuse("stray_tasks", message, remedy)
    smaller = [group for group in others if _cpus_of(group, root) & isolated]
    yield from _pinned(_tasks_of([*keep, *smaller], root), isolated, root)
    yield from _kernel_threads(isolated, root)
    for group in sorted(smaller, key=lambda name: -name.count("/")):  # none may have what its parent lacks
        remedy = f"{group} has no other CPUs: end what is in it, or choose other CPUs to isolate"
        rest = format_cpus(_cpus_of(group, root) - isolated)
        yield Change("stray_tasks", File(f"{group}/cpuset.cpus", "cpus"), rest, remedy)
    for group in keep:
        rest = format_cpus(_cpus_of(group, root) - isolated)
        yield Change("stray_tasks", Cgroup(f"{group}/{HOUSEKEEPING}"), MADE, _NO_CPUSET)
        for name, value in (("cpuset.mems", root.read(f"{group}/cpuset.mems")), ("cpuset.cpus", rest)):
            file = File(f"{group}/{HOUSEKEEPING}/{name}", "cpus")
            yield Change("stray_tasks", file, value or "0", _NO_CPUSET, covered=True)
        remedy = "the kernel does not let them go: see which they are in its file `tasks`"
        movers = TasksLeft(group, f"{group}/{HOUSEKEEPING}")
        yield Change("stray_tasks", movers, "0", remedy, covered=True, optional=True)


def _pinned(
    tasks: Iterable[tuple[Task, frozenset[int]]], isolated: frozenset[int], root: Root
) -> Iterator[Change]:
    """Tasks with CPUs of their own choice, each with those of its cpuset, which it has afterwards for the
    kernel (before 6.2) forgets the choice with a change of cpuset."""
    for task, every in tasks:
        cpus = allowed_cpus(root, task)
        if cpus and cpus != every:
            thread = Affinity(task.tid, task.start, task.name, format_cpus(every))
            yield Change("stray_tasks", thread, format_cpus(every - isolated), "", remembered=True)


def _tasks_of(groups: list[str], root: Root) -> Iterator[tuple[Task, frozenset[int]]]:
    """Under version 1: the tasks of cpusets, but for the kernel's, with the CPUs of their cpuset."""
    for group in groups:
        for member in members(group, root)[1]:
            task = read_task(root, int(member))
            if task is not None and not task.is_kernel:
                yield task, _cpus_of(group, root)


def _all_tasks(mount: str, root: Root) -> Iterator[tuple[Task, frozenset[int]]]:
    """Under version 2: all tasks that are not bound, the kernel's too, with the CPUs of their cgroup."""
    for task in read_tasks(root):
        lines = (root.read(f"/proc/{task.pid}/task/{task.tid}/cgroup") or "").splitlines()
        path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")
        group = PurePosixPath(f"{mount}/{path.strip('/')}")
        places = (place for place in (group, *group.parents) if place.is_relative_to(mount))
        seen = next((cpus for place in places if (cpus := root.read(f"{place}/cpuset.cpus.effective"))), None)
        if seen is not None and not task.is_bound:
            yield task, cpu_set(seen)


def _kernel_threads(isolated: frozenset[int], root: Root) -> Iterator[Change]:
    """Those that the kernel lets go elsewhere; threads of interrupts follow irq_cpus instead."""
    for task in read_tasks(root):
        if not task.is_kernel or task.is_bound or task.name == "kthreadd" or task.name.startswith("irq/"):
            continue
        cpus = allowed_cpus(root, task) or frozenset()
        if cpus & isolated and cpus - isolated:
            thread, rest = Affinity(task.tid, task.start, task.name), format_cpus(cpus - isolated)
            remedy = "leave out stray_tasks, or choose other CPUs to isolate"
            yield Change("stray_tasks", thread, rest, remedy, optional=True, needs="CAP_SYS_NICE")


def _cpus_of(group: str, root: Root) -> frozenset[int]:
    return cpu_set(root.read(f"{group}/cpuset.cpus"))


def _groups(top: str, root: Root) -> Iterator[str]:
    """All cpusets below the top."""
    depth = 1
    while files := root.glob(f"{top}{'/*' * depth}/cpuset.cpus"):
        yield from (file.rpartition("/")[0] for file in files)
        depth += 1
