"""Cpusets and the intended CPUs (cpusets(7); cgroup-v2.rst): whose are they?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rtmeter.host.cgroups import GROUP, HOUSEKEEPING, Hierarchy, find
from rtmeter.host.threads import cpu_set
from rtmeter.machine.finding import KERNEL_PARAMETERS, Finding, Grade, Kind
from rtmeter.machine.reading import Machine

OVERLAP = Kind(
    "cpuset_overlap",
    "medium",
    "tasks of another cpuset that holds the CPU may run there: the set around the measured thread keeps "
    "nothing out",
    "cpusets(7); Linux Documentation/admin-guide/cgroup-v2.rst",
)
OUTSIDE = Kind(
    "cpu_outside_cpuset",
    "fatal",
    "a thread cannot be bound to a CPU outside the cpuset of its process",
    "cpusets(7); sched_setaffinity(2)",
)
NOT_ISOLATED = Kind(
    "cpu_not_isolated",
    "medium",
    "the scheduler places other tasks on the CPU too",
    f"{KERNEL_PARAMETERS}, isolcpus=; Linux Documentation/admin-guide/cgroup-v2.rst",
)

KINDS = (OVERLAP, OUTSIDE, NOT_ISOLATED)

_ISOLATED = ("/sys/devices/system/cpu/isolated", "/sys/fs/cgroup/cpuset.cpus.isolated")
_DEEPEST = 8
_FEW = 5


def check(machine: Machine) -> Iterator[Finding]:
    """Who else may run on the intended CPUs, by isolation and cpusets."""
    hierarchy = find("cpuset", machine.root)
    measured = _measured_group(machine, hierarchy)
    yield from _overlaps(machine, hierarchy, measured)
    if machine.intent.cpus is None:
        return
    wanted = frozenset(machine.intent.cpus)
    status = machine.text("/proc/self/status") or ""
    allowed = [line.split()[1] for line in status.splitlines() if line.startswith("Cpus_allowed_list:")]
    if allowed and measured is None and machine.online & wanted - cpu_set(allowed[0]):
        cpus = ",".join(map(str, machine.cpus))
        fix = f"taskset -c {cpus} rtmeter …, or start it in another cpuset"
        yield OUTSIDE.found(f"this process may run on CPU {allowed[0]}", fix=fix)
    yield from _isolation(machine, wanted, measured)


def _measured_group(machine: Machine, hierarchy: Hierarchy | None) -> str | None:
    """The group that the measured process is put into (conditions: isolate); None if there is none. This
    process may have been moved from the group above it."""
    groups = [f"{folder}/{GROUP}" for folder in hierarchy.above()] if hierarchy else []
    return next((group for group in groups if machine.text(f"{group}/cpuset.cpus")), None)


def _isolation(machine: Machine, wanted: frozenset[int], measured: str | None) -> Iterator[Finding]:
    listed = [machine.text(name) for name in _ISOLATED]
    if listed == [None, None]:
        yield NOT_ISOLATED.unknown(machine.why_not(_ISOLATED[0]))
        return
    shared = wanted.difference(*map(cpu_set, listed))
    if measured is not None:
        partition = machine.text(f"{measured}/cpuset.cpus.partition")
        above = measured.rpartition("/")[0]
        if partition in ("root", "isolated") or machine.exists(f"{above}/{HOUSEKEEPING}"):
            shared -= cpu_set(machine.text(f"{measured}/cpuset.cpus"))
    if shared:
        cpus = ",".join(map(str, sorted(shared)))
        fix = f"measure with --condition isolate={cpus} --condition stray_tasks=move"
        yield NOT_ISOLATED.found(f"CPU {cpus} is not isolated", fix=fix)


def _overlaps(machine: Machine, hierarchy: Hierarchy | None, measured: str | None) -> Iterator[Finding]:
    """Where no CPU is named, any other cpuset is told, as an info."""
    if hierarchy is None:
        yield OVERLAP.unknown("no cgroups with cpusets are mounted")
        return
    others = list(_other_cpusets(machine, hierarchy, measured))
    if not others:
        return
    named = [f"{o['cpuset']} (CPU {o['cpus']}, {o['processes']} processes)" for o in others]
    more = f" and {len(named) - _FEW} more" if len(named) > _FEW else ""
    rest = ",".join(map(str, sorted(machine.online.difference(machine.cpus))))
    fix = "; ".join(f"echo {rest} > {o['cpuset']}/cpuset.cpus" for o in others[:_FEW]) if rest else ""
    grade: Grade = OVERLAP.grade if machine.intent.cpus else "info"
    yield OVERLAP.found(", ".join(named[:_FEW]) + more, fix=fix, grade=grade, items=tuple(others))


def _other_cpusets(machine: Machine, hierarchy: Hierarchy, measured: str | None) -> Iterator[dict[str, Any]]:
    own = [*hierarchy.above(), measured]
    for depth in range(1, _DEEPEST + 1):
        for name in machine.root.glob(f"{hierarchy.mount}{'/*' * depth}/cpuset.cpus"):
            folder, cpus = name.rpartition("/")[0], machine.text(name) or ""
            if folder not in own and cpu_set(cpus).intersection(machine.cpus):
                processes = len((machine.text(f"{folder}/cgroup.procs") or "").split())
                yield {"cpuset": folder, "cpus": cpus, "processes": processes}
