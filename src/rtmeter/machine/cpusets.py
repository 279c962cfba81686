"""Cpusets and the intended CPUs (cpusets(7); cgroup-v2.rst): whose are they?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rtmeter.host.cgroups import GROUP, HOUSEKEEPING, Hierarchy, find
from rtmeter.host.threads import cpu_set
from rtmeter.machine.finding import KERNEL_PARAMETERS, Finding, Grade, Kind
from rtmeter.machine.reading import Machine
from rtmeter.values import format_cpus

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
_INTEND_FEWER = "intend fewer CPUs: everything else needs one"
_DEEPEST = 8
_FEW = 5


def check(machine: Machine) -> Iterator[Finding]:
    """Who else may run on the intended CPUs, by isolation and cpusets."""
    hierarchy = find("cpuset", machine.root, machine.process)
    measured = _measured_group(machine, hierarchy)
    yield from _overlaps(machine, hierarchy, measured)
    wanted = machine.named_cpus
    if wanted is None:
        return
    if measured is None:
        yield from _outside(machine, hierarchy, wanted)
    yield from _isolation(machine, wanted, measured)


def _outside(machine: Machine, hierarchy: Hierarchy | None, wanted: frozenset[int]) -> Iterator[Finding]:
    """A cpuset bounds which CPUs a thread may choose; those that it is bound to now (by taskset, or since
    isolcpus keeps all off the others) do not."""
    status = machine.text(f"/proc/{machine.process}/status") or ""
    bound = [line.split()[1] for line in status.splitlines() if line.startswith("Cpus_allowed_list:")]
    allowed = _allowed(machine, hierarchy) if hierarchy else None
    if allowed is not None and machine.online & wanted - allowed:
        cpus = format_cpus(machine.online & wanted - allowed)
        fix = f"start rtmeter in a cpuset that has CPU {cpus} (a container: docker run --cpuset-cpus)"
        yield OUTSIDE.found(f"this process may run on CPU {format_cpus(allowed)}", fix=fix)
    elif allowed is None and bound and machine.online & wanted - cpu_set(bound[0]):
        cpus = format_cpus(machine.online & wanted)
        yield OUTSIDE.unknown(
            f"bound to CPU {bound[0]}, and no cpuset is seen", fix=f"taskset -c {cpus} true"
        )


def _allowed(machine: Machine, hierarchy: Hierarchy) -> frozenset[int] | None:
    """The CPUs of this process's cpuset; None if no file tells them."""
    v1 = ("cpuset.effective_cpus", "cpuset.cpus")
    names = v1 if hierarchy.version == 1 else ("cpuset.cpus.effective",)
    files = (f"{folder}/{name}" for folder in reversed(hierarchy.above()) for name in names)
    return next((cpus for file in files if (cpus := cpu_set(machine.text(file)))), None)


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
        cpus, every = (",".join(map(str, sorted(some))) for some in (shared, wanted))
        fix = isolating(machine, every)  # a measurement on others too is refused
        if not machine.online - wanted:
            fix = _INTEND_FEWER if len(machine.online) > 1 else ""
        yield NOT_ISOLATED.found(f"CPU {cpus} is not isolated", fix=fix)


def isolating(machine: Machine, cpus: str) -> str:
    """What isolates the CPUs; a thread that runs already would be left outside by a condition."""
    fix = f"--condition isolate={cpus} --condition stray_tasks=move"
    if machine.intent.thread is None:
        return f"measure with {fix}"
    return f"boot with isolcpus={cpus}, or attach {fix} -- COMMAND, which starts it there"


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
    deepest_first = sorted(others, key=lambda other: -other["cpuset"].count("/"))  # as version 1 asks
    rest = {o["cpuset"]: cpu_set(o["cpus"]).difference(machine.cpus) for o in deepest_first}
    elsewhere = machine.online.difference(machine.cpus)
    fix = "; ".join(f"echo {format_cpus(own or elsewhere)} > {o}/cpuset.cpus" for o, own in rest.items())
    fix = fix if elsewhere else ""
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
