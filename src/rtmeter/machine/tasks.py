"""Who else runs: tasks that come before the measured thread, and tasks on its CPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rtmeter.host.threads import Task, allowed_cpus
from rtmeter.machine.cpusets import isolating
from rtmeter.machine.finding import PER_CPU_KTHREADS, Finding, Kind
from rtmeter.machine.reading import Machine

TASKS_ABOVE = Kind(
    "task_at_or_above",
    "high",
    "a task of higher priority keeps the measured thread waiting for as long as it runs, one of the same "
    "until it sleeps",
    "sched(7)",
)
KERNEL_THREADS_ABOVE = Kind(
    "kernel_thread_at_or_above",
    "medium",
    "a kernel thread of higher priority keeps the measured thread waiting while it works",
    f"sched(7); {PER_CPU_KTHREADS}",
)
HIDDEN_TASKS = Kind(
    "hidden_tasks",
    "high",
    "tasks outside the container share its CPUs; those of higher priority cannot be named from inside",
    "pid_namespaces(7)",
    "run rtmeter check on the host",
)
CPU_SHARED = Kind(
    "cpu_shared",
    "medium",
    "other tasks ran last on the CPU: they leave their data in its caches, bring timers and work of the "
    "kernel with them, and run before a thread of normal priority",
    f"{PER_CPU_KTHREADS}; Linux Documentation/core-api/real-time/hardware.rst",
)
NORMAL_POLICY = Kind(
    "normal_policy",
    "high",
    "at normal policy every other task competes for the CPU, and timers have 50 us of slack",
    "sched(7); prctl(2), PR_SET_TIMERSLACK",
    "measure with --scheduling fifo:80",
)

KINDS = (TASKS_ABOVE, KERNEL_THREADS_ABOVE, HIDDEN_TASKS, CPU_SHARED, NORMAL_POLICY)

_FEW = 5
_MOST_ITEMS = 20
"""Of tasks below the measured one; those above are all told."""

_STOPPERS = ("migration/", "stopper/")
"""Kernel threads that stop a CPU to move tasks: the scheduler cannot do without them."""


def check(machine: Machine) -> Iterator[Finding]:
    """Tasks at or above the intended priority, and those on the intended CPUs."""
    if not machine.intent.is_real_time:
        tids = machine.intent.threads
        if not tids:
            yield NORMAL_POLICY.found("the measured thread is to run at policy other")
        else:
            chrt = "; ".join(f"chrt --fifo --pid 80 {tid}" for tid in tids)
            fix = f"{chrt}, or attach --scheduling fifo:80 -- COMMAND, which starts it so"
            yield NORMAL_POLICY.found("the measured thread runs at policy other", fix=fix)
    if not machine.tasks:
        yield TASKS_ABOVE.unknown("no task can be seen in /proc")
        return
    yield from _above(machine)
    if not machine.sees_kernel_threads:
        yield HIDDEN_TASKS.unknown("/proc shows no kernel thread: it is that of a container")
    if machine.named_cpus is not None:
        yield from _on_the_cpus(machine, machine.named_cpus)


def _above(machine: Machine) -> Iterator[Finding]:
    """The worst is a user's task that may run on the intended CPUs."""
    others = (task for task in machine.tasks if task.tid not in machine.intent.threads)
    above = [task for task in others if task.rank >= max(1, machine.intent.rank)]
    for kind, is_kernel in ((TASKS_ABOVE, False), (KERNEL_THREADS_ABOVE, True)):
        tasks = sorted((t for t in above if t.is_kernel == is_kernel), key=lambda t: (-t.rank, t.tid))
        if not tasks:
            continue
        places = {task.tid: allowed_cpus(machine.root, task) for task in tasks}
        near = [t for t in tasks if _may_meet(places[t.tid], machine) and not t.name.startswith(_STOPPERS)]
        fix = "" if is_kernel else "; ".join(f"chrt --other --pid 0 {task.tid}" for task in near)
        items = tuple(_item(task, places[task.tid]) for task in tasks)
        value = _names([*near, *(task for task in tasks if task not in near)], most=None)
        yield kind.found(value, fix=fix, grade=None if near else "info", items=items)


def _may_meet(place: frozenset[int] | None, machine: Machine) -> bool:
    return place is None or not place.isdisjoint(machine.cpus)


def _on_the_cpus(machine: Machine, cpus: frozenset[int]) -> Iterator[Finding]:
    """User tasks below that were there and may come back; a kernel thread of a CPU belongs there."""
    own = (machine.text("/proc/self/stat") or "0").split()[0]
    places = {
        task: allowed_cpus(machine.root, task)
        for task in machine.tasks
        if task.last_cpu in cpus
        and not task.is_kernel
        and str(task.pid) != own
        and task.tid not in machine.intent.threads
        and task.state != "Z"
        and task.rank < max(1, machine.intent.rank)
    }
    tasks = [task for task, place in places.items() if _may_meet(place, machine)]
    if tasks:
        which, rest = (",".join(map(str, sorted(some))) for some in (cpus, machine.online - cpus))
        ids = " ".join(str(task.tid) for task in tasks)
        fix = f"for task in {ids}; do taskset -pc {rest} $task; done" if rest else ""
        if rest and len(tasks) > _MOST_ITEMS:
            fix = isolating(machine, which)
        value = f"{len(tasks)} threads ran last on CPU {which}: {_names(tasks)}"
        items = tuple(_item(task, places[task]) for task in tasks[:_MOST_ITEMS])
        yield CPU_SHARED.found(value, fix=fix, items=items)


def _names(tasks: Iterable[Task], most: int | None = _FEW) -> str:
    names = [f"{task.name} ({task.tid}, {task.scheduling})" for task in tasks]
    more = f" and {len(names) - most} more" if most is not None and len(names) > most else ""
    return ", ".join(names[:most]) + more


def _item(task: Task, place: frozenset[int] | None) -> dict[str, Any]:
    facts = {key: getattr(task, key) for key in ("pid", "tid", "name", "policy", "priority", "last_cpu")}
    return facts | {"kernel": task.is_kernel, "cpus": None if place is None else sorted(place)}
