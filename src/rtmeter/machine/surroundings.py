"""What the machine runs in, and how busy it is: virtual machine, container, steal, pressure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rtmeter.machine.finding import KERNEL_HARDWARE, Finding, Kind
from rtmeter.machine.reading import Machine

VIRTUAL_MACHINE = Kind(
    "virtual_machine",
    "high",
    "a host decides when the CPUs of a virtual machine run: figures are fit for comparison, unfit for "
    "absolute claims",
    f"{KERNEL_HARDWARE}, Virtualization",
    "measure on the target itself",
)
EMULATED = Kind(
    "emulated_processor",
    "fatal",
    "the processor is a program: how long anything takes on it says nothing of a machine",
    "QEMU, Documentation: TCG emulation",
    "use it to see that things work, never for figures",
)
CONTAINER = Kind(
    "container",
    "medium",
    "a container shares kernel and CPUs with what it does not see: the host's settings belong to its figures",
    "namespaces(7), cgroups(7)",
    "run rtmeter check on the host too",
)
STEAL = Kind(
    "steal",
    "high",
    "the hypervisor ran something else while CPUs of this machine had work",
    "proc_stat(5), steal",
    "give the virtual machine CPUs of its own (pinned, not shared) on the host",
)
PRESSURE = Kind(
    "pressure",
    "medium",
    "tasks waited for CPU, memory or disk in the last ten seconds: what is measured now is measured "
    "under load",
    "Linux Documentation/accounting/psi.rst",
    "let the machine come to rest, or ask for the load with conditions",
)

KINDS = (VIRTUAL_MACHINE, EMULATED, CONTAINER, STEAL, PRESSURE)

MOST_STEAL = 0.01
"""Share of the busy time since boot; less is an info."""

MOST_WAITING = {"cpu": 5.0, "memory": 1.0, "io": 10.0}
"""Per cent of the last ten seconds in which some task waited."""

_DMI = ("/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name")
_VENDORS = (
    *("QEMU", "KVM", "VMware", "VirtualBox", "innotek", "Xen", "Virtual Machine", "Google Compute"),
    *("Amazon EC2", "Apple Virtualization", "OpenStack", "Parallels", "BHYVE", "Bochs"),
)
_NONE = ".metal"
"""In the name of a machine that Amazon lends as a whole."""

_IN_GROUP = re.compile(r"/(docker|lxc|kubepods|libpod|machine\.slice)\b")


def check(machine: Machine) -> Iterator[Finding]:
    """Where it runs and what it has to do besides."""
    host = hypervisor(machine)
    if host is not None:
        yield VIRTUAL_MACHINE.found(host)
    elif machine.text("/proc/cpuinfo") is None:
        yield VIRTUAL_MACHINE.unknown(machine.why_not("/proc/cpuinfo"))
    if "QEMU TCG CPU" in (machine.text("/proc/cpuinfo") or ""):
        yield EMULATED.found("the processor's name is QEMU TCG CPU")
    kernels, own = machine.text("/proc/sys/kernel/arch"), machine.architecture
    if kernels and own and family(kernels) != family(own):
        yield EMULATED.found(f"programs are run as on {own}, and the kernel is of {kernels}")
    found = container(machine)
    if found is not None:
        yield CONTAINER.found(found)
    yield from _steal(machine)
    yield from _pressure(machine)


def family(architecture: str) -> str:
    """Kernels of 64 bits run programs of 32."""
    if re.fullmatch("x86_64|i.86", architecture):
        return "x86"
    return "arm" if architecture == "aarch64" else architecture[:3]


def hypervisor(machine: Machine) -> str | None:
    """What the processor, the firmware or the device tree says; the probe asks the processor itself."""
    firmware = " ".join(machine.text(name) or "" for name in _DMI).strip()
    if re.search(r"^flags\s*:.*\bhypervisor\b", machine.text("/proc/cpuinfo") or "", re.MULTILINE):
        return f"the processor says so{f' ({firmware})' if firmware else ''}"
    if kind := machine.text("/sys/hypervisor/type"):
        return kind
    if any(vendor in firmware for vendor in _VENDORS) and _NONE not in firmware:
        return firmware
    boards = machine.text("/proc/device-tree/compatible") or ""
    is_virtual = "dummy-virt" in boards or machine.exists("/proc/device-tree/hypervisor")
    return "the device tree says so" if is_virtual else None


def container(machine: Machine) -> str | None:
    """What says that it runs in one."""
    for name in ("/.dockerenv", "/run/.containerenv", "/run/systemd/container"):
        if machine.exists(name):
            return machine.text(name) if name == "/run/systemd/container" else f"{name} is there"
    if match := _IN_GROUP.search(machine.text("/proc/self/cgroup") or ""):
        return f"control group of {match[1]}"
    if machine.tasks and not machine.sees_kernel_threads:
        return "process ids of its own: no kernel thread is seen"
    return None


def _steal(machine: Machine) -> Iterator[Finding]:
    match = re.search(r"^cpu\s+([\d ]+)", machine.text("/proc/stat") or "", re.MULTILINE)
    times = [int(word) for word in match[1].split()] if match else []
    if len(times) < 8:
        yield STEAL.unknown(machine.why_not("/proc/stat"))
        return
    user, nice, system, _, _, irq, softirq, stolen = times[:8]
    share = stolen / max(1, user + nice + system + irq + softirq + stolen)
    if stolen:
        yield STEAL.found(
            f"the hypervisor took {100 * share:.2g}% of the busy time since boot",
            grade=None if share > MOST_STEAL else "info",
        )


def _pressure(machine: Machine) -> Iterator[Finding]:
    waiting, unread = [], []
    for resource, most in MOST_WAITING.items():
        match = re.search(r"^some avg10=([\d.]+)", machine.text(f"/proc/pressure/{resource}") or "")
        if match is None:
            unread.append(resource)
        elif float(match[1]) > most:
            waiting.append(f"{resource} {float(match[1]):g}%")
    if waiting:
        yield PRESSURE.found("some task waited: " + ", ".join(waiting))
    if unread and machine.built_with("PSI") is not False:
        reason = machine.why_not(f"/proc/pressure/{unread[0]}")
        yield PRESSURE.unknown(reason, fix="boot with psi=1")
