"""The scheduler: what stops a thread that should run, or moves its timers and memory."""

from __future__ import annotations

from collections.abc import Iterator

from rtmeter.host.cgroups import Hierarchy, find
from rtmeter.machine.finding import KERNEL_SYSCTL, TUNED_REALTIME, Finding, Grade, Kind
from rtmeter.machine.reading import Machine, switch

RT_THROTTLING = Kind(
    "rt_throttling",
    "high",
    "real-time threads that use up their share of a period wait for its end: by default 50 ms of each second",
    "Linux Documentation/scheduler/sched-rt-group.rst",
    "sysctl -w kernel.sched_rt_runtime_us=-1",
)
RT_THROTTLING_OFF = Kind(
    "rt_throttling_off",
    "info",
    "nothing stops a real-time thread that never sleeps: it may hang the machine",
    "Linux Documentation/scheduler/sched-rt-group.rst",
    "when all is measured: sysctl -w kernel.sched_rt_runtime_us=950000",
)
FAIR_SERVER = Kind(
    "fair_server",
    "high",
    "since Linux 6.12 normal tasks that starve on a CPU run before its real-time threads, by default for "
    "50 ms of each second, whatever sched_rt_runtime_us says",
    "Linux Documentation/scheduler/sched-deadline.rst",
)
RT_GROUP_LIMIT = Kind(
    "rt_group_limit",
    "fatal",
    "a control group without real-time runtime refuses real-time policies; one with little stops its "
    "threads until the period ends",
    "Linux Documentation/scheduler/sched-rt-group.rst",
)
CPU_QUOTA = Kind(
    "cpu_quota",
    "high",
    "the normal threads of a control group that has used up its quota stop until its period ends, by "
    "default 100 ms",
    "Linux Documentation/scheduler/sched-bwc.rst",
)
TIMER_MIGRATION = Kind(
    "timer_migration",
    "medium",
    "a timer that an idle CPU armed may be moved to a busy one, and end late there",
    TUNED_REALTIME,
    "sysctl -w kernel.timer_migration=0",
)
NUMA_BALANCING = Kind(
    "numa_balancing",
    "medium",
    "pages are unmapped to see who uses them: each costs a page fault, also where memory is locked",
    KERNEL_SYSCTL,
    "sysctl -w kernel.numa_balancing=0",
)

KINDS = (
    RT_THROTTLING,
    RT_THROTTLING_OFF,
    FAIR_SERVER,
    RT_GROUP_LIMIT,
    CPU_QUOTA,
    TIMER_MIGRATION,
    NUMA_BALANCING,
)

_RUNTIME, _PERIOD = "/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_period_us"
_FIRST_FAIR_SERVER = (6, 12)
_FIRST_RT_GROUP_SWITCH = (6, 16)


def check(machine: Machine) -> Iterator[Finding]:
    """Throttling, groups, and what moves timers and pages."""
    yield from _throttling(machine)
    yield from _fair_server(machine)
    yield from _groups(machine)
    for kind, option in ((TIMER_MIGRATION, "NO_HZ_COMMON"), (NUMA_BALANCING, "NUMA_BALANCING")):
        yield from switch(machine, kind, option)


def _throttling(machine: Machine) -> Iterator[Finding]:
    runtime, period = machine.number(_RUNTIME), machine.number(_PERIOD)
    if runtime is None:
        yield RT_THROTTLING.unknown(machine.why_not(_RUNTIME))
    elif runtime < 0:
        yield RT_THROTTLING_OFF.found("kernel.sched_rt_runtime_us = -1")
    elif period is None or runtime < period:
        value = f"kernel.sched_rt_runtime_us = {runtime} of {period or '?'} us"
        if _has_fair_server(machine) and machine.built_with("RT_GROUP_SCHED") is False:
            yield RT_THROTTLING.found(f"{value}; here it bounds the deadline policy alone", grade="info")
        else:
            yield RT_THROTTLING.found(value)


def _has_fair_server(machine: Machine) -> bool:
    return machine.kernel is not None and machine.kernel >= _FIRST_FAIR_SERVER


def _fair_server(machine: Machine) -> Iterator[Finding]:
    if not _has_fair_server(machine):
        return
    names = {cpu: f"/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime" for cpu in machine.cpus}
    runtimes_ns = {cpu: machine.number(name) for cpu, name in names.items()}
    commands = "; ".join(f"echo 0 > {names[cpu]}" for cpu, ns in runtimes_ns.items() if ns != 0)
    if any(runtimes_ns.values()):
        servers = (f"{(ns or 0) / 1e6:g} ms on CPU {cpu}" for cpu, ns in runtimes_ns.items() if ns)
        yield FAIR_SERVER.found(", ".join(servers), fix=commands)
    elif None in runtimes_ns.values():
        reason = machine.why_not(next(names[cpu] for cpu, ns in runtimes_ns.items() if ns is None))
        yield FAIR_SERVER.unknown(
            f"{reason}; by default 50 ms of 1 s", fix=f"mount -t debugfs none /sys/kernel/debug; {commands}"
        )


def _groups(machine: Machine) -> Iterator[Finding]:
    group = find("cpu", machine.root, machine.process)
    if group is None:
        for kind in (RT_GROUP_LIMIT, CPU_QUOTA):
            yield kind.unknown("no cgroups with the cpu controller are mounted")
        return
    yield from _rt_group(machine, group)
    quotas, commands = [], []  # of every group above, as each bounds those below
    for folder in reversed(group.above()):
        name = f"{folder}/{'cpu.cfs_quota_us' if group.version == 1 else 'cpu.max'}"
        value = (machine.text(name) or "max").split()
        if value[0] not in ("max", "-1"):
            period = value[1] if len(value) > 1 else machine.text(f"{folder}/cpu.cfs_period_us")
            quotas.append(f"{value[0]} of {period} us in {folder}")
            commands.append(f"echo {'-1' if group.version == 1 else 'max'} > {name}")
    if quotas:
        grade: Grade = "medium" if machine.intent.is_real_time else "high"
        yield CPU_QUOTA.found(", ".join(quotas), fix="; ".join(commands), grade=grade)


def _rt_group(machine: Machine, group: Hierarchy) -> Iterator[Finding]:
    if group.version == 2:
        disabled = machine.built_with("RT_GROUP_SCHED_DEFAULT_DISABLED")
        switched = {"rt_group_sched=0": True, "rt_group_sched=1": False}
        disabled = next((off for word, off in switched.items() if word in machine.command_line), disabled)
        # Only a group with the controller has a cpu.max, and those below without go with it; the top one,
        # which may all, has none.
        with_controller = (folder for folder in reversed(group.above()) if machine.text(f"{folder}/cpu.max"))
        folder = next(with_controller, None)
        if machine.built_with("RT_GROUP_SCHED") and not disabled and folder is not None:
            value = f"RT_GROUP_SCHED, and {folder} is not the top group, the only one with runtime"
            fix = f"echo $$ > {group.mount}/cgroup.procs, and start rtmeter there"
            if machine.kernel is None or machine.kernel >= _FIRST_RT_GROUP_SWITCH:
                fix += "; for good: boot with rt_group_sched=0"
            yield RT_GROUP_LIMIT.found(value, fix=fix)
        return
    name = f"{group.own}/cpu.rt_runtime_us"
    runtime, whole = machine.number(name), machine.number(_RUNTIME)
    usual_us = machine.number(_PERIOD) or 1_000_000
    period_us = machine.number(f"{group.own}/cpu.rt_period_us") or usual_us
    most = (whole if whole and whole > 0 else 950_000) * period_us // usual_us
    if runtime is None and machine.built_with("RT_GROUP_SCHED"):
        yield RT_GROUP_LIMIT.unknown(machine.why_not(name))
    elif runtime is not None and runtime >= 0 and runtime < (most if whole and whole > 0 else 1):
        grade: Grade = "fatal" if runtime == 0 else "medium"
        per = f" of {period_us} us in {group.own}" if period_us != usual_us else ""
        command = f"echo {most} > {name} (each group above it needs as much)"
        yield RT_GROUP_LIMIT.found(f"{name.rpartition('/')[2]} = {runtime}{per}", fix=command, grade=grade)
