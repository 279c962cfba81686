"""Other cpusets that hold the intended CPUs (cpusets(7); cgroup-v2.rst)."""

from __future__ import annotations

from collections.abc import Iterator

from rtmeter.cgroups import find
from rtmeter.machine.finding import Finding, Kind
from rtmeter.machine.reading import Machine
from rtmeter.tasks import cpu_set

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

KINDS = (OVERLAP, OUTSIDE)

_DEEPEST = 8
_FEW = 5


def check(machine: Machine) -> Iterator[Finding]:
    """Nothing can overlap, and nothing be outside, where no CPU is named."""
    if machine.intent.cpus is None:
        return
    wanted = frozenset(machine.intent.cpus)
    status = machine.text("/proc/self/status") or ""
    allowed = [line.split()[1] for line in status.splitlines() if line.startswith("Cpus_allowed_list:")]
    if allowed and machine.online & wanted - cpu_set(allowed[0]):
        yield OUTSIDE.found(
            f"this process may run on CPU {allowed[0]}",
            fix=f"taskset -c {','.join(map(str, machine.cpus))} rtmeter …, or leave the cpuset",
        )
    group = find("cpuset", machine.root)
    if group is None:
        yield OVERLAP.unknown("no cgroups with cpusets are mounted")
        return
    own = group.above()
    others = []
    for depth in range(1, _DEEPEST + 1):
        for name in machine.root.glob(f"{group.mount}{'/*' * depth}/cpuset.cpus"):
            folder = name.rpartition("/")[0]
            cpus = machine.text(name) or ""
            if folder not in own and cpu_set(cpus) & wanted:
                processes = len((machine.text(f"{folder}/cgroup.procs") or "").split())
                others.append({"cpuset": folder, "cpus": cpus, "processes": processes})
    if others:
        told = [f"{o['cpuset']} (CPU {o['cpus']}, {o['processes']} processes)" for o in others]
        more = f" and {len(told) - _FEW} more" if len(told) > _FEW else ""
        rest = ",".join(map(str, sorted(machine.online - wanted)))
        fix = "; ".join(f"echo {rest} > {o['cpuset']}/cpuset.cpus" for o in others[:_FEW]) if rest else ""
        yield OVERLAP.found(", ".join(told[:_FEW]) + more, fix=fix, items=tuple(others))
