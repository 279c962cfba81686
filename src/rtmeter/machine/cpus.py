"""The CPUs intended: their clock, idle states and siblings, and whether they are kept apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rtmeter.host.threads import cpu_set
from rtmeter.machine.finding import KERNEL_CONFIGURATION, KERNEL_HARDWARE, Finding, Grade, Kind
from rtmeter.machine.reading import Machine
from rtmeter.values import format_cpus

NOT_USABLE = Kind(
    "cpu_not_usable",
    "fatal",
    "a thread cannot be bound to a CPU that is off or does not exist",
    "sched_setaffinity(2)",
)
NO_CPU = Kind(
    "no_cpu_chosen",
    "info",
    "without a CPU of its own the measured thread may be moved, and who disturbs it there is not looked at",
    "sched_setaffinity(2)",
    "rtmeter check --cpus 1, and measure with --cpus 1",
)
GOVERNOR = Kind(
    "governor",
    "high",
    "a frequency that changes with the load makes the same work take a different time, and each change "
    "takes time itself",
    KERNEL_CONFIGURATION,
)
OTHER_GOVERNORS = Kind(
    "other_governors",
    "medium",
    "a task of user space may choose another governor while you measure",
    KERNEL_CONFIGURATION,
    "build the kernel without the other governors, or see that nothing sets one",
)
IDLE_STATES = Kind(
    "deep_idle_states",
    "medium",
    "waking from a deep idle state takes the time that the state gives as its latency",
    f"{KERNEL_CONFIGURATION}, CONFIG_CPU_IDLE",
)
SMT = Kind(
    "smt_sibling",
    "medium",
    "the sibling thread of the same core takes execution units and cache whenever it runs",
    f"{KERNEL_HARDWARE}; admin-guide/hw-vuln/core-scheduling.rst",
)
NOHZ_FULL = Kind(
    "nohz_full_cpu",
    "medium",
    "on a CPU without a tick each way into and out of the kernel does more book-keeping: meant for long "
    "computation, discouraged for periodic loops",
    KERNEL_CONFIGURATION,
    "boot without nohz_full= for this CPU",
)
CLOCK_SOURCE = Kind(
    "clock_source",
    "high",
    "this clock is read from a slow device, by a system call: each stamp of a measurement costs microseconds",
    "Linux Documentation/timers/timekeeping.rst",
)

_HYPERVISORS_CLOCK = replace(
    CLOCK_SOURCE,
    grade="info",
    why="the hypervisor keeps this clock: what the host does to it, as when it moves the machine, is in each "
    "stamp",
)

KINDS = (
    NOT_USABLE,
    NO_CPU,
    GOVERNOR,
    OTHER_GOVERNORS,
    IDLE_STATES,
    SMT,
    NOHZ_FULL,
    CLOCK_SOURCE,
)

DEEP_US = 10
"""Exit latencies of idle states above this are deep ones; C1 takes some two."""

_CPU = "/sys/devices/system/cpu"
_CLOCKS = "/sys/devices/system/clocksource/clocksource0"
_SLOW = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")
_PARAVIRTUAL = ("kvm-clock", "xen", "hyperv_clocksource_tsc_page", "hyperv_clocksource_msr")
_FIXED = ("powersave", "userspace")
_MOVING_POWERSAVE = ("intel_pstate", "amd-pstate-epp")


def check(machine: Machine) -> Iterator[Finding]:
    """The state of the CPUs intended, and the clock."""
    if machine.intent.cpus is None or machine.named_cpus is None:
        yield NO_CPU.found(f"any of {len(machine.cpus)} CPUs")
    else:
        yield from _placement(machine, frozenset(machine.intent.cpus), machine.named_cpus)
    yield from _governors(machine)
    yield from _idle_states(machine)
    yield from _siblings(machine)
    without_tick = cpu_set(machine.text(f"{_CPU}/nohz_full")).intersection(machine.cpus)
    if without_tick:
        yield NOHZ_FULL.found(f"no tick on CPU {_list(without_tick)}")
    yield from _clock(machine)


def _list(cpus: frozenset[int] | list[int]) -> str:
    return ",".join(map(str, sorted(cpus)))


def _placement(machine: Machine, wanted: frozenset[int], there: frozenset[int]) -> Iterator[Finding]:
    if not machine.online:
        yield NOT_USABLE.unknown(machine.why_not(f"{_CPU}/online"))
        return
    value, fix = [], []
    if wanted - there:
        online = format_cpus(machine.online)
        value.append(f"CPU {_list(wanted - there)} does not exist; this machine has {online}")
        fix.append(f"choose among {online}")
    if off := there - machine.online:
        value.append(f"CPU {_list(off)} is off")
        fix += [f"echo 1 > {_CPU}/cpu{cpu}/online" for cpu in sorted(off)]
    if value:
        yield NOT_USABLE.found("; ".join(value), fix="; ".join(fix))


def _governors(machine: Machine) -> Iterator[Finding]:
    files = {cpu: f"{_CPU}/cpu{cpu}/cpufreq/scaling_governor" for cpu in machine.cpus}
    governors = {cpu: machine.text(name) for cpu, name in files.items()}
    unread = [cpu for cpu, governor in governors.items() if governor is None]
    if unread and machine.built_with("CPU_FREQ") is not False:
        reason = f"{machine.why_not(files[unread[0]])}: the firmware or a host sets the frequency"
        yield GOVERNOR.unknown(reason)
    others = {cpu: governor for cpu, governor in governors.items() if governor not in (None, "performance")}
    if others:
        drivers = {machine.text(f"{_CPU}/cpu{cpu}/cpufreq/scaling_driver") for cpu in others}
        is_fixed = all(governor in _FIXED for governor in others.values())
        grade: Grade = "medium" if is_fixed and not drivers.intersection(_MOVING_POWERSAVE) else "high"
        on_cpus = ", ".join(f"{governor} on CPU {cpu}" for cpu, governor in others.items())
        which = " ".join(map(str, others))
        fix = f"for cpu in {which}; do echo performance > {_CPU}/cpu$cpu/cpufreq/scaling_governor; done"
        yield GOVERNOR.found(on_cpus, fix=fix, grade=grade)
    names = {
        name
        for cpu in machine.cpus
        for name in (machine.text(f"{_CPU}/cpu{cpu}/cpufreq/scaling_available_governors") or "").split()
    }
    if names - {"performance"}:
        yield OTHER_GOVERNORS.found(" ".join(sorted(names - {"performance"})))


def _idle_states(machine: Machine) -> Iterator[Finding]:
    deep: dict[str, list[int]] = {}
    numbers: set[str] = set()
    states = 0
    for cpu in machine.cpus:
        for name in machine.root.glob(f"{_CPU}/cpu{cpu}/cpuidle/state*/latency"):
            states += 1
            folder = name.rpartition("/")[0]
            latency_us = machine.number(name) or 0
            if latency_us > DEEP_US and machine.text(f"{folder}/disable") != "1":
                deep.setdefault(f"{machine.text(f'{folder}/name')} ({latency_us} us)", []).append(cpu)
                numbers.add(folder.rpartition("/state")[2])
    if deep:
        value = "; ".join(f"{state} on CPU {_list(cpus)}" for state, cpus in deep.items())
        cpus = " ".join(map(str, sorted({cpu for some in deep.values() for cpu in some})))
        which = " ".join(sorted(numbers))
        command = f"echo 1 > {_CPU}/cpu$cpu/cpuidle/state$state/disable"
        turn_off = f"for cpu in {cpus}; do for state in {which}; do {command}; done; done"
        yield IDLE_STATES.found(value, fix=f"measure with --cpu-dma-latency, or {turn_off}")
    elif machine.cpus and not states and machine.built_with("CPU_IDLE") is not False:
        driver = machine.text(f"{_CPU}/cpuidle/current_driver")
        reason = f"no idle states are listed (driver {driver}): the firmware or a host chooses"
        yield IDLE_STATES.unknown(reason if driver else machine.why_not(f"{_CPU}/cpuidle/current_driver"))


def _siblings(machine: Machine) -> Iterator[Finding]:
    siblings: set[int] = set()
    for cpu in machine.cpus:
        name = f"{_CPU}/cpu{cpu}/topology/thread_siblings_list"
        listed = machine.text(name)
        if listed is None:
            yield SMT.unknown(machine.why_not(name))
            return
        siblings |= cpu_set(listed) - {cpu}
    if siblings:
        sharing = f"CPU {_list(list(siblings))} shares a core with CPU {_list(list(machine.cpus))}"
        if machine.intent.cpus is None:
            yield SMT.found("cores run two threads each", fix=f"echo off > {_CPU}/smt/control")
        else:
            spare = sorted(siblings.difference(machine.cpus))
            fixed = [cpu for cpu in spare if not machine.exists(f"{_CPU}/cpu{cpu}/online")]
            commands = "; ".join(f"echo 0 > {_CPU}/cpu{cpu}/online" for cpu in spare)
            if fixed:  # as the first CPU of an x86
                commands = f"measure on another CPU: CPU {_list(fixed)} cannot be turned off"
            yield SMT.found(sharing, fix=commands or f"echo off > {_CPU}/smt/control")


def _clock(machine: Machine) -> Iterator[Finding]:
    current = machine.text(f"{_CLOCKS}/current_clocksource")
    if current is None:
        yield CLOCK_SOURCE.unknown(machine.why_not(f"{_CLOCKS}/current_clocksource"))
    elif current in (*_SLOW, *_PARAVIRTUAL):
        available = (machine.text(f"{_CLOCKS}/available_clocksource") or "").split()
        better = next((clock for clock in available if clock not in (*_SLOW, *_PARAVIRTUAL)), None)
        fix = f"echo {better} > {_CLOCKS}/current_clocksource" if better else ""
        yield (CLOCK_SOURCE if current in _SLOW else _HYPERVISORS_CLOCK).found(current, fix=fix)
