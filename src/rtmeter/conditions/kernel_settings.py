"""Settings of the kernel that are files: governor, throttling, timers, workqueues."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from rtmeter.conditions.change import Change, refuse
from rtmeter.conditions.resources import File, register
from rtmeter.host.root import Root
from rtmeter.values import cpu_mask, format_duration, parse_duration_ns

_GOVERNORS = (
    "/sys/devices/system/cpu/cpufreq/policy[0-9]*/scaling_governor",
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",  # before Linux 4.3
)
_USERSPACE = "userspace"
_ROUNDED = 0.02
_RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
_RT_PERIOD = "/proc/sys/kernel/sched_rt_period_us"
_FAIR_SERVERS = "/sys/kernel/debug/sched/fair_server/cpu[0-9]*/runtime"
_TIMER_MIGRATION = "/proc/sys/kernel/timer_migration"
_WORKQUEUES = "/sys/devices/virtual/workqueue"


@dataclass(frozen=True, slots=True)
class Speed(File):
    """The clock that somebody chose under the governor ``userspace``, kHz; that begins anew with the clock it
    finds, so this is put back after it."""

    kind: ClassVar[str] = "speed"

    def same(self, one: str | None, other: str | None) -> bool:
        """The hardware may round it."""
        if one and other and one.isdecimal() and other.isdecimal():
            return abs(int(one) - int(other)) <= _ROUNDED * int(other)
        return one == other

    def is_ours(self, now: str, new: str) -> bool:
        """Any; under another governor it is no number."""
        return now.isdecimal()


register(Speed)


def governor(name: str, root: Root) -> Iterator[Change]:
    """The same on every CPU."""
    files = next((found for pattern in _GOVERNORS if (found := root.glob(pattern))), [])
    if not files:
        remedy = "leave it out: the firmware or the hypervisor decides the clock here"
        raise refuse("governor", "there is no frequency scaling on this machine", remedy)
    for file in files:
        offered = (root.read(file.replace("scaling_governor", "scaling_available_governors")) or "").split()
        if offered and name not in offered:
            raise refuse("governor", f"{file} does not offer it", f"choose {' or '.join(offered)}")
        if name != _USERSPACE and root.read(file) == _USERSPACE:
            speed = Speed(file.replace("scaling_governor", "scaling_setspeed"))
            yield Change("governor", speed, "any", "", remembered=True)
        yield Change("governor", File(file), name, "choose a governor that its driver offers")


def rt_throttling(runtime: str, root: Root) -> Iterator[Change]:
    """``off`` also turns off the servers that, since Linux 6.12, give normal tasks a share of their own;
    where they cannot be reached, that is a doubt."""
    value = "-1" if runtime == "off" else str(parse_duration_ns(runtime) // 1000)
    period = root.read(_RT_PERIOD) or ""
    if period.isdecimal() and int(value) > int(period):
        longest = format_duration(int(period) * 1000)
        message = f"is more than the period of throttling, {longest} ({_RT_PERIOD})"
        raise refuse("rt_throttling", message, f"choose {longest} or less, or off")
    remedy = f"it may not exceed {_RT_PERIOD}, nor go below what cgroups were given"
    yield Change("rt_throttling", File(_RT_RUNTIME), value, remedy)
    if runtime == "off":
        some = [_FAIR_SERVERS.replace("[0-9]*", "0")] if _release(root) >= (6, 12) else []
        remedy = (
            "mount -t debugfs none /sys/kernel/debug, unless the kernel is locked down; as it is, normal "
            "tasks that wait for a CPU get 50 ms of each second before real-time ones"
        )
        for file in root.glob(_FAIR_SERVERS) or some:
            yield Change("rt_throttling", File(file), "0", remedy, optional=True)


def _release(root: Root) -> tuple[int, ...]:
    numbers = re.match(r"(\d+)\.(\d+)", root.read("/proc/sys/kernel/osrelease") or "")
    return tuple(map(int, numbers.groups())) if numbers else ()


def timer_migration(wanted: bool, root: Root) -> Iterator[Change]:
    """Whether an idle CPU's timers may be moved to another one."""
    remedy = "leave it out: a kernel without NO_HZ moves no timers"
    yield Change("timer_migration", File(_TIMER_MIGRATION), str(int(wanted)), remedy)


def workqueue_cpus(cpus: tuple[int, ...], root: Root) -> Iterator[Change]:
    """The mask of all unbound workqueues, and of those that have one of their own."""
    files = [f"{_WORKQUEUES}/cpumask", *root.glob(f"{_WORKQUEUES}/*/cpumask")]
    for file in files:
        requested = f"{file}_requested"  # what was written; cpumask leaves out the CPUs of isolcpus
        seen = requested if root.exists(requested) else ""
        remedy = "name CPUs that are online, and not all of them isolated at boot"
        yield Change("workqueue_cpus", File(file, "mask", seen), cpu_mask(cpus), remedy)
