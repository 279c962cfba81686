"""Interrupts of a device: which CPUs take them, and the priority of the kernel threads that serve them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rtmeter.conditions.change import Change, refuse
from rtmeter.conditions.resources import File, Policy
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.threads import Task, read_tasks
from rtmeter.values import format_cpus

_IRQ = "/proc/irq"
_NO_IRQ_REMEDY = (
    "a container without it, or whose kernel hides it, cannot direct interrupts: run rtmeter on the host, "
    "or the container with --privileged"
)
_MANAGED = "the kernel may manage this interrupt's CPUs itself: name the devices that can be directed"
EVERY = "*"


def irq_cpus(wanted: Mapping[str, tuple[int, ...]], root: Root) -> Iterator[Change]:
    """For each device; under ``*``, all that can be directed, a named device's own choice coming first."""
    named = {irq for device in wanted if device != EVERY for irq in _irqs_of("irq_cpus", device, root)}
    for device, cpus in wanted.items():
        for irq in _irqs_of("irq_cpus", device, root):
            if device != EVERY or irq not in named:
                file = File(f"{_IRQ}/{irq}/smp_affinity_list", "cpus")
                setting = f"irq_cpus.{device}"
                yield Change(setting, file, format_cpus(cpus), _MANAGED, optional=device == EVERY)


def irq_priority(wanted: Mapping[str, int], root: Root) -> Iterator[Change]:
    """The IRQ threads of each device, as FIFO."""
    kernel_threads = [task for task in read_tasks(root) if task.is_kernel]
    for device, priority in wanted.items():
        irqs = _irqs_of("irq_priority", device, root)
        names = re.compile(f"irq/({'|'.join(map(str, irqs))})-.*")
        threads = [task for task in kernel_threads if names.fullmatch(task.name)]
        setting = f"irq_priority.{device}"
        if not threads:
            remedy = "boot a PREEMPT_RT kernel, or with threadirqs; or leave it out"
            raise refuse(setting, "this kernel runs its interrupts without threads", remedy)
        yield from _priorities(setting, threads, priority)


def ksoftirqd_priority(priority: int, root: Root) -> Iterator[Change]:
    """The thread of every CPU that works off what interrupts left, as FIFO."""
    threads = [t for t in read_tasks(root) if t.is_kernel and re.fullmatch(r"ksoftirqd/\d+", t.name)]
    if not threads:
        remedy = "a container does not see kernel threads: run it with --pid=host, or rtmeter on the host"
        raise refuse("ksoftirqd_priority", "there is no ksoftirqd to be seen here", remedy)
    yield from _priorities("ksoftirqd_priority", threads, priority)


def _priorities(setting: str, threads: list[Task], priority: int) -> Iterator[Change]:
    for task in threads:
        thread = Policy(task.tid, task.start, task.name)
        remedy = "in a cgroup without real-time run time no thread can have it"
        yield Change(setting, thread, f"fifo:{priority}", remedy, needs="CAP_SYS_NICE")


def _irqs_of(setting: str, device: str, root: Root) -> list[int]:
    """The interrupts of a network device, a PCI address, or a name as in /proc/interrupts."""
    actions = _actions(root)
    if not actions:
        raise _no_irqs(setting, device)
    if device == EVERY:
        return sorted(actions)
    found = {irq for irq in _msi_of(device, root) if irq in actions}
    name = re.compile(rf"{re.escape(device)}(\W.*|q\d+.*)?|.*\bpci:{re.escape(device)}")
    found |= {irq for irq, names in actions.items() if any(name.fullmatch(one) for one in names)}
    if not found:
        known = sorted({name for names in actions.values() for name in names})
        remedy = f"name a network device, a PCI address or one of {', '.join(known)}"
        raise refuse(f"{setting}.{device}", f"{device} has no interrupts here", remedy)
    return sorted(found)


def _no_irqs(setting: str, device: str) -> RtmeterError:
    return refuse(f"{setting}.{device}", f"there are no interrupts in {_IRQ} here", _NO_IRQ_REMEDY)


def _actions(root: Root) -> dict[int, list[str]]:
    """Interrupt → who asked for it: the folders that the kernel has for them."""
    actions: dict[int, list[str]] = {}
    for file in root.glob(f"{_IRQ}/[0-9]*/smp_affinity_list"):
        irq = int(file.split("/")[-2])
        words = root.read(f"/sys/kernel/irq/{irq}/actions") or ""
        folders = [folder.split("/")[-2] for folder in root.glob(f"{_IRQ}/{irq}/*/")]
        actions[irq] = [word for word in words.split(",") if word] or folders
    return actions


def _msi_of(device: str, root: Root) -> Iterator[int]:
    """Interrupts that sysfs says a device has; a virtio device's are those of the PCI device below it."""
    own = f"/sys/class/net/{device}/device"
    below = f"{own}/.." if root.real_path(own).rpartition("/")[2].startswith("virtio") else own
    for place in (own, below, f"/sys/bus/pci/devices/{device}"):
        yield from (int(path.rpartition("/")[2]) for path in root.glob(f"{place}/msi_irqs/[0-9]*"))
